"""Rows picked out of a table without Spark are the rows Spark finds, to the letter and the microsecond; else there is no answer."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.execute.picked import not_before, of_keys, picked
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout, Replacement
from karat.state.commits import Commit

TABLE = TableName("bronze", "thing")
WHOSE = {"source_system": T.StringType(), "source_event_ts": T.TimestampType(), "record_hash": T.BinaryType()}
TYPES = {
    "bk": T.StringType(),
    "sk": T.BinaryType(),
    "at": T.TimestampType(),
    "day": T.DateType(),
    "amount": T.DecimalType(38, 10),
    "big": T.LongType(),
    "rate": T.DoubleType(),
    "live": T.BooleanType(),
    "whose": T.MapType(T.StringType(), T.StructType([T.StructField(name, kind) for name, kind in WHOSE.items()])),
    "address": T.StructType([T.StructField("town", T.StringType())]),
}
SCHEMA = T.StructType([T.StructField(name, kind) for name, kind in TYPES.items()])
ROWS = """
    VALUES ('a', X'01', TIMESTAMP '0001-01-01 00:00:00.000001', DATE '0001-01-01', 1234567890123456789012345678.0123456789,
            9007199254740993, 0.1, true, map('name', struct('CRM', TIMESTAMP '1500-01-01', X'ff')), struct('Bern')),
           ('b', X'02', TIMESTAMP '9999-12-31 23:59:59.999999', DATE '9999-12-31', NULL, -1, double('NaN'), true, map(), NULL),
           ('O''Neil "x"', X'03', TIMESTAMP '2026-03-29 02:30:00', NULL, -0.0000000001, 0, NULL, false, NULL, struct(NULL)),
           ('ключ|☃', X'04', NULL, DATE '1582-10-10', 0, 1, 1e300, true, map('n', NULL), struct('')),
           ('gone', X'05', TIMESTAMP '2026-01-01', NULL, 1, 1, 1, true, NULL, NULL)
"""


def _tables(spark: SparkSession, folder: Path, schema: T.StructType = SCHEMA) -> DeltaTables:
    tables = DeltaTables(spark.newSession(), str(folder))
    tables.session.conf.set("spark.sql.session.timeZone", "UTC")
    tables.session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    tables.create(
        TABLE, schema, Layout(("live",) if "live" in schema.names else (), (), {"delta.enableDeletionVectors": "true"}), _commit(0)
    )
    return tables


def _commit(number: int) -> Commit:
    return Commit("bronze.thing", number, "run", "-")


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DeltaTables:
    """A table of two commits, the second of which marks a row as gone."""
    made = _tables(spark, tmp_path_factory.mktemp("picked"))
    casts = ", ".join(f"CAST(c{number} AS {field.dataType.simpleString()}) AS {field.name}" for number, field in enumerate(SCHEMA))
    names = ", ".join(f"c{number}" for number in range(len(SCHEMA)))
    rows = made.session.sql(f"SELECT {casts} FROM ({ROWS}) AS t({names})")  # noqa: S608  (our own)
    made.append(rows.coalesce(1), TABLE, _commit(1))
    another = rows.where("bk = 'gone'").selectExpr("'came' AS bk", *(f"`{name}`" for name in SCHEMA.names[1:]))
    made.replace(Replacement(another, "held.sk = new.sk"), TABLE, _commit(2))
    return made


def _said(rows: DataFrame | None) -> list[str]:
    assert rows is not None
    # as text: Python has no year 0, where some clocks would put the first moment
    return sorted(str(row) for row in rows.selectExpr(*(f"CAST({name} AS STRING)" for name in SCHEMA.names)).collect())


def test_what_is_picked_is_what_spark_finds(tables: DeltaTables) -> None:
    found = picked(tables, TABLE, of_keys([bytes([number]) for number in range(1, 6)]), SCHEMA)
    assert _said(found) == _said(tables.read(TABLE))
    assert len(_said(found)) == 5
    assert "gone" not in str(_said(found))
    assert _said(picked(tables, TABLE, of_keys([b"nobody"]), SCHEMA)) == []


@pytest.mark.parametrize(
    ("since", "found"),
    [
        (datetime(1, 1, 1, tzinfo=UTC), {"a", "b", "came", 'O\'Neil "x"'}),
        (datetime(1, 1, 1, 0, 0, 0, 2, tzinfo=UTC), {"b", "came", 'O\'Neil "x"'}),
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), {"b", 'O\'Neil "x"'}),
        (datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=UTC), {"b"}),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), {"b"}),
    ],
)
def test_times_are_exact_in_every_year(tables: DeltaTables, since: datetime, found: set[str]) -> None:
    rows = picked(tables, TABLE, not_before("at", since), T.StructType([SCHEMA["bk"]]))
    assert rows is not None
    assert {row["bk"] for row in rows.collect()} == found


def test_ten_thousand_keys_can_be_named(tables: DeltaTables) -> None:
    keys = [number.to_bytes(32) for number in range(9_999)] + [b"\x02"]
    assert len(_said(picked(tables, TABLE, of_keys(keys), SCHEMA))) == 1


def test_what_is_said_of_everything_is_picked_beside_keys(spark: SparkSession, tmp_path: Path) -> None:
    whom = T.StructType([T.StructField("bk", T.StringType()), T.StructField("sk", T.BinaryType())])
    said = _tables(spark, tmp_path, whom)
    said.append(said.session.sql("SELECT * FROM VALUES ('a', X'01'), ('b', X'02'), (NULL, NULL) AS t(bk, sk)"), TABLE, _commit(1))
    for or_of_none, expected in ((False, {"a"}), (True, {"a", None})):
        rows = picked(said, TABLE, of_keys([b"\x01"], or_of_none=or_of_none), whom)
        assert rows is not None
        assert {row["bk"] for row in rows.collect()} == expected


def test_where_it_cannot_be_read_that_way_there_is_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    named = T.StructType([T.StructField("sk", T.BinaryType()), T.StructField("a b", T.StringType())])
    mapped = _tables(spark, tmp_path, named)
    mapped.append(mapped.session.sql("SELECT X'01' AS sk, 'x' AS `a b`"), TABLE, _commit(1))
    assert picked(mapped, TABLE, of_keys([b"\x01"]), named) is None
    assert picked(DeltaTables(mapped.session, f"file://{tmp_path}"), TABLE, of_keys([b"\x01"]), named) is None
    assert picked(mapped, TableName("bronze", "nothing"), of_keys([b"\x01"]), named) is None
    assert picked(mapped, TableName("bronze", "thing", catalog="elsewhere"), of_keys([b"\x01"]), named) is None
