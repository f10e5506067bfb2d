"""Messages of Debezium and GoldenGate to images: `after` is what was said, of a delete `before` tells the key.

An image asserts the fields it has. A value the source did not send (Debezium's placeholder, GoldenGate's `<COL>_isMissing`) is a field
that is not there.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.contract.columns import DOCUMENT, IMPLIED_OP, IMPLIED_SEQUENCE, IMPLIED_TIME, KIND
from karat.contract.logical_types import image_types, plain
from karat.contract.times import epoch_time, time_in
from karat.sources.documents import has_field_twice, with_objects
from karat.sources.raw import BROKEN, FIELDS, FIELDS_TYPE, FILE, LINE, PATH, no_text

UNAVAILABLE: Final = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")
"""What Debezium writes for a value it does not have: as text, and as bytes in base64."""

_MESSAGE: Final = "__karat_message"
_INSIDE: Final = "__karat_inside"
_SOURCE: Final = "__karat_source"
_IMAGE: Final = "__karat_image"
_TYPES: Final = "__karat_types"
_MISSING: Final = "_isMissing"
_PASSED: Final = (LINE, PATH, FILE, BROKEN)
_BOOKKEEPING: Final = ("m",)
"""Ops that carry no row: `m` is a message somebody wrote into the log."""


def debezium(raw: DataFrame) -> DataFrame:
    """Images of Debezium's messages, with or without their schema around them. Grain: one row per message."""
    wrapped = F.map_contains_key(F.col(FIELDS), "payload") & F.map_contains_key(F.col(FIELDS), "schema")
    payload = F.try_element_at(F.col(FIELDS), F.lit("payload"))
    inside = with_objects(_with_line(raw), {_INSIDE: F.when(wrapped, payload)})
    is_tombstone = F.col(BROKEN).isNull() & (F.col(FIELDS).isNull() | (wrapped & payload.isNull()))
    types = F.when(wrapped, F.expr(image_types(f"{FIELDS}['schema']")))
    opened = F.when(wrapped, F.col(_INSIDE)).otherwise(F.col(FIELDS))
    messages = inside.select(*_PASSED, opened.alias(_MESSAGE), is_tombstone.alias(KIND), types.alias(_TYPES))
    message = F.col(_MESSAGE)
    image = F.when(message["op"] == "d", message["before"]).otherwise(message["after"])
    unpacked = with_objects(messages, {_SOURCE: message["source"], _IMAGE: image})
    read = unpacked.select(*_PASSED, KIND, _MESSAGE, _SOURCE, F.expr(plain(_IMAGE, _TYPES)).alias(_IMAGE))
    said = F.map_filter(F.col(_IMAGE), lambda _, value: value.isNull() | ~value.isin(*UNAVAILABLE))
    return read.select(
        *(LINE, PATH, FILE),
        F.when(message["op"] == "t", _no_fields()).otherwise(said).alias(FIELDS),
        F.coalesce(F.col(BROKEN), F.when(~F.col(KIND), _fault(image, message["op"], _is_debezium_aside(message)))).alias(BROKEN),
        _kind(F.col(KIND) | _is_debezium_aside(message)).alias(KIND),
        message["op"].alias(IMPLIED_OP),
        _debezium_time(message, F.col(_SOURCE)).alias(IMPLIED_TIME),
        _debezium_sequence(F.col(_SOURCE)).alias(IMPLIED_SEQUENCE),
        no_text().alias(DOCUMENT),
    )


