"""Rows of parquet files and tables to statements: typed columns stay typed."""

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat.contract.statements import statements
from karat.errors import ConfigError, ContractBreach
from karat.sources.changes import changed_records, highest, records_between
from karat.sources.raw import FIELDS, FILE, PATH
from tests.frames.contract.feeds import INGESTED, by, entity_with, files, raw_of, stated

TABLE = {"kind": "table", "table": "raw.customer"}


def test_parquet_keeps_its_types(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        "select '1' id, timestamp'2026-03-01 09:00:00.123456' ts, array('a', 'b') tags, cast(1.239 as decimal(10,3)) amount, 12.7D whole,"
        " named_struct('city', 'Bonn', 'n', null) address, binary('x') bytes"
    ).write.parquet(str(tmp_path / "a"))
    spark.sql("select '2' id, timestamp'2026-03-02' ts, array() tags, 5.0 `new col`").selectExpr(
        "id", "ts", "cast(tags as array<string>) tags", "`new col`"
    ).write.parquet(str(tmp_path / "b"))
    attributes = {"tags": "array<string>", "amount": "decimal(10,2)", "city": "string", "first": "string", "whole": "double"}
    feed = {"from": files("parquet"), "load_type": "PARTIAL", "map": {"city": "upper(address.city)", "first": "element_at(tags, 1)"}}
    rows = by(stated(spark, tmp_path, {**feed, "drift": {"type_changes": "keep"}}, attributes=attributes))
    one = rows["1"]
    assert (one.tags, one.amount, one.city, one.first, one.whole) == (["a", "b"], None, "BONN", "a", 12.7)
    assert one.source_event_ts == datetime(2026, 3, 1, 9, 0, 0, 123456)  # noqa: DTZ001
    assert one.extra == {"amount": "1.239", "bytes": "eA==", "new col": None}
    assert one.asserted_columns == ["tags", "city", "first", "whole"]
    assert one["__karat_original"] is None, "only what is refused is kept as it came"
    assert rows["2"].extra["new col"] == "5.0"
    ints = by(stated(spark, tmp_path, {**feed, "map": {}}, attributes={"whole": "int", "tags": "int"}))
    assert ints["1"]["__karat_original"].startswith('{"id":"1","ts":"2026-03-01 09:00:00.123456","tags":"[\\"a\\",\\"b\\"]"')
    assert [(row["__karat_rule"], row["__karat_reason"]) for row in ints.values()] == [
        ("type", "whole: '12.7' does not fit int"),
        ("type", "tags: '[]' does not fit int"),
    ]


def test_files_that_disagree_about_a_type_break_the_contract(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("select 1 id, 'x' name").write.parquet(str(tmp_path / "a"))
    spark.sql("select 'one' id, 'x' name").write.parquet(str(tmp_path / "b"))
    _, feed = entity_with({"from": files("parquet")})
    with pytest.raises(ContractBreach, match="do not agree about column id: id int and id string"):
        raw_of(spark, feed, tmp_path)


def test_a_change_feed_gives_rows_and_deletes(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "customer")
    spark.sql(
        f"create table delta.`{address}` (id string, ts timestamp, name string, address string, status string) using delta"
        " tblproperties ('delta.enableChangeDataFeed' = 'true')"
    )
    table = f"delta.`{address}`"
    spark.sql(f"insert into {table} values ('1', '2026-03-01', 'Ann', null, 'x'), ('2', '2026-03-01', 'Bea', null, 'x')")  # noqa: S608
    spark.sql(f"update {table} set name = 'Anna', ts = '2026-03-02' where id = '1'")  # noqa: S608
    spark.sql(f"delete from {table} where id = '2'")  # noqa: S608
    spark.sql(f"insert overwrite {table} values ('1', '2026-03-03', 'Anne', null, 'x')")  # noqa: S608
    entity, feed = entity_with({"from": TABLE, "load_type": "FULL", "op": "nullif('', '')"})

    def read(lower: int | None, upper: int) -> list[tuple[object, ...]]:
        raw = changed_records(spark, address, "raw.customer", lower, upper)
        rows = statements(raw, entity, feed, INGESTED).collect()
        return sorted((row.id, row.name or "", row.op or "", row["__karat_kind"]) for row in rows)

    assert read(None, 1) == [("1", "Ann", "", "row"), ("2", "Bea", "", "row")]
    assert read(1, 3) == [("1", "Anna", "", "row"), ("2", "", "d", "row")]
    assert read(3, 4) == [("1", "", "d", "ignored"), ("1", "Anne", "", "row")]
    assert read(4, 4) == []
    spark.sql(f"update {table} set id = '9' where id = '1'")  # noqa: S608
    assert read(4, 5) == [("1", "", "d", "row"), ("9", "Anne", "", "row")], "a row that gets another key is gone from its old one"
    raw = changed_records(spark, address, "raw.customer", 1, 3)
    assert [(row[PATH], row[FILE]) for row in raw.select(PATH, FILE).distinct().collect()] == [("raw.customer", None)]
    gone = statements(raw, entity, feed, INGESTED).where("op = 'd'").collect()[0]
    commits = spark.sql(f"describe history {table}").where("version = 3").collect()[0]
    assert gone.source_event_ts == commits.timestamp
    assert gone.extra is None
    assert gone.source_type == "table"


def test_a_table_without_a_change_feed_says_how_to_get_one(spark: SparkSession, tmp_path: Path) -> None:
    address = str(tmp_path / "plain")
    spark.sql("select 1 id").write.format("delta").save(address)
    spark.sql("select 2 id").write.format("delta").mode("append").save(address)
    assert changed_records(spark, address, "raw.plain", None, 1).count() == 2
    with pytest.raises(ConfigError, match=r"raw\.plain kept no change feed for versions 1 to 1") as failure:
        changed_records(spark, address, "raw.plain", 0, 1)
    assert "delta.enableChangeDataFeed = true" in failure.value.remedy
    assert "mode: watermark" in failure.value.remedy


def test_rows_above_a_watermark_in_its_own_type(spark: SparkSession) -> None:
    rows = spark.sql(
        "select * from values (1, timestamp'2026-03-01 00:00:00.000001'), (10, timestamp'2026-03-02'),"
        " (9, timestamp'2026-03-03'), (null, null) as t(n, `changed at`)"
    )
    assert (highest(rows, "n"), highest(rows, "Changed At"), highest(rows.where("n is null"), "n")) == ("10", "2026-03-03 00:00:00", None)

    def read(column: str, lower: str | None, upper: str | None) -> set[str | None]:
        return {row[FIELDS]["n"] for row in records_between(rows, "raw.t", column, lower, upper).collect()}

    assert read("n", "1", "9") == {"9", None}
    assert read("n", None, "9") == {"1", "9", None}
    assert read("changed at", "2026-03-01 00:00:00.000001", "2026-03-02 00:00:00") == {"10", None}
    with pytest.raises(ConfigError, match="no column seq"):
        read("seq", None, None)
