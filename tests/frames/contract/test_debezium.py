"""Debezium's messages to statements, as PostgreSQL, MySQL and Oracle connectors write them."""

import base64
from datetime import date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from tests.frames.contract.feeds import by, files, lines, stated

POSTGRES = {
    "version": "3.6.2.Final",
    "connector": "postgresql",
    "name": "dev",
    "ts_ms": 1772355600123,
    "ts_us": 1772355600123456,
    "snapshot": "false",
    "db": "crm",
    "schema": "public",
    "table": "customer",
    "txId": 726,
    "lsn": 22265832,
    "xmin": None,
}
MYSQL = {"connector": "mysql", "name": "dev", "ts_ms": 1772355600123, "file": "mysql-bin.000003", "pos": 154, "row": 2}
ORACLE = {"connector": "oracle", "name": "dev", "ts_ms": 1772355600000, "scn": "9007199254740993", "commit_scn": "1"}
MOMENT = datetime(2026, 3, 1, 9, 0, 0, 123456)  # noqa: DTZ001


def message(op: str, before: Any, after: Any, source: Any = None) -> dict[str, Any]:  # noqa: ANN401
    return {"before": before, "after": after, "source": source or POSTGRES, "transaction": None, "op": op, "ts_ms": 1772355600999}


def test_images_ops_times_and_sequences(spark: SparkSession, tmp_path: Path) -> None:
    jane = {"id": "1", "name": "Jane", "address": None, "status": "Active"}
    wrapped = {"schema": {"type": "struct", "fields": []}, "payload": message("c", None, {**jane, "id": "wrapped"})}
    no_time = {"op": "u", "before": None, "after": {"id": "own time", "name": "x"}, "source": {}, "ts_ms": 1772355600999}
    rows = _read(
        spark,
        tmp_path,
        message("c", None, {**jane, "id": "created"}),
        message("r", None, {**jane, "id": "snapshot"}),
        message("u", {**jane, "id": "updated"}, {"id": "updated", "name": "Janet", "shoe": 43}),
        message("d", {"id": "deleted", "name": "Janet"}, None),
        message(
            "u",
            None,
            {"id": "toasted", "name": "__debezium_unavailable_value", "status": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "address": "a"},
        ),
        wrapped,
        message("c", None, {**jane, "id": "mysql"}, MYSQL),
        message("c", None, {**jane, "id": "mysql no row"}, {key: value for key, value in MYSQL.items() if key != "row"}),
        message("c", None, {**jane, "id": "oracle"}, ORACLE),
        no_time,
    )
    found = by(rows)
    assert {row.id: (row.op, row.is_deleted, row.asserted_columns, row.source_event_ts, row.source_sequence_id) for row in rows} == {
        "created": ("c", False, ["name", "address", "status"], MOMENT, "22265832"),
        "snapshot": ("r", False, ["name", "address", "status"], MOMENT, "22265832"),
        "updated": ("u", False, ["name"], MOMENT, "22265832"),
        "deleted": ("d", True, [], MOMENT, "22265832"),
        "toasted": ("u", False, ["address"], MOMENT, "22265832"),
        "wrapped": ("c", False, ["name", "address", "status"], MOMENT, "22265832"),
        "mysql": ("c", False, ["name", "address", "status"], MOMENT.replace(microsecond=123000), "mysql-bin.000003:154:2"),
        "mysql no row": ("c", False, ["name", "address", "status"], MOMENT.replace(microsecond=123000), "mysql-bin.000003:154"),
        "oracle": ("c", False, ["name", "address", "status"], MOMENT.replace(microsecond=0), "9007199254740993"),
        "own time": ("u", False, ["name"], MOMENT.replace(microsecond=999000), None),
    }
    assert {row["__karat_kind"] for row in rows} == {"row"}
    assert (found["updated"].name, found["updated"].status, found["updated"].extra) == ("Janet", None, {"shoe": "43"})
    assert (found["created"].name, found["created"].address, found["created"].load_type) == ("Jane", None, "PARTIAL")
    assert found["deleted"].name is None


def test_messages_about_something_else_are_ignored_and_broken_ones_refused(spark: SparkSession, tmp_path: Path) -> None:
    rows = _read(
        spark,
        tmp_path,
        "null",
        {"schema": {}, "payload": None},
        {"ts_ms": 1772355600999},
        {"status": "BEGIN", "id": "726:22265832", "ts_ms": 1, "event_count": None, "data_collections": None},
        {"status": "END", "id": "726:22266832", "event_count": 4, "data_collections": [{"data_collection": "public.x", "event_count": 2}]},
        {"op": "m", "ts_ms": 1, "source": POSTGRES, "message": {"prefix": "p", "content": "eA=="}},
        {"source": MYSQL, "ts_ms": 1, "databaseName": "inventory", "ddl": "CREATE TABLE t (id INT)", "tableChanges": []},
        {"op": "t", "before": None, "after": None, "source": POSTGRES, "ts_ms": 1},
        message("c", None, None),
        message("d", None, None),
        message("x", None, {"id": "1"}),
        message("u", None, "not an object"),
        {"id": "1", "name": "flat"},
        '{"op": "c", "after": {"id": "1", "id": "2"}, "source": {}}',
        message("u", None, {"name": "no key"}),
        '{"op": "c", "after": {"id": "1",',
    )
    assert [(row["__karat_kind"], row["__karat_rule"], row["__karat_reason"]) for row in rows] == [
        *[("ignored", None, None)] * 7,
        ("row", None, None),
        ("refused", "unparsable", "a message without the image after it"),
        ("refused", "unparsable", "a delete without the image before it: it does not say of which row"),
        ("refused", "op", "op: 'x' is none of c, r, u, d, t"),
        ("refused", "unparsable", "an image that is no JSON object"),
        ("refused", "unparsable", "a message that does not say what happened"),
        ("refused", "unparsable", "an image that says the same field twice"),
        ("refused", "null key", "id is null"),
        ("refused", "unparsable", "a line that is not exactly one JSON object"),
    ]
    truncate = rows[7]
    assert (truncate.op, truncate.id, truncate.is_deleted, truncate.asserted_columns) == ("t", None, False, [])


