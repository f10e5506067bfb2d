"""Values fit their declared type or are refused; none is bent."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat.errors import ContractBreach
from tests.frames.contract.feeds import files, lines, stated

BIG = "123456789012345678901234567890123456.78"
FITS: list[tuple[str, str, object]] = [
    ("string", '"x"', "x"),
    ("string", "1.10", "1.10"),
    ("string", '{"a": 1.10}', '{"a":1.10}'),
    ("bigint", "9007199254740993", 9007199254740993),
    ("int", '" 12 "', 12),
    ("decimal(10,2)", "1.10", Decimal("1.10")),
    ("decimal(10,2)", "1.1000", Decimal("1.10")),
    ("decimal(10,2)", '"1e2"', Decimal("100.00")),
    ("decimal(10,2)", "12000e-4", Decimal("1.20")),
    ("decimal(38,2)", BIG, Decimal(BIG)),
    ("decimal(38,0)", "12345678901234567890123456789012345678", Decimal(12345678901234567890123456789012345678)),
    ("double", "1e300", 1e300),
    ("boolean", "true", True),
    ("boolean", '"no"', False),
    ("date", '"0001-01-01"', date(1, 1, 1)),
    ("date", '"9999-12-31"', date(9999, 12, 31)),
    ("timestamp", '"2026-03-01T09:00:00.123456+05:30"', datetime(2026, 3, 1, 3, 30, 0, 123456)),  # noqa: DTZ001
    ("timestamp", '"9999-12-31 23:59:59.999999"', datetime(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ001
    ("timestamp_ntz", '"2026-03-01 09:00:00"', datetime(2026, 3, 1, 9)),  # noqa: DTZ001
    ("array<string>", '["a", "b"]', ["a", "b"]),
    ("array<decimal(20,2)>", "[1.10, 2]", [Decimal("1.10"), Decimal("2.00")]),
    ("map<string,int>", '{"a": 1}', {"a": 1}),
    ("struct<a:int,b:array<string>>", '{"a": 1, "b": ["x"]}', (1, ["x"])),
    ("varchar(3)", '"äöü"', "äöü"),
]
MISFITS = [
    ("int", '"abc"'),
    ("int", "12.7"),
    ("int", "3000000000"),
    ("int", '""'),
    ("tinyint", "300"),
    ("bigint", "9223372036854775808"),
    ("decimal(10,2)", "1.239"),
    ("decimal(10,2)", "123456789.00"),
    ("decimal(10,2)", '"1.5e-2x"'),
    ("decimal(10,2)", "5e-3"),
    ("decimal(38,0)", "123456789012345678901234567890123456789"),
    ("boolean", '"maybe"'),
    ("date", '"2026-02-30"'),
    ("date", '"0000-01-01"'),
    ("date", '"+10000-01-01"'),
    ("date", '"5881580-07-11"'),
    ("timestamp", '"10:00"'),
    ("timestamp", '"9999-12-31 23:59:59.999999-08:00"'),
    ("timestamp", "1772355600000"),
    ("array<string>", '"no list"'),
    ("map<string,int>", "[1]"),
    ("struct<a:int>", '"text"'),
    ("struct<a:int>", '{"a": "x"}'),
    ("array<int>", '[1, "x"]'),
    ("varchar(3)", '"abcd"'),
]


def test_a_value_fits_or_the_row_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    cases = [(ddl, text) for ddl, text, _ in FITS] + MISFITS
    attributes = {f"a{number}": ddl for number, (ddl, _) in enumerate(cases)}
    path = lines(
        tmp_path / "a.json", *(f'{{"id": "{number}", "ts": "2026-03-01", "a{number}": {text}}}' for number, (_, text) in enumerate(cases))
    )
    rows = stated(spark, path, {"load_type": "PARTIAL"}, attributes=attributes)
    found = [(ddl, text, row[f"a{number}"], row["__karat_rule"]) for number, ((ddl, text), row) in enumerate(zip(cases, rows, strict=True))]
    assert found == [(*case, None) for case in FITS] + [(ddl, text, None, "type") for ddl, text in MISFITS]
    assert all(row.asserted_columns == [f"a{row.id}"] for row in rows)
    assert rows[len(FITS)]["__karat_reason"] == f"a{len(FITS)}: 'abc' does not fit int"


def test_a_long_value_is_cut_in_the_reason_and_kept_in_the_original(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.json", {"id": 1, "ts": "2026-03-01", "n": "é" * 1_000_000})
    row = stated(spark, path, {"load_type": "PARTIAL"}, key={"id": "bigint"}, attributes={"n": "int"})[0]
    assert row["__karat_reason"] == f"n: '{'é' * 80}…' does not fit int"
    assert len(row["__karat_original"]) > 1_000_000


def test_a_key_has_a_type_too(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        '{"id": 9007199254740993, "ts": "2026-03-01"}',
        '{"id": "x", "ts": "2026-03-01"}',
        '{"id": 1.5, "op": "d", "ts": "2026-03-01"}',
    )
    rows = stated(spark, path, {"load_type": "PARTIAL", "op": "op"}, key={"id": "bigint"})
    assert [(row.id, row["__karat_reason"]) for row in rows] == [
        (9007199254740993, None),
        (None, "id: 'x' does not fit bigint"),
        (None, "id: '1.5' does not fit bigint"),
    ]


def test_what_does_not_fit_can_be_kept_aside(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        '{"id": "1", "ts": "2026-03-01", "n": "abc", "name": "x", "more": 1.0}',
        '{"id": "2", "ts": "2026-03-01", "n": 5, "name": "x"}',
        '{"id": "3", "ts": "2026-03-01", "n": {"changed": "type"}, "op": "d"}',
    )
    feed = {"load_type": "FULL", "drift": {"type_changes": "keep"}, "op": "op"}
    rows = stated(spark, path, feed, attributes={"n": "int", "name": "string"})
    assert [(row["__karat_kind"], row.n, row.asserted_columns, row.extra) for row in rows] == [
        ("row", None, ["name"], {"n": "abc", "more": "1.0"}),
        ("row", 5, ["n", "name"], None),
        ("row", None, [], None),
    ]
    with pytest.raises(ContractBreach, match="n: 'abc' does not fit int"):
        stated(spark, path, {**feed, "drift": {"type_changes": "fail"}}, attributes={"n": "int", "name": "string"})


def test_an_expression_that_cannot_be_computed_refuses_its_row_alone(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "id,ts,amount,share\n1,01/03/2026,10,2\n2,01/03/2026,abc,2\n3,01/03/2026,10,0\n4,31/31/2026,10,2\n5,01/03/2026,,2\n"
    )
    feed = {
        "from": files("csv"),
        "load_type": "FULL",
        "event_time": "to_timestamp(ts, 'dd/MM/yyyy')",
        "map": {"half": "cast(amount as int) / 2", "ratio": "cast(amount as int) / cast(share as int)"},
    }
    rows = stated(spark, tmp_path, feed, attributes={"half": "double", "ratio": "double"})
    assert [(row.id, row.half, row.ratio, row["__karat_rule"], row["__karat_reason"]) for row in rows] == [
        ("1", 5.0, 5.0, None, None),
        ("2", None, None, "type", "half: cast(amount as int) / 2 cannot be computed for this row"),
        ("3", 5.0, None, "type", "ratio: cast(amount as int) / cast(share as int) cannot be computed for this row"),
        ("4", 5.0, 5.0, "event time", "event_time: to_timestamp(ts, 'dd/MM/yyyy') cannot be computed for this row"),
        ("5", None, None, None, None),
    ]
    assert rows[4].asserted_columns == ["half", "ratio"]
