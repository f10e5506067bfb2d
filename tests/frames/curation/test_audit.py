"""The control table's page as it is written anew."""

from pyspark.sql import SparkSession

from karat.curation.audit import CONTROL, _latest
from tests.support.frames import frame, rows_of

TYPES = {"watermark_value": "timestamp", "records_processed": "long", "updated_at": "timestamp"}
HEADING = " | ".join(f"{name}:{TYPES.get(name, 'string')}" for name in CONTROL.names)


def test_a_page_has_the_new_word_on_each_table_and_its_furthest_watermark(spark: SparkSession) -> None:
    held = frame(
        spark,
        f"""{HEADING}
    not in this run   | 2026-01-01 | one | succeeded | 5 | 2026-01-02
    moved on          | 2026-01-01 | one | succeeded | 5 | 2026-01-02
    another was ahead | 2026-01-09 | one | succeeded | 5 | 2026-01-02
    failed            | 2026-01-01 | one | succeeded | 5 | 2026-01-02
    """,
    )
    new = frame(
        spark,
        f"""{HEADING}
    moved on          | 2026-01-03 | two | succeeded | 7 | 2026-01-04
    another was ahead | 2026-01-03 | two | unchanged | 0 | 2026-01-04
    failed            | -          | two | failed    | - | 2026-01-04
    new               | -          | two | unchanged | 0 | 2026-01-04
    """,
    )
    page = _latest(held, new)
    assert page.columns == held.columns
    assert [tuple(map(str, row)) for row in rows_of(page, *page.columns[:-1])] == [
        ("another was ahead", "2026-01-09 00:00:00", "two", "unchanged", "0"),
        ("failed", "2026-01-01 00:00:00", "two", "failed", "None"),
        ("moved on", "2026-01-03 00:00:00", "two", "succeeded", "7"),
        ("new", "None", "two", "unchanged", "0"),
        ("not in this run", "2026-01-01 00:00:00", "one", "succeeded", "5"),
    ]
