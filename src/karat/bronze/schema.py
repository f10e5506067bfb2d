"""The columns of an entity's tables, in their order."""

from typing import Final

from pyspark.sql import types as T

from karat.temporal import columns as c
from karat.temporal.changes import TableSpec
from karat.temporal.columns import quoted
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.sql import Sql
from karat.temporal.whose import WHOSE_BY_ATTRIBUTE

HELD: Final = "__karat_held"
"""Working: of a held version among statements, the columns that may change while the version stays."""
OPENS: Final = "__karat_opens"
"""Working: whether a statement opens a version."""
REBUILDS: Final = "__karat_rebuilds"
"""Working: whether only the evidence can tell how the key of a row goes on."""
SIGHTINGS: Final = (c.FIRST_SEEN, c.LAST_SEEN, c.SEEN_COUNT, c.LAST_EVENT_TS)
_TEXT, _TIME, _FLAG, _BYTES, _INT, _LONG = (
    T.StringType(),
    T.TimestampType(),
    T.BooleanType(),
    T.BinaryType(),
    T.IntegerType(),
    T.LongType(),
)

_ORIGIN: dict[str, T.DataType] = {
    c.BK: _TEXT,
    c.SK: _BYTES,
    c.SOURCE_SYSTEM: _TEXT,
    c.SOURCE_TYPE: _TEXT,
    c.SOURCE_PATH: _TEXT,
    c.SOURCE_FILE: _TEXT,
    c.EVENT_TS: _TIME,
    c.SEQUENCE: _TEXT,
}
_ASSERTION: dict[str, T.DataType] = {
    **_ORIGIN,
    c.INGEST_TS: _TIME,
    c.RUN_ID: _TEXT,
    c.BATCH_SEQ: _LONG,
    c.OP: _TEXT,
    c.LOAD_TYPE: _TEXT,
    c.ENTITY_TYPE: _TEXT,
    c.RANK: _INT,
    c.IS_DELETED: _FLAG,
    c.ASSERTED: T.ArrayType(_TEXT),
    c.INHERITED: WHOSE_BY_ATTRIBUTE,
    c.ATTR_HASH: _BYTES,
    c.STATEMENT_HASH: _BYTES,
    c.RECORD_HASH: _BYTES,
    c.HASH_VERSION: _INT,
    c.TIME_BASIS: _TEXT,
    c.SNAPSHOT_TS: _TIME,
    c.COPIES: _LONG,
    c.EXTRA: T.MapType(_TEXT, _TEXT),
    c.PAYLOAD: _TEXT,
    c.EXTRACTION_VERSION: _TEXT,
    c.FEED: _TEXT,
}
_VERSION: dict[str, T.DataType] = {
    **_ORIGIN,
    c.EFFECTIVE_FROM: _TIME,
    c.EFFECTIVE_TO: _TIME,
    c.IS_CURRENT: _FLAG,
    c.SOURCE_EFFECTIVE_TO: _TIME,
    c.IS_SOURCE_CURRENT: _FLAG,
    c.IS_DELETED: _FLAG,
    c.OP: _TEXT,
    c.LOAD_TYPE: _TEXT,
    c.ENTITY_TYPE: _TEXT,
    c.RANK: _INT,
    c.INHERITED: WHOSE_BY_ATTRIBUTE,
    c.ATTR_HASH: _BYTES,
    c.STATEMENT_HASH: _BYTES,
    c.RECORD_HASH: _BYTES,
    c.HASH_VERSION: _INT,
    c.TIME_BASIS: _TEXT,
    c.INGEST_TS: _TIME,
    c.RUN_ID: _TEXT,
    c.FIRST_SEEN: _TIME,
    c.LAST_SEEN: _TIME,
    c.SEEN_COUNT: _LONG,
    c.LAST_EVENT_TS: _TIME,
    c.CORRECTS: _BYTES,
}


def assertions_schema(schema: EntitySchema) -> T.StructType:
    """The evidence table: one row per arrival of a statement."""
    return _schema(schema, _ASSERTION)


def timeline_schema(schema: EntitySchema) -> T.StructType:
    """The timeline: one row per version."""
    return _schema(schema, _VERSION)


def timeline_spec(schema: EntitySchema) -> TableSpec:
    """What names a version: the statement that opened it, and where it begins; of facts, each content is there once."""
    identity = (c.SK, c.STATEMENT_HASH, c.EFFECTIVE_FROM)
    columns = timeline_schema(schema).names
    if schema.is_transaction:
        return TableSpec(columns, identity)
    return TableSpec(columns, identity, c.EFFECTIVE_FROM, c.EFFECTIVE_TO, c.SOURCE_EFFECTIVE_TO, chain=(c.SK, c.SOURCE_SYSTEM))


def changing_columns(schema: EntitySchema) -> tuple[str, ...]:
    """The columns of a version that may change while it stays the same version."""
    ends = (c.EFFECTIVE_TO, c.IS_CURRENT, c.SOURCE_EFFECTIVE_TO, c.IS_SOURCE_CURRENT, c.CORRECTS)
    return (*ends, c.INHERITED, *SIGHTINGS, *sorted(schema.untracked))


def riding_columns(schema: EntitySchema) -> frozenset[str]:
    """The columns of a version that no order and no comparison of statements looks at."""
    attributes = schema.attributes.keys() - schema.untracked
    return frozenset({*schema.key, *attributes, c.SK, c.SOURCE_TYPE, c.SOURCE_PATH, c.ENTITY_TYPE, c.HASH_VERSION})


def assertion_columns(schema: EntitySchema) -> list[Sql]:
    """An assertion's columns, cast to the table's types; for `selectExpr`."""
    return _cast_to(assertions_schema(schema))


def timeline_columns(schema: EntitySchema) -> list[Sql]:
    """A version's columns, cast to the table's types; for `selectExpr`."""
    return _cast_to(timeline_schema(schema))


def _cast_to(schema: T.StructType) -> list[Sql]:
    return [_cast(quoted(field.name), field.dataType.simpleString()) for field in schema]


def _cast(name: Sql, kind: str) -> Sql:
    """The cast; none for a struct, whose fields may have names that do not parse: it has its type already."""
    is_struct = "struct<" in kind and name != quoted(c.INHERITED)
    return name if is_struct else f"CAST({name} AS {kind}) AS {name}"


def _schema(schema: EntitySchema, owned: dict[str, T.DataType]) -> T.StructType:
    fields = {**schema.key, **schema.attributes, **owned}
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])
