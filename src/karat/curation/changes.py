"""A batch compared with what is held: the rows that must change, each with its action.

    held                 batch        changes
    A [1, open)          A@5          none: nothing changed
    A [1, open)          B@5          update A → [1, 5), insert B [5, open)
    A [5, open)          B@1          none: older than what is held (`place` puts it in front instead)
    nothing              A@1          insert A [1, open)

Every function here is pure. Its output has the target's columns, `ACTION`, and the `MATCH_*` columns that say which
held row an action is about. Refused rows pass through as `refuse`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable, OrderBy
from karat.curation.hash_columns import HELD_STATE, business_columns, held_state, tracked_columns
from karat.temporal.columns import ACTION, DIFF_HASH, MATCH_KEY, MATCH_START, MATCH_STATE, PK_HASH, REASON, START, Names, col
from karat.temporal.moments import moment

INSERT, UPDATE, DELETE, REFUSE = "insert", "update", "delete", "refuse"


def state_changes(batch: DataFrame, held: DataFrame, table: CuratedTable) -> DataFrame:
    """SCD1. Grain: one row per key to insert or overwrite."""
    pairs = _paired(batch, held, table)
    action = F.when(F.col(REASON).isNotNull(), REFUSE).when(_is_new(), INSERT).when(_differs() & ~_is_older(table, batch, held), UPDATE)
    return pairs.withColumn(ACTION, action).where(F.col(ACTION).isNotNull()).select(*_output(batch, table))


def version_changes(batch: DataFrame, held: DataFrame, table: CuratedTable) -> DataFrame:
    """SCD2. `held`: the current versions. Grain: one row per version to close and per version to open."""
    pairs = _paired(batch, held, table)
    none = F.array().cast("array<string>")
    actions = (
        F.when(F.col(REASON).isNotNull(), F.array(F.lit(REFUSE)))
        .when(_is_new(), F.array(F.lit(INSERT)))
        .when(_differs() & ~_is_older(table, batch, held), F.array(F.lit(UPDATE), F.lit(INSERT)))
        .otherwise(none)
    )
    closes = F.col(ACTION) == UPDATE
    return (
        pairs.withColumn(ACTION, F.explode(actions))
        .withColumns(
            {
                table.start: F.when(closes, F.col(MATCH_START)).otherwise(F.col(START)),
                table.end: F.when(closes, F.col(START)).otherwise(moment(table.open_end)),
                table.current: ~closes,
                MATCH_KEY: F.when(closes, F.col(MATCH_KEY)),
            }
        )
        .select(*_output(batch, table), col(table.start), col(table.end), col(table.current))
    )


def _paired(batch: DataFrame, held: DataFrame, table: CuratedTable) -> DataFrame:
    """Each batch row joined to the held row of its key, if there is one. Grain: one row per batch row."""
    tracked = tracked_columns(business_columns(batch.columns, table), table)
    known = held.transform(held_state, tracked, table).select(
        col(PK_HASH).alias(MATCH_KEY),
        _held_start(held, table).alias(MATCH_START),
        col(DIFF_HASH).alias(MATCH_STATE),
        F.col(HELD_STATE),
        *(col(order.column).alias(_held(order)) for order in _comparable(table, batch, held)),
    )
    same_entity = F.col(f"new.{PK_HASH}") == F.col(f"known.{MATCH_KEY}")
    return batch.alias("new").join(known.alias("known"), same_entity, how="left")


def _held_start(held: DataFrame, table: CuratedTable) -> Column:
    """When the held row begins to hold: its period's start, or for SCD1 its own time where the target keeps that."""
    name = table.start if table.scd_type == 2 else table.effective_from  # noqa: PLR2004  (SCD type 2)
    present = name.lower() in {column.lower() for column in held.columns}
    return col(name).cast("timestamp") if present else F.lit(None).cast("timestamp")


def _is_new() -> Column:
    return F.col(MATCH_KEY).isNull()


def _differs() -> Column:
    return F.col(DIFF_HASH) != F.col(HELD_STATE)


def _is_older(table: CuratedTable, batch: DataFrame, held: DataFrame) -> Column:
    """Whether the batch row comes before the held one: by its time, then by the order columns both sides have."""
    earlier = F.coalesce(F.col(START) < F.col(MATCH_START), F.lit(False))
    same_time = F.coalesce(F.col(START) == F.col(MATCH_START), F.lit(False))
    tie: Column = F.lit(False)
    for order in reversed(_comparable(table, batch, held)):
        tie = _decided_by(order, tie)
    return earlier | (same_time & tie)


def _decided_by(order: OrderBy, otherwise: Column) -> Column:
    """Whether the order would keep the held row rather than the new one; `otherwise` when it does not tell them apart."""
    new, known = col(order.column), col(_held(order))
    nulls_kept = not order.descending if order.nulls_first is None else order.nulls_first
    return (
        F.when(new.eqNullSafe(known), otherwise)
        .when(new.isNull(), F.lit(not nulls_kept))
        .when(known.isNull(), F.lit(nulls_kept))
        .otherwise(new < known if order.descending else new > known)
    )


def _comparable(table: CuratedTable, batch: DataFrame, held: DataFrame) -> list[OrderBy]:
    """Order columns both sides have; the time itself is compared already."""
    kept = {name.lower() for name in business_columns(held.columns, table)} & {name.lower() for name in batch.columns}
    return [order for order in table.order if order.column.lower() in kept - {table.effective_from.lower()}]


def _held(order: OrderBy) -> str:
    return f"__karat_held_{order.column}"


def _output(batch: DataFrame, table: CuratedTable) -> list[Column]:
    names: Names = (*business_columns(batch.columns, table), PK_HASH, DIFF_HASH, ACTION, MATCH_KEY, MATCH_START, MATCH_STATE, REASON)
    return [col(name) for name in names]
