"""Load types, snapshots, deletes, lists of what is asserted, time bases."""

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat.errors import ConfigError
from tests.frames.contract.feeds import INGESTED, by, files, lines, stated

MARCH = datetime(2026, 3, 1)  # noqa: DTZ001


def test_a_full_row_says_everything_and_belongs_to_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "extract 2026-03-02.csv").write_text('id,ts,name,address,status\n1,2026-03-01,Ann,,\n2,,Bea,x,y\n3,2026-03-01,"",x,GONE\n')
    feed = {
        "from": files("csv"),
        "load_type": "FULL",
        "snapshot_of": "to_timestamp(regexp_extract(_file, '([0-9-]{10})', 1))",
        "delete_when": "status = 'GONE'",
    }
    found = by(stated(spark, tmp_path, feed))
    first = found["1"]
    assert (first.asserted_columns, first.address, first.op) == (["name", "address", "status"], None, None)
    assert (first.source_event_ts, first.snapshot_ts, first.load_type) == (MARCH, datetime(2026, 3, 2), "FULL")  # noqa: DTZ001
    assert found["2"]["__karat_rule"] == "event time"
    assert found["2"]["__karat_original"] == '{"id":"2","ts":null,"name":"Bea","address":"x","status":"y"}'
    gone = found["3"]
    assert (gone.op, gone.is_deleted, gone.snapshot_ts, gone.asserted_columns) == ("d", True, None, [])
    plain = by(stated(spark, tmp_path, {"from": files("csv"), "load_type": "FULL", "map": {"name": "nullif(name, '')"}}))
    assert plain["1"].snapshot_ts == MARCH


def test_the_load_type_may_stand_in_the_row(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        {"id": "1", "ts": "2026-03-01", "lt": " full ", "name": "Ann", "as of": "2026-03-04"},
        {"id": "2", "ts": "2026-03-01", "lt": "PARTIAL", "name": "Ann"},
        {"id": "3", "ts": "2026-03-01", "lt": "SOME", "name": "Ann"},
        {"id": "4", "ts": "2026-03-01", "name": "Ann"},
        {"id": "5", "ts": "2026-03-01", "lt": "FULL", "as of": "never"},
    )
    rows = stated(spark, path, {"load_type": {"column": "lt"}, "snapshot_of": "as of"})
    assert [(row.id, row.load_type, row.asserted_columns, row.snapshot_ts, row["__karat_reason"]) for row in rows] == [
        ("1", "FULL", ["name", "address", "status"], datetime(2026, 3, 4), None),  # noqa: DTZ001
        ("2", "PARTIAL", ["name"], None, None),
        ("3", None, ["name"], None, "lt: 'SOME' is neither FULL nor PARTIAL"),
        ("4", None, ["name"], None, "lt: nothing is neither FULL nor PARTIAL"),
        ("5", "FULL", ["name", "address", "status"], None, "as of: 'never' is no time between the years 1 and 9999"),
    ]
    assert [row["__karat_rule"] for row in rows] == [None, None, "load marker", "load marker", "snapshot time"]


def test_ops_are_words_in_any_case(spark: SparkSession, tmp_path: Path) -> None:
    given = [
        ("c", "c"),
        ("CREATE", "c"),
        (" Insert ", "c"),
        ("I", "c"),
        ("r", "r"),
        ("Read", "r"),
        ("u", "u"),
        ("UPDATE", "u"),
        ("D", "d"),
        ("delete", "d"),
        ("T", "t"),
        ("truncate", "t"),
    ]
    path = lines(
        tmp_path / "a.json",
        *({"id": str(number), "ts": "2026-03-01", "op": word} for number, (word, _) in enumerate([*given, (None, None), ("  ", None)])),
    )
    rows = stated(spark, path, {"load_type": "PARTIAL", "op": "op"})
    assert [row.op for row in rows] == [op for _, op in given] + [None, None]
    assert {row["__karat_kind"] for row in rows} == {"row"}


def test_what_a_partial_row_asserts(spark: SparkSession, tmp_path: Path) -> None:
    said = {"ts": "2026-03-01"}
    path = lines(
        tmp_path / "a.json",
        {**said, "id": "null is said", "name": None},
        {**said, "id": "absent is not"},
        {**said, "id": "mapped", "stat": "x"},
        {**said, "id": "mapped null", "stat": None},
        {**said, "id": "of two, one", "street": "Main"},
        {**said, "id": "of two, one null", "street": None},
        {**said, "id": "of two, both null", "street": None, "no": None},
        {**said, "id": "other case", "NAME": "x"},
        {**said, "id": "both cases", "NAME": "loud", "name": None},
        {**said, "id": "nested", "who": {"name": "x"}},
    )
    mapping = {"status": "upper(stat)", "address": "concat_ws(' ', nullif(street, ''), no)"}
    rows = stated(spark, path, {"load_type": "PARTIAL", "map": mapping})
    assert {row.id: row.asserted_columns for row in rows} == {
        "null is said": ["name"],
        "absent is not": [],
        "mapped": ["status"],
        "mapped null": ["status"],
        "of two, one": ["address"],
        "of two, one null": ["address"],  # concat_ws makes an empty text of it, which is a value
        "of two, both null": ["address"],
        "other case": ["name"],
        "both cases": ["name"],
        "nested": [],
    }
    both = by(rows)["both cases"]
    assert (both.name, both.extra, by(rows)["other case"].name, by(rows)["other case"].extra) == (None, {"NAME": "loud"}, "x", None)
    assert by(rows)["nested"].extra == {"who": '{"name":"x"}'}
    nested = by(stated(spark, path, {"load_type": "PARTIAL", "map": {"name": "who.name", "status": "'fixed'"}}))
    assert (nested["nested"].name, nested["nested"].asserted_columns, nested["mapped"].asserted_columns) == (
        "x",
        ["name", "status"],
        ["status"],
    )


