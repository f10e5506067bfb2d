"""States of members to versions: one key per case, many cases per job."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.config.load import load
from karat.config.star import Dimension
from karat.gold.dimension import held_states, latest, versions, with_hashdiff
from karat.gold.schema import AT, HELD_KEY, KIND, ORDER
from tests.support.frames import frame, rows_of
from tests.support.stars import DIM_CUSTOMER, star_project

COLUMNS = ("customer_id", "name", "address", "phone", "updated_at")
SHOWN = ("customer_id", "sk", "name", "phone", "from", "to", "open", "gone", "made")
FLAGS = {"open": "__is_current", "gone": "__is_deleted", "made": "__is_skeleton"}

HELD = """
    sk:bigint | case:string | name:string | phone:string | said:date  | from:date  | to:date    | open:boolean | gone:boolean | made:boolean
    11        | late        | Ann         | 1            | 2026-01-01 | 2026-01-01 | 2026-01-05 | false        | false        | false
    12        | late        | Bea         | 1            | 2026-01-05 | 2026-01-05 | -          | true         | false        | false
    13        | repeated    | Ann         | 1            | 2026-01-01 | 2026-01-01 | -          | true         | false        | false
    14        | untracked   | Ann         | 1            | 2026-01-01 | 2026-01-01 | -          | true         | false        | false
    15        | filled      | -           | -            | -          | 1900-01-01 | -          | true         | false        | true
    16        | reaches     | Ann         | 1            | 2026-01-03 | 1900-01-01 | -          | true         | false        | false
    17        | comes back  | Ann         | 1            | 2026-01-01 | 2026-01-01 | 2026-01-02 | false        | true         | false
    18        | deleted     | Ann         | 1            | 2026-01-01 | 2026-01-01 | -          | true         | false        | false
    19        | corrected   | Ann         | 1            | 2026-01-01 | 2026-01-01 | -          | true         | false        | false
    20        | unfilled    | -           | -            | -          | 1900-01-01 | -          | true         | false        | true
"""
STATES = """
    customer_id:string | name:string | phone:string | said:date  | kind:int | at:timestamp | commit:int
    late               | Cat         | 1            | 2026-01-03 | 1        | 2026-01-03   | 7
    repeated           | Ann         | 1            | 2026-01-04 | 1        | 2026-01-04   | 7
    untracked          | Ann         | 2            | 2026-01-04 | 1        | 2026-01-04   | 7
    filled             | Ann         | 1            | 2026-01-03 | 1        | 2026-01-03   | 7
    filled             | Bea         | 1            | 2026-01-04 | 1        | 2026-01-04   | 8
    reaches            | Zoe         | 1            | 2026-01-02 | 1        | 2026-01-02   | 7
    comes back         | Ann         | 1            | 2026-01-01 | 1        | 2026-01-01   | 7
    deleted            | Ann         | 1            | 2026-01-01 | 2        | 2026-01-06   | 7
    corrected          | Anne        | 1            | 2026-01-01 | 1        | 2026-01-01   | 7
    unfilled           | -           | -            | -          | 2        | 2026-01-06   | 7
    three in one batch | A           | 1            | 2026-01-01 | 1        | 2026-01-01   | 5
    three in one batch | B           | 1            | 2026-01-02 | 1        | 2026-01-02   | 6
    three in one batch | C           | 1            | 2026-01-03 | 1        | 2026-01-03   | 7
    nothing to end     | A           | 1            | 2026-01-01 | 2        | 2026-01-01   | 5
    later is ended     | A           | 1            | 2026-01-09 | 1        | 2026-01-09   | 5
    later is ended     | A           | 1            | 2026-01-09 | 2        | 2026-01-02   | 6
