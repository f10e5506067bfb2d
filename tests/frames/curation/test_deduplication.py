"""One row per entity and batch: the first in the configured order, and always the same one."""

import random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.config.resolved import OrderBy
from karat.curation.deduplication import deduplicated, oldest_first
from karat.temporal.columns import PK_HASH, REASON
from tests.support.frames import frame, rows_of

SEED = 20240613


def test_the_latest_row_is_kept_and_a_later_column_breaks_the_tie(spark: SparkSession) -> None:
    rows = frame(
        spark,
        """
        case:string               | ts:timestamp        | seq:int | name:string
        alone                     | 2024-01-01          | 1       | Ann
        the later one             | 2024-01-01          | 9       | Ann
        the later one             | 2024-01-02          | 1       | Bea
        by a microsecond          | 2024-01-01 00:00:00.000001 | 1 | Bea
        by a microsecond          | 2024-01-01 00:00:00 | 9       | Ann
        equal time, then seq      | 2024-01-01          | 2       | Bea
        equal time, then seq      | 2024-01-01          | 10      | Cat
        equal time, then seq      | 2024-01-01          | 1       | Ann
        no time is last           | -                   | 9       | Ann
        no time is last           | 2024-01-01          | 1       | Bea
        no seq is last            | 2024-01-01          | -       | Ann
        no seq is last            | 2024-01-01          | -5      | Bea
        told twice                | 2024-01-01          | 1       | Ann
        told twice                | 2024-01-01          | 1       | Ann
        null is a name            | 2024-01-01          | 1       | Ann
        null is a name            | 2024-01-02          | 1       | -
    """,
    )
    kept = _reduced(rows, OrderBy("ts", descending=True), OrderBy("seq", descending=True))
    assert rows_of(kept, "case", "name") == [
        ("alone", "Ann"),
        ("by a microsecond", "Bea"),
        ("equal time, then seq", "Cat"),
        ("no seq is last", "Bea"),
        ("no time is last", "Bea"),
        ("null is a name", None),
        ("the later one", "Bea"),
        ("told twice", "Ann"),
    ]


def test_ascending_keeps_the_smallest_and_nulls_stand_where_they_are_said_to(spark: SparkSession) -> None:
    rows = frame(
        spark,
        """
        case:string | rank:int | name:string
        numbers     | 10       | ten
        numbers     | 9        | nine
        a null      | 1        | one
        a null      | -        | none
        a null      | 3        | three
    """,
    )
    kept = {
        "ASC": _reduced(rows, OrderBy("rank", descending=False)),
        "ASC NULLS FIRST": _reduced(rows, OrderBy("rank", descending=False, nulls_first=True)),
        "ASC NULLS LAST": _reduced(rows, OrderBy("rank", descending=False, nulls_first=False)),
        "DESC": _reduced(rows, OrderBy("rank", descending=True)),
        "DESC NULLS FIRST": _reduced(rows, OrderBy("rank", descending=True, nulls_first=True)),
        "DESC NULLS LAST": _reduced(rows, OrderBy("rank", descending=True, nulls_first=False)),
    }
    together = None
    for order, reduced in kept.items():
        labelled = reduced.withColumn("order", F.lit(order))
        together = labelled if together is None else together.unionByName(labelled)
    assert together is not None
    assert rows_of(together, "order", "case", "name") == [
        ("ASC", "a null", "none"),
        ("ASC", "numbers", "nine"),
        ("ASC NULLS FIRST", "a null", "none"),
        ("ASC NULLS FIRST", "numbers", "nine"),
        ("ASC NULLS LAST", "a null", "one"),
        ("ASC NULLS LAST", "numbers", "nine"),
        ("DESC", "a null", "three"),
        ("DESC", "numbers", "ten"),
        ("DESC NULLS FIRST", "a null", "none"),
        ("DESC NULLS FIRST", "numbers", "ten"),
        ("DESC NULLS LAST", "a null", "three"),
        ("DESC NULLS LAST", "numbers", "ten"),
    ]


def test_an_order_turned_round_is_the_exact_reverse(spark: SparkSession) -> None:
    rows = frame(spark, "rank:int | case:string\n1 | x\n- | x\n3 | x\n2 | x")
    for order in (OrderBy("rank", descending, nulls) for descending in (True, False) for nulls in (None, True, False)):
        first = _reduced(rows, order).collect()[0]["rank"]
        last = [row["rank"] for row in rows.orderBy(oldest_first(order)).collect()][-1]
        assert last == first, order


def test_a_refused_row_never_wins_and_never_disappears(spark: SparkSession) -> None:
    rows = frame(
        spark,
        """
        case:string    | ts:timestamp | reason:string | name:string
        one is refused | 2024-01-09   | no key        | bad
        one is refused | 2024-01-01   | -             | good
        all refused    | 2024-01-02   | no key        | one
        all refused    | 2024-01-01   | no time       | two
    """,
    )
    kept = rows.withColumnsRenamed({"case": PK_HASH, "reason": REASON}).transform(deduplicated, [OrderBy("ts", descending=True)])
    assert rows_of(kept, PK_HASH, "name") == [
        ("all refused", "one"),
        ("all refused", "two"),
        ("one is refused", "bad"),
        ("one is refused", "good"),
    ]


def test_an_order_column_is_found_whatever_its_case_and_passed_over_where_it_is_missing(spark: SparkSession) -> None:
    rows = frame(spark, "case:string | My Ts:timestamp | name:string\nx | 2024-01-01 | Ann\nx | 2024-01-02 | Bea")
    kept = _reduced(rows, OrderBy("gone", descending=True), OrderBy("MY TS", descending=True))
    assert rows_of(kept, "case", "name") == [("x", "Bea")]
    assert kept.columns == [*rows.columns, PK_HASH, REASON]


def test_a_tie_is_broken_the_same_way_whatever_the_partitions_and_the_order_of_rows_and_columns(spark: SparkSession) -> None:
    dice = random.Random(SEED)  # noqa: S311 - rows, not secrets
    rows = [
        (
            f"case {number}",
            1,
            dice.choice([None, "a", "b"]),
            dice.choice([0.5, None]),
            [dice.randint(1, 2)],
            {"k": dice.randint(1, 2)},
            (dice.choice([None, 1]),),
        )
        for number in range(40)
        for _ in range(6)
    ]
    schema = "case string, ts int, name string, amount double, tags array<int>, props map<string, int>, inner struct<x: int>"
    names = ["case", "ts", "name", "amount", "tags", "props", "inner"]
    seen = set()
    for partitions in (1, 3, 7):
        dice.shuffle(rows)
        columns = dice.sample(names, len(names))
        frame_ = spark.createDataFrame(rows, schema).repartition(partitions).select(*columns)
        kept = _reduced(frame_, OrderBy("ts", descending=True)).select(*names[:4], *(F.to_json(F.struct(name)) for name in names[4:]))
        seen.add(tuple(rows_of(kept)))
    assert len(seen) == 1, f"seed {SEED}"
    assert len(seen.pop()) == 40


def _reduced(rows: DataFrame, *order: OrderBy) -> DataFrame:
    return rows.withColumns({PK_HASH: F.col("case"), REASON: F.lit(None).cast("string")}).transform(deduplicated, order)
