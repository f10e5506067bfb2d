"""Late rows take their place in history: versions as a pure function of the source's rows and the held ones.

    held                     incoming      versions
    A [1, open)              C@3           A [1, 3), C [3, open)
    A [1, 3), C [3, open)    B@2           A [1, 2), B [2, 3), C [3, open)
    A [1, open)              B@2, A@3      A [1, 2), B [2, 3), A [3, open)
    A [5, open)              A@1           A [1, open)

`incoming` must hold every row that the source still has of its keys, not only what is new: a repeat that opened no
version (the A@3 above) is nowhere in the target, and a late row before it has to find it again.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable
from karat.curation.changes import DELETE, INSERT, REFUSE, UPDATE
from karat.curation.deduplication import by_every_column, oldest_first
from karat.curation.hash_columns import HELD_STATE, business_columns, held_state, tracked_columns
from karat.temporal.columns import ACTION, DIFF_HASH, MATCH_KEY, MATCH_START, MATCH_STATE, PK_HASH, REASON, START, col
from karat.temporal.moments import moment

_HELD_END = "__karat_held_end"
_HELD_CURRENT = "__karat_held_current"
_OPENS = "__karat_opens"
_NEXT = "__karat_next"
_COPY = "__karat_copy"
_PLACE = "__karat_place"
_LAST_PLACE = "__karat_last_place"


def changes_with_late_rows(incoming: DataFrame, held: DataFrame, table: CuratedTable) -> DataFrame:
    """SCD2. `held`: all versions of the keys in `incoming`. Grain: one row per version to open, to change or to remove."""
    business = business_columns(incoming.columns, table)
    return (
        _statements(incoming, held, table)
        .transform(_distinct_states, table)
        .transform(_with_periods, table)
        .withColumn(ACTION, _action(table))
        .unionByName(incoming.where(F.col(REASON).isNotNull()).withColumn(ACTION, F.lit(REFUSE)), allowMissingColumns=True)
        .where(F.col(ACTION).isNotNull())
        .select(
            *(
                col(name)
                for name in (
                    *business,
                    PK_HASH,
                    DIFF_HASH,
                    ACTION,
                    MATCH_KEY,
                    MATCH_START,
                    MATCH_STATE,
                    REASON,
                    table.start,
                    table.end,
                    table.current,
                )
            )
        )
    )


def _statements(incoming: DataFrame, held: DataFrame, table: CuratedTable) -> DataFrame:
    """Held versions and admitted rows as rows of one kind. Grain: one row per held version and per admitted row."""
    business = business_columns(incoming.columns, table)
    present = {name.lower() for name in held.columns}
    known = held.transform(held_state, tracked_columns(business, table), table).select(
        *(col(name) for name in business if name.lower() in present),
        col(PK_HASH),
        F.col(HELD_STATE).alias(DIFF_HASH),
        col(table.start).alias(START),
        col(PK_HASH).alias(MATCH_KEY),
        col(table.start).alias(MATCH_START),
        col(DIFF_HASH).alias(MATCH_STATE),
        col(table.end).alias(_HELD_END),
        col(table.current).alias(_HELD_CURRENT),
    )
    return known.unionByName(incoming.where(F.col(REASON).isNull()), allowMissingColumns=True)


def _distinct_states(statements: DataFrame, table: CuratedTable) -> DataFrame:
    """The same state at the same time counts once, at the position of the last. Grain: (key, time, state).

    Of states that replace each other at one moment (A, B, A again) the last one stays, whichever of them is held already.
    """
    same = Window.partitionBy(PK_HASH, START, DIFF_HASH)
    held_first = same.orderBy(F.col(MATCH_KEY).asc_nulls_last(), F.col(_PLACE).desc())
    return (
        statements.withColumn(_PLACE, F.row_number().over(_in_order(statements, table)))
        .withColumns({_COPY: F.row_number().over(held_first), _LAST_PLACE: F.max(_PLACE).over(same)})
        .where(F.col(_COPY) == 1)
        .drop(_COPY, _PLACE)
    )


def _with_periods(statements: DataFrame, table: CuratedTable) -> DataFrame:
    """A statement opens a version when it differs from the one before it; a version ends where the next one opens."""
    order = Window.partitionBy(PK_HASH).orderBy(F.col(START), F.col(_LAST_PLACE))
    following = order.rowsBetween(1, Window.unboundedFollowing)
    previous = F.lag(DIFF_HASH).over(order)
    return (
        statements.withColumn(_OPENS, previous.isNull() | (previous != F.col(DIFF_HASH)))
        .withColumn(_NEXT, F.first(F.when(F.col(_OPENS), F.col(START)), ignorenulls=True).over(following))
        .withColumns(
            {
                table.start: F.col(START),
                table.end: F.coalesce(F.col(_NEXT), moment(table.open_end)),
                table.current: F.col(_NEXT).isNull(),
            }
        )
    )


def _in_order(statements: DataFrame, table: CuratedTable) -> WindowSpec:
    """Time; then the configured order reversed, so that the row a deduplication would keep comes last; then every column, for replays."""
    present = {name.lower() for name in statements.columns}
    ties = [oldest_first(order) for order in table.order if order.column.lower() in present]
    return Window.partitionBy(PK_HASH).orderBy(F.col(START), *ties, F.col(DIFF_HASH), *by_every_column(statements))


def _action(table: CuratedTable) -> Column:
    is_held = F.col(MATCH_KEY).isNotNull()
    moved = ~F.col(_HELD_END).eqNullSafe(col(table.end)) | ~F.col(_HELD_CURRENT).eqNullSafe(col(table.current))
    return F.when(is_held & ~F.col(_OPENS), DELETE).when(is_held & moved, UPDATE).when(~is_held & F.col(_OPENS), INSERT)
