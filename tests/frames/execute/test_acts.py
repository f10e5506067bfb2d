"""Acts are written in one commit: rows in the place of others, and nothing but what the acts say has changed."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from karat.config.names import TableName
from karat.errors import InternalError, StateConflict
from karat.execute.acts import settled_acts, write
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout, Replacement
from karat.state.commits import Commit, Written
from karat.temporal.columns import ACTION
from karat.temporal.difference import WAS_LIVE, Form
from tests.support.frames import frame

TABLE = TableName("bronze", "thing")
FORM = Form(("id", "hash", "start", "live", "value"), ("id", "hash", "start"), "live", "start")
HELD = """
    id:string | hash:binary | start:timestamp | live:boolean | value:string
    a         | a1          | 2026-03-01      | true         | Ann
    b         | b1          | 2026-03-01      | false        | Bob
    b         | b2          | 2026-03-05      | true         | Rob
    c         | c1          | 2026-03-01      | true         | Cat
"""


def _tables(spark: SparkSession, folder: Path) -> DeltaTables:
    tables = DeltaTables(spark.newSession(), str(folder))
    tables.session.conf.set("spark.sql.session.timeZone", "UTC")
    held = frame(spark, HELD)
    tables.create(TABLE, held.schema, Layout(("live",), (), {"delta.enableDeletionVectors": "true"}), _commit(0))
    tables.append(held, TABLE, _commit(1))
    return tables


def _commit(number: int) -> Commit:
    return Commit("bronze.thing", number, "run", "-", {"at": number})


def _written(tables: DeltaTables, table: str, number: int = 2) -> Written:
    rows = frame(tables.session, table).withColumnsRenamed({"act": ACTION, "was_live": WAS_LIVE})
    return write(settled_acts(rows, FORM), TABLE, tables, _commit(number))


def _values(tables: DeltaTables) -> dict[str, tuple[bool, str]]:
    return {row["hash"].decode(): (row["live"], row["value"]) for row in tables.read(TABLE).collect()}


def _last(tables: DeltaTables) -> Row:
    return tables._table(TABLE).history(1).collect()[0]


def test_changed_and_new_rows_take_their_places_and_what_merely_goes_is_named(spark: SparkSession, tmp_path: Path) -> None:
    tables = _tables(spark, tmp_path)
    done = _written(
        tables,
        """
        act:string | was_live:boolean | id:string | hash:binary | start:timestamp | live:boolean | value:string
        update     | true             | a         | a1          | 2026-03-01      | false        | Ann
        insert     | true             | a         | a2          | 2026-03-04      | true         | Ada
        insert     | true             | b         | b3          | 2026-03-03      | true         | Rob
        delete     | true             | b         | b2          | 2026-03-05      | true         | Rob
        """,
    )
    assert done == Written(2, 1, 1)
    assert _values(tables) == {
        "a1": (False, "Ann"),
        "a2": (True, "Ada"),
        "b1": (False, "Bob"),
        "b3": (True, "Rob"),
        "c1": (True, "Cat"),
    }
    assert "replaceOnCond" in _last(tables)["operationParameters"]
    assert tables.checkpoint(TABLE, "bronze.thing").position == {"at": 2}
    changes = tables.session.read.format("delta").options(readChangeFeed="true", startingVersion=2).load(tables.address(TABLE))
    told = changes.select("_change_type", F.col("hash").cast("string")).collect()
    assert sorted(map(tuple, told)) == [("delete", "a1"), ("delete", "b2"), ("insert", "a1"), ("insert", "a2"), ("insert", "b3")]


def test_a_row_that_goes_alone_is_merged_away(spark: SparkSession, tmp_path: Path) -> None:
    tables = _tables(spark, tmp_path)
    done = _written(
        tables,
        """
        act:string | was_live:boolean | id:string | hash:binary | start:timestamp | live:boolean | value:string
        delete     | true             | c         | c1          | 2026-03-01      | true         | Cat
        update     | false            | b         | b1          | 2026-03-01      | false        | Bo
        """,
    )
    assert done == Written(0, 1, 1)
    assert _values(tables) == {"a1": (True, "Ann"), "b1": (False, "Bo"), "b2": (True, "Rob")}
    assert _last(tables)["operation"] == "MERGE"


def test_the_same_number_is_not_written_twice(spark: SparkSession, tmp_path: Path) -> None:
    tables = _tables(spark, tmp_path)
    change = Replacement(frame(tables.session, HELD).where("id = 'a'"), "held.id = new.id", Written(0, 1, 0))
    assert tables.replace(change, TABLE, _commit(2)) == Written(0, 1, 0)
    again = Commit("bronze.thing", 2, "another run", "-")
    with pytest.raises(StateConflict, match="already written number 2"):
        tables.replace(change, TABLE, again)
    assert len(_values(tables)) == 4


def test_counts_that_are_not_what_was_meant_are_told(spark: SparkSession, tmp_path: Path) -> None:
    tables = _tables(spark, tmp_path)
    change = Replacement(frame(tables.session, HELD).where("id = 'b'"), "held.id = new.id", Written(0, 1, 0))
    with pytest.raises(InternalError, match="2 rows were written and 2 taken out"):
        tables.replace(change, TABLE, _commit(2))


def test_rows_of_another_session_carry_their_commit(spark: SparkSession, tmp_path: Path) -> None:
    tables = _tables(spark, tmp_path)
    rows = frame(spark, HELD).where("id = 'a'").withColumn("start", F.lit(datetime(2026, 3, 2, tzinfo=UTC)))
    assert tables.replace(Replacement(rows, "held.id = new.id"), TABLE, _commit(2)) == Written(1, 0, 1)
    assert tables.checkpoint(TABLE, "bronze.thing").sequence == 2


def test_a_table_of_a_catalog_is_changed_by_name(spark: SparkSession, tmp_path: Path) -> None:
    named = TableName("karat_acts", "thing", catalog="spark_catalog")
    tables = DeltaTables(spark.newSession(), str(tmp_path))
    try:
        held = frame(tables.session, HELD)
        tables.create(named, held.schema, Layout(("live",), (), {"delta.enableDeletionVectors": "true"}), _commit(0))
        tables.append(held, named, _commit(1))
        change = Replacement(held.where("id = 'a'").withColumn("value", F.lit("Ada")), "held.id = new.id", Written(0, 1, 0))
        assert tables.replace(change, named, _commit(2)) == Written(0, 1, 0)
        values = tables.read(named).select("value").collect()
        assert sorted(row["value"] for row in values) == ["Ada", "Bob", "Cat", "Rob"]
        assert tables.checkpoint(named, "bronze.thing").sequence == 2
    finally:
        spark.sql("DROP SCHEMA IF EXISTS karat_acts CASCADE")