def test_numbers_of_an_image_keep_their_digits_and_settings_override_the_envelope(spark: SparkSession, tmp_path: Path) -> None:
    values = '"amount": 123456789012345678901234567890123456.10, "n": 9007199254740993, "v": 3.50'
    image = f'{{"id": "1", {values}, "at": "2026-01-02", "what": "DELETE"}}'
    text = f'{{"op": "u", "source": {{"ts_ms": 1, "lsn": 2}}, "after": {image}}}'
    attributes = {"amount": "decimal(38,2)", "n": "bigint", "doubled": "decimal(38,2)"}
    path = lines(tmp_path / "a.json", text, text.replace("DELETE", "upd"), text.replace("DELETE", "update"))
    feed = {"envelope": "debezium", "event_time": "at", "op": "what", "sequence": "v", "map": {"doubled": "cast(v as decimal(10,2)) * 2"}}
    deleted, odd, row = stated(spark, path, feed, attributes=attributes)
    assert (deleted.op, odd["__karat_rule"]) == ("d", "op")
    assert (str(row.amount), row.n, str(row.doubled)) == ("123456789012345678901234567890123456.10", 9007199254740993, "7.00")
    assert (row.source_event_ts, row.source_sequence_id) == (datetime(2026, 1, 2), "3.50")  # noqa: DTZ001
    assert row.asserted_columns == ["amount", "n", "doubled"]


def _read(spark: SparkSession, tmp_path: Path, *messages: object) -> list[Row]:
    return stated(spark, lines(tmp_path / "dbz.json", *messages), {"envelope": "debezium"})


def test_values_are_read_by_the_schema_around_them(spark: SparkSession, tmp_path: Path) -> None:
    def encoded(number: int) -> str:
        return base64.b64encode(number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)).decode()

    kinds = {
        "born": {"type": "int32", "name": "io.debezium.time.Date"},
        "seen": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        "sent": {"type": "int64", "name": "io.debezium.time.Timestamp"},
        "exact": {"type": "int64", "name": "io.debezium.time.NanoTimestamp"},
        "amount": {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
        "any": {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
        "note": {"type": "string"},
    }
    columns = [{"field": name, "optional": True, **kind} for name, kind in kinds.items()]
    schema = {"type": "struct", "fields": [{"field": side, "type": "struct", "fields": columns} for side in ("before", "after")]}

    def said(key: str, **values: object) -> dict[str, object]:
        return {"schema": schema, "payload": message("c", None, {"id": key, **values})}

    nines = 10**38 - 1
    lines(
        tmp_path / "a.json",
        said("plain", born=20513, seen=1772355600123456, sent=1772355600123, exact=1772355600123456789),
        said("money", amount=encoded(123456), note="AQ=="),
        said("below", born=-1, seen=-1, sent=None, amount=encoded(-5), any={"scale": 3, "value": encoded(-1234567)}),
        said("large", amount=encoded(nines), any={"scale": 0, "value": encoded(-(2**64))}),
        said("wrong", amount="no base64!"),
    )
    times = {"born": "date", "seen": "timestamp", "sent": "timestamp", "exact": "timestamp"}
    attributes = {**times, "amount": "decimal(38,2)", "any": "string", "note": "string"}
    rows = by(stated(spark, tmp_path, {"envelope": "debezium", "from": files("json")}, attributes=attributes))
    moment = datetime(2026, 3, 1, 9, 0, 0, 123456)  # noqa: DTZ001
    plain = rows["plain"]
    assert (plain.born, plain.seen, plain.sent, plain.exact) == (date(2026, 3, 1), moment, moment.replace(microsecond=123000), moment)
    assert (rows["money"].amount, rows["money"].note) == (Decimal("1234.56"), "AQ=="), "what has no logical type stays as it is"
    below = rows["below"]
    assert (below.born, below.seen) == (date(1969, 12, 31), datetime(1969, 12, 31, 23, 59, 59, 999999))  # noqa: DTZ001
    assert (below.sent, below.amount, below["any"]) == (None, Decimal("-0.05"), "-1234.567")
    assert (rows["large"].amount, rows["large"]["any"]) == (Decimal(nines).scaleb(-2, Context(prec=38)), str(-(2**64)))
    assert rows["wrong"]["__karat_reason"] == "amount: 'no base64!' does not fit decimal(38,2)"
