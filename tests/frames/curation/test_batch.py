"""Rows on their way from the source to the comparison: who is refused, and who is kept."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from karat.config.resolved import OrderBy
from karat.curation.batch import admitted, with_refusals
from karat.temporal.columns import REASON
from tests.support.curated import curated_table
from tests.support.frames import frame, rows_of


def test_a_row_without_a_start_is_refused_before_it_can_win_over_one_that_has_it(spark: SparkSession) -> None:
    table = curated_table(effective_from="happened", order=(OrderBy("ts", descending=True),))
    rows = with_refusals(
        frame(
            spark,
            """
        id:string | system:string | name:string | happened:timestamp | ts:timestamp
        a         | CRM           | Ann         | 2024-01-01         | 2024-01-02
        a         | CRM           | Bea         | -                  | 2024-01-03
        -         | CRM           | Cat         | 2024-01-01         | 2024-01-02
        b         | -             | Dot         | 2024-01-01         | 2024-01-02
        c         | CRM           | Eva         | 2024-01-01         | -
    """,
        ),
        table,
    )
    refused = rows.where(F.col(REASON).isNotNull())
    assert rows_of(refused, "name", REASON) == [
        ("Bea", "effective start is null: happened"),
        ("Cat", "business key is null: id"),
        ("Dot", "business key is null: system"),
        ("Eva", "watermark is null: ts"),
    ]
    assert rows_of(admitted(rows, table), "id", "name") == [("a", "Ann")]
