"""The columns of a belief's tables, in their order, and what names a row of each."""

from collections.abc import Mapping

from pyspark.sql import types as T

from karat.belief.conflicts import SAYS
from karat.belief.resolution import belief_columns
from karat.belief.restatements import AFTER, BEFORE, CAUSE, CHANGED
from karat.temporal import columns as c
from karat.temporal.changes import TableSpec
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.whose import WHOSE_BY_ATTRIBUTE

ATTRIBUTE = "attribute"
_TIME, _TEXT, _FLAG, _BYTES, _INT = T.TimestampType(), T.StringType(), T.BooleanType(), T.BinaryType(), T.IntegerType()
_OWNED: Mapping[str, T.DataType] = {
    c.IS_DELETED: _FLAG,
    c.RULE_VERSION: _INT,
    c.BECAUSE: WHOSE_BY_ATTRIBUTE,
    c.BK: _TEXT,
    c.SK: _BYTES,
}
_PERIOD: Mapping[str, T.DataType] = {c.VALID_FROM: _TIME, c.VALID_TO: _TIME, c.IS_CURRENT: _FLAG, c.BECAUSE_HASH: _BYTES}
_FOUND: Mapping[str, T.DataType] = {
    c.BK: _TEXT,
    c.SK: _BYTES,
    c.VALID_FROM: _TIME,
    c.VALID_TO: _TIME,
    CHANGED: T.ArrayType(_TEXT),
    BEFORE: T.MapType(_TEXT, _TEXT),
    AFTER: T.MapType(_TEXT, _TEXT),
    c.BECAUSE: WHOSE_BY_ATTRIBUTE,
    CAUSE: _TEXT,
}
_RECEIPT: Mapping[str, T.DataType] = {**_FOUND, c.RULE_VERSION: _INT, "rule_version_before": _INT, "run_id": _TEXT, "restated_at": _TIME}
_CONFLICT: Mapping[str, T.DataType] = {
    c.BK: _TEXT,
    c.SK: _BYTES,
    ATTRIBUTE: _TEXT,
    "value": _TEXT,
    "says": SAYS,
}


def belief_schema(schema: EntitySchema) -> T.StructType:
    """What is believed now."""
    return _schema({**schema.key, **schema.attributes, **_OWNED})


def history_schema(schema: EntitySchema) -> T.StructType:
    """What is believed of every time."""
    return _schema({**schema.key, **schema.attributes, **_OWNED, **_PERIOD})


def restatements_schema(schema: EntitySchema) -> T.StructType:
    """What was believed of the past before it changed."""
    return _schema({**schema.key, **_RECEIPT})


def conflicts_schema(schema: EntitySchema) -> T.StructType:
    """Where sources differ now."""
    return _schema({**schema.key, **_CONFLICT})


def belief_spec(schema: EntitySchema) -> TableSpec:
    """One row per entity."""
    return TableSpec(belief_columns(schema), (c.BK,))


def history_spec(schema: EntitySchema) -> TableSpec:
    """One row per entity and start of a period; the periods of an entity follow each other without gaps."""
    columns = (*belief_columns(schema), *_PERIOD)
    return TableSpec(columns, (c.BK, c.VALID_FROM), c.VALID_FROM, c.VALID_TO, c.VALID_TO, unread=(c.BECAUSE,), chain=(c.BK,))


def conflicts_spec(schema: EntitySchema) -> TableSpec:
    """One row per entity and attribute."""
    return TableSpec((*schema.key, *_CONFLICT), (c.BK, ATTRIBUTE))


def receipts_spec(schema: EntitySchema) -> TableSpec:
    """Receipts as they are found, without the run and the rules that go with them; none is ever changed."""
    return TableSpec((*schema.key, *_FOUND), (c.BK,))


def _schema(fields: Mapping[str, T.DataType]) -> T.StructType:
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])