"""
VERSIONS = """
    customer_id:string | sk:bigint | name:string | phone:string | from:date  | to:date    | open:boolean | gone:boolean | made:boolean
    late               | 11        | Ann         | 1            | 2026-01-01 | 2026-01-03 | false        | false        | false
    late               | -         | Cat         | 1            | 2026-01-03 | 2026-01-05 | false        | false        | false
    late               | 12        | Bea         | 1            | 2026-01-05 | -          | true         | false        | false
    repeated           | 13        | Ann         | 1            | 2026-01-01 | -          | true         | false        | false
    untracked          | 14        | Ann         | 2            | 2026-01-01 | -          | true         | false        | false
    filled             | 15        | Ann         | 1            | 1900-01-01 | 2026-01-04 | false        | false        | false
    filled             | -         | Bea         | 1            | 2026-01-04 | -          | true         | false        | false
    reaches            | -         | Zoe         | 1            | 1900-01-01 | 2026-01-03 | false        | false        | false
    reaches            | 16        | Ann         | 1            | 2026-01-03 | -          | true         | false        | false
    comes back         | 17        | Ann         | 1            | 2026-01-01 | 2026-01-02 | false        | true         | false
    comes back         | -         | Ann         | 1            | 2026-01-02 | -          | true         | false        | false
    deleted            | 18        | Ann         | 1            | 2026-01-01 | 2026-01-06 | false        | true         | false
    corrected          | 19        | Anne        | 1            | 2026-01-01 | -          | true         | false        | false
    unfilled           | 20        | -           | -            | 1900-01-01 | 2026-01-06 | false        | true         | true
    three in one batch | -         | A           | 1            | 2026-01-01 | 2026-01-02 | false        | false        | false
    three in one batch | -         | B           | 1            | 2026-01-02 | 2026-01-03 | false        | false        | false
    three in one batch | -         | C           | 1            | 2026-01-03 | -          | true         | false        | false
    later is ended     | -         | A           | 1            | 2026-01-09 | 2026-01-09 | false        | true         | false
"""
LATEST = """
    customer_id:string | name:string | gone:boolean
    late               | Bea         | false
    repeated           | Ann         | false
    untracked          | Ann         | false
    filled             | Bea         | false
    reaches            | Ann         | false
    comes back         | Ann         | false
    deleted            | Ann         | true
    corrected          | Anne        | false
    three in one batch | C           | false
    later is ended     | A           | true
"""


@pytest.fixture(scope="module")
def dimension(tmp_path_factory: pytest.TempPathFactory) -> Dimension:
    declared = {**DIM_CUSTOMER, "sql": "SELECT customer_id, name, address, phone, updated_at FROM c"}
    folder = star_project(tmp_path_factory.mktemp("star"), [declared])
    return cast("Dimension", load(folder).star[0])


def told(spark: SparkSession, dimension: Dimension) -> DataFrame:
    """What was held and what is new, as states."""
    new = (
        frame(spark, STATES)
        .withColumnRenamed("said", "updated_at")
        .withColumns({"address": F.lit("a"), HELD_KEY: F.lit(None).cast("bigint")})
    )
    states = with_hashdiff(new.withColumnsRenamed({"kind": KIND, "at": AT, "commit": ORDER}), COLUMNS, dimension)
    held = frame(spark, HELD).withColumns({"address": F.lit("a"), "__effective_at": F.col("said").cast("timestamp")})
    periods = {f"__valid_{side}": F.col(side).cast("timestamp") for side in ("from", "to")}
    held = held.withColumns(periods).withColumnsRenamed({"case": "customer_id", "sk": "customer_sk", "said": "updated_at", **FLAGS})
    return states.unionByName(held_states(held, COLUMNS, dimension))


def shown(rows: DataFrame) -> DataFrame:
    return rows.select(
        *("customer_id", F.col("customer_sk").alias("sk"), "name", "phone"),
        *(F.col(f"__valid_{side}").cast("date").alias(side) for side in ("from", "to")),
        *(F.col(column).alias(name) for name, column in FLAGS.items()),
    )


def test_versions_are_placed_closed_and_filled(spark: SparkSession, dimension: Dimension) -> None:
    found = shown(versions(told(spark, dimension), COLUMNS, dimension))
    assert rows_of(found, *SHOWN) == rows_of(frame(spark, VERSIONS), *SHOWN)


def test_an_open_end_may_have_a_name(spark: SparkSession, dimension: Dimension) -> None:
    named = replace(dimension, open_end=datetime(9999, 12, 31, tzinfo=UTC))
    rows = versions(told(spark, named), COLUMNS, named)
    assert rows.where("__is_current AND __valid_to <> timestamp'9999-12-31'").count() == 0
    assert rows.where("NOT __is_current AND __valid_to = timestamp'9999-12-31'").count() == 0


def test_a_dimension_without_history_has_the_latest_of_each_member(spark: SparkSession, dimension: Dimension) -> None:
    names = ("customer_id", "name", "gone")
    rows = shown(latest(told(spark, dimension), COLUMNS, dimension)).where("NOT made")
    assert rows_of(rows, *names) == rows_of(frame(spark, LATEST), *names)
