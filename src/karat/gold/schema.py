"""The columns of the star that Karat owns, and the shape of each kind of table."""

from datetime import UTC, datetime
from typing import Final

from pyspark.sql import types as T

from karat.config.query import CHANGE_COLUMNS, FEED_COLUMNS
from karat.config.star import Bridge, Dimension, Fact
from karat.errors import ConfigError
from karat.temporal.changes import TableSpec
from karat.temporal.columns import Names

VALID_FROM: Final = "__valid_from"
"""Start of a version's period, inclusive."""
VALID_TO: Final = "__valid_to"
"""End of the period, exclusive; null, or the declared open end, while it is open."""
IS_CURRENT: Final = "__is_current"
IS_DELETED: Final = "__is_deleted"
IS_SKELETON: Final = "__is_skeleton"
"""Whether a fact made the member before its source told of it."""
HASHDIFF: Final = "__hashdiff"
"""sha2-256 of the tracked columns in canonical text."""
DURABLE_KEY: Final = "__durable_key"
"""The member's key, the same for all of its versions."""
EFFECTIVE_AT: Final = "__effective_at"
"""When the source says that the version began; later than its start only where an early fact made it reach back."""
ADDED: Final = (VALID_FROM, VALID_TO, IS_CURRENT, IS_DELETED, IS_SKELETON, HASHDIFF, DURABLE_KEY, EFFECTIVE_AT)

AT: Final = "__karat_at"
"""Working: when a state begins, or ends by a delete."""
KIND: Final = "__karat_kind"
"""Working: what a state is: `REACH`, `UPSERT` or `DELETE`."""
ORDER: Final = "__karat_order"
"""Working: the commit that a state came with; held ones come before all."""
HELD_KEY: Final = "__karat_held_key"
"""Working: the surrogate key of the held version that a state stands for."""
REACH, UPSERT, DELETE = 0, 1, 2
CHANGE, COMMIT, COMMITTED_AT = CHANGE_COLUMNS

BEGIN: Final = datetime(1900, 1, 1, tzinfo=UTC)
"""The start of a member that a fact knew before its source told of it."""


def own_columns(columns: Names | list[str], target: str) -> Names:
    """The columns of a query's result that are the user's own. Raises `ConfigError` where one has a name that Karat owns."""
    found = tuple(name for name in columns if name not in (*CHANGE_COLUMNS, *FEED_COLUMNS))
    taken = [name for name in found if name.lower() in ADDED]
    twice = sorted({name for name in found if [other.lower() for other in found].count(name.lower()) > 1})
    if taken or twice:
        message = f"{target}: the query returns {taken[0]}, which Karat adds" if taken else f"{target}: the query returns {twice[0]} twice"
        raise ConfigError(message, remedy="name each column once, and differently from those that begin with two underscores")
    return found


def require_columns(columns: Names | list[str], needed: Names, target: str, setting: str) -> None:
    """Raises `ConfigError` for a column that the query does not return."""
    known = {name.lower() for name in columns}
    for name in needed:
        if name.lower() not in known:
            message = f"{target}: the query does not return {name}, which is named in {setting}"
            raise ConfigError(message, remedy=f"add it to the query; it returns {', '.join(columns)}")


def tracked_columns(columns: Names, dimension: Dimension) -> Names:
    """The columns whose change opens a version: those declared, else all but the keys and the version's own time."""
    if dimension.tracked is not None:
        return dimension.tracked
    aside = {name.lower() for name in (*dimension.keys, *([dimension.effective_at] if dimension.effective_at else []))}
    aside |= {name.lower() for name in dimension.periods or ()}
    return tuple(name for name in columns if name.lower() not in aside)


def dimension_schema(shape: T.StructType, dimension: Dimension) -> T.StructType:
    """A dimension's columns: its surrogate key, the query's own, and what Karat adds."""
    own = [T.StructField(field.name, _storable(field.dataType)) for field in shape]
    time, flag = T.TimestampType(), T.BooleanType()
    added = [
        *(T.StructField(name, time) for name in (VALID_FROM, VALID_TO)),
        *(T.StructField(name, flag) for name in (IS_CURRENT, IS_DELETED, IS_SKELETON)),
        T.StructField(HASHDIFF, T.StringType()),
        T.StructField(DURABLE_KEY, T.LongType()),
        T.StructField(EFFECTIVE_AT, time),
    ]
    return T.StructType([T.StructField(dimension.surrogate, T.LongType()), *own, *added])


def fact_schema(shape: T.StructType, fact: Fact) -> T.StructType:
    """A fact's columns: the keys of its dimensions, then the query's own."""
    keys = [T.StructField(lookup.into, T.LongType()) for lookup in fact.lookups]
    return T.StructType([*keys, *(T.StructField(field.name, _storable(field.dataType)) for field in shape)])


def bridge_schema(shape: T.StructType, bridge: Bridge) -> T.StructType:
    """A bridge's columns: the durable keys of both members, then the query's own."""
    keys = [T.StructField(side.into, T.LongType()) for side in bridge.sides]
    return T.StructType([*keys, *(T.StructField(field.name, _storable(field.dataType)) for field in shape)])


def dimension_spec(columns: Names, dimension: Dimension) -> TableSpec:
    """How rows of a dimension are told apart: by their key, whatever becomes of their period."""
    generated = (dimension.surrogate,) if dimension.strategy == "identity" else ()
    identity = (*dimension.keys, dimension.surrogate)
    return TableSpec((dimension.surrogate, *columns, *ADDED), identity, closed_at=VALID_TO, generated=generated)


def _storable(kind: T.DataType) -> T.DataType:
    """A type that a table can have: a column of nothing but nulls becomes text."""
    return T.StringType() if isinstance(kind, T.NullType) else kind