def test_a_list_says_what_is_asserted(spark: SparkSession, tmp_path: Path) -> None:
    row = {"ts": "2026-03-01", "name": "Ann", "address": None, "stat": "x"}
    path = lines(
        tmp_path / "a.json",
        {**row, "id": "list", "said": ["NAME", "address", "unknown"]},
        {**row, "id": "text", "said": '["stat"]'},
        {**row, "id": "commas", "said": "name , address"},
        {**row, "id": "none", "said": []},
        {**row, "id": "no list", "said": None},
        {**row, "id": "odd", "said": "[name"},
    )
    rows = by(stated(spark, path, {"load_type": "PARTIAL", "asserted": "said", "map": {"status": "upper(stat)"}}))
    assert {name: row.asserted_columns for name, row in rows.items()} == {
        "list": ["name", "address"],
        "text": ["status"],
        "commas": ["name", "address"],
        "none": [],
        "no list": ["name", "address", "status"],
        "odd": ["name", "address", "status"],
    }
    assert (rows["list"].status, rows["odd"]["__karat_rule"], rows["list"].extra) == (None, "type", None)


def test_a_tabular_partial_takes_null_for_not_said(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,ts,name,address,status\n1,2026-03-01,Ann,"",\n')
    row = stated(spark, tmp_path, {"from": files("csv"), "load_type": "PARTIAL"})[0]
    assert (row.asserted_columns, row.address) == (["name", "address"], "")


def test_platform_time_and_evidence_only(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.json", {"id": "1", "ts": "nonsense", "name": "Ann"}, {"name": "Bea", "n": "x", "op": "?"}, "{")
    rows = stated(spark, path, {"load_type": "PARTIAL"}, time_basis="platform")
    assert [(row.time_basis, row.source_event_ts, row["__karat_rule"]) for row in rows] == [
        ("platform", INGESTED.replace(tzinfo=None), None),
        ("platform", INGESTED.replace(tzinfo=None), "null key"),
        ("platform", INGESTED.replace(tzinfo=None), "unparsable"),
    ]
    rejected = {"load_type": "PARTIAL", "op": "op", "contract": {"has_stable_bk": False}}
    rows = stated(spark, path, rejected, attributes={"name": "string", "n": "int"})
    assert [(row.time_basis, row.source_event_ts, row.id, row.name, row.extra, row["__karat_rule"]) for row in rows] == [
        (None, None, "1", "Ann", None, None),
        (None, None, None, "Bea", {"n": "x"}, None),
        (None, None, None, None, None, "unparsable"),
    ]


def test_columns_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    line = '{"the id": "1", "a.b": "2026-03-01", "quo\\"te": "q", "back`tick": "b", "naïve ü": "ü", "select": "s", "x.y": "dot"}'
    path = lines(tmp_path / "a.json", line, '{"the id": "2", "a.b": "2026-03-01"}')
    mapping = {"id": "the id", "name": 'concat(`quo"te`, `back``tick`, `naïve ü`)', "address": "select", "status": "upper(x.y)"}
    first, second = stated(spark, path, {"load_type": "PARTIAL", "event_time": "a.b", "map": mapping})
    assert (first.id, first.name, first.address, first.status, first.source_event_ts, first.extra) == ("1", "qbü", "s", "DOT", MARCH, None)
    assert (second.id, second.asserted_columns, second["__karat_kind"]) == ("2", [], "row")


def test_an_expression_that_is_none_is_a_fault_of_the_configuration(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.json", {"id": "1", "ts": "2026-03-01"})
    for text in ("upper(name", "no_such_function(name)"):
        with pytest.raises(ConfigError, match=r"map\.name is no expression"):
            stated(spark, path, {"load_type": "PARTIAL", "map": {"name": text}})


def test_a_name_that_reads_like_sql_is_a_column_where_a_record_has_it(spark: SparkSession, tmp_path: Path) -> None:
    feed = {"load_type": "PARTIAL", "map": {"name": "e-mail", "address": "int(net)-int(tax)"}}
    named = lines(tmp_path / "a.json", {"id": "1", "ts": "2026-03-01", "e-mail": "a@b", "net": "3", "tax": "1"})
    row = stated(spark, named, feed)[0]
    assert (row.name, row.address, row.asserted_columns, row.extra) == ("a@b", "2", ["name", "address"], None)