def goldengate(raw: DataFrame) -> DataFrame:
    """Images of GoldenGate's messages. Grain: one row per message."""
    message = F.col(FIELDS)
    op = F.upper(F.trim(message["op_type"]))
    image = F.when(op == "D", message["before"]).otherwise(message["after"])
    is_tombstone = F.col(BROKEN).isNull() & message.isNull()
    named = _with_line(raw).select(*_PASSED, is_tombstone.alias(KIND), FIELDS, op.alias(_MESSAGE))
    read = with_objects(named, {_IMAGE: image})
    op = F.col(_MESSAGE)
    return read.select(
        *(LINE, PATH, FILE),
        F.when(op == "T", _no_fields()).otherwise(_sent(F.col(_IMAGE))).alias(FIELDS),
        F.coalesce(F.col(BROKEN), F.when(~F.col(KIND), _fault(image, op, F.lit(False)))).alias(BROKEN),
        _kind(F.col(KIND)).alias(KIND),
        op.alias(IMPLIED_OP),
        F.expr(time_in(f"{FIELDS}['op_ts']")).alias(IMPLIED_TIME),
        message["pos"].alias(IMPLIED_SEQUENCE),
        no_text().alias(DOCUMENT),
    )


def _with_line(raw: DataFrame) -> DataFrame:
    """Messages with their text; of one that came as columns its fields as JSON, since FIELDS will be the image's."""
    return raw.select(F.coalesce(F.col(LINE), F.to_json(F.col(FIELDS))).alias(LINE), FIELDS, PATH, FILE, BROKEN)


def _fault(image: Column, op: Column, is_aside: Column) -> Column:
    """Why a message that is about a row gives no image of it."""
    fields, is_truncate = F.col(_IMAGE), op.isin("t", "T")
    return (
        F.when(is_aside | is_truncate, no_text())
        .when(op.isNull(), F.lit("a message that does not say what happened"))
        .when(image.isNull() & op.isin("d", "D"), F.lit("a delete without the image before it: it does not say of which row"))
        .when(image.isNull(), F.lit("a message without the image after it"))
        .when(fields.isNull(), F.lit("an image that is no JSON object"))
        .when(has_field_twice(fields), F.lit("an image that says the same field twice"))
    )


def _is_debezium_aside(message: Column) -> Column:
    """A message about something else than a row: the borders of a transaction, a change of schema, a heartbeat, a note in the log."""
    border = message["status"].isin("BEGIN", "END") & message["op"].isNull()
    schema = (F.map_contains_key(message, "ddl") | F.map_contains_key(message, "tableChanges")) & message["op"].isNull()
    others = F.map_filter(message, lambda name, _: ~name.isin("ts_ms", "ts_us", "ts_ns", "source"))
    heartbeat = (F.size(others) == 0) & F.map_contains_key(message, "ts_ms")
    return F.coalesce(border, F.lit(False)) | F.coalesce(schema | heartbeat | message["op"].isin(*_BOOKKEEPING), F.lit(False))


def _debezium_time(message: Column, source: Column) -> Column:
    return F.coalesce(
        epoch_time(source["ts_us"], 1),
        epoch_time(source["ts_ms"], 1_000),
        epoch_time(message["ts_us"], 1),
        epoch_time(message["ts_ms"], 1_000),
    )


def _debezium_sequence(source: Column) -> Column:
    """Where the change stands in the source's log: PostgreSQL's, Oracle's or SQL Server's number, else MySQL's file, place and row."""
    row = F.when(source["row"].isNotNull(), F.concat(F.lit(":"), source["row"])).otherwise(F.lit(""))
    binlog = F.concat(source["file"], F.lit(":"), source["pos"], row)
    return F.coalesce(source["lsn"], source["scn"], source["change_lsn"], source["commit_lsn"], binlog)


def _sent(image: Column) -> Column:
    """The columns of an image that were sent: neither flags, nor what a flag says is missing."""
    flags = F.map_filter(image, lambda name, value: name.endswith(_MISSING) & (F.lower(value) == "true"))
    missing = F.transform(F.map_keys(flags), lambda name: F.substring(name, F.lit(1), F.length(name) - len(_MISSING)))
    return F.map_filter(image, lambda name, _: ~name.endswith(_MISSING) & ~F.array_contains(missing, name))


def _no_fields() -> Column:
    return F.create_map().cast(FIELDS_TYPE)


def _kind(is_ignored: Column) -> Column:
    return F.when(is_ignored, F.lit("ignored")).otherwise(F.lit("row"))
