"""Transformed rows to rows that can be compared with the target: with the hash of their key, of their state, and their start.

The framework's own columns are computed anew here; columns of those names that come from the source
(a bronze table may carry `is_current` of its own) give way to them.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from karat.config.resolved import CuratedTable
from karat.temporal.columns import DIFF_HASH, PK_HASH, REASON, START, Names, col
from karat.temporal.hashing import hash_of

HELD_STATE = "__karat_held_state"
"""Working: the state hash of a held row, computed as for an incoming one."""


def with_key_hash(rows: DataFrame, table: CuratedTable) -> DataFrame:
    """Every row with `_pk_hash`. Grain: unchanged."""
    return rows.withColumn(PK_HASH, hash_of(table.entity_key, rows.schema, table.hash))


def with_state_hash(rows: DataFrame, table: CuratedTable) -> DataFrame:
    """Every row with its state hashed, ready to be compared with the target; expects `_pk_hash`, `START` and `REASON`. Grain: unchanged."""
    business = business_columns(rows.columns, table)
    state = hash_of(tracked_columns(business, table), rows.schema, table.hash)
    return rows.withColumn(DIFF_HASH, state).select(*(col(name) for name in (*business, PK_HASH, DIFF_HASH, START, REASON)))


def business_columns(columns: Sequence[str], table: CuratedTable) -> Names:
    """The columns that are the user's own."""
    ours = {PK_HASH, DIFF_HASH, START, REASON}
    if table.scd_type == 2:  # noqa: PLR2004  (SCD type 2)
        ours |= {table.start.lower(), table.end.lower(), table.current.lower()}
    return tuple(name for name in columns if name.lower() not in ours)


def tracked_columns(business: Names, table: CuratedTable) -> Names:
    """The columns whose change counts: those declared, else every one that says something about the entity.

    Without a declaration a table with history leaves out what differs from row to row by nature (watermark, start,
    order columns); a table of present state leaves out the key alone, so that it shows the latest of everything.
    """
    if table.tracked is not None:
        return table.tracked
    aside = {name.lower() for name in table.entity_key}
    if table.scd_type == 2:  # noqa: PLR2004  (SCD type 2)
        aside |= {table.watermark.lower(), table.effective_from.lower(), *(order.column.lower() for order in table.order)}
    return tuple(sorted(name for name in business if name.lower() not in aside))


def held_state(held: DataFrame, tracked: Names, table: CuratedTable) -> DataFrame:
    """Held rows with their state hashed as today's configuration would: a changed list of tracked columns opens no version by itself."""
    return held.withColumn(HELD_STATE, hash_of(tracked, held.schema, table.hash))


def target_schema(shape: T.StructType, table: CuratedTable) -> T.StructType:
    """The schema of a new target: the user's columns, the hashes, and for SCD2 the period."""
    own = [T.StructField(field.name, field.dataType) for field in shape if field.name not in {PK_HASH, DIFF_HASH, START, REASON}]
    hashes = [T.StructField(PK_HASH, T.StringType()), T.StructField(DIFF_HASH, T.StringType())]
    period = [
        T.StructField(table.start, T.TimestampType()),
        T.StructField(table.end, T.TimestampType()),
        T.StructField(table.current, T.BooleanType()),
    ]
    return T.StructType([*own, *hashes, *(period if table.scd_type == 2 else [])])  # noqa: PLR2004  (SCD type 2)
