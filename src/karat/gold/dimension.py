"""States of members to rows of a dimension.

    held   Ann [1, 5)  Bea [5, …)          state   Cat @3
    rows   Ann [1, 3)  Cat [3, 5)  Bea [5, …)

A version that has a surrogate key keeps it, whatever is inserted around it: facts may point at it. A skeleton is filled by the first
state that follows: that version takes over its key and its start.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from karat.config.star import Dimension
from karat.gold.schema import (
    ADDED,
    AT,
    BEGIN,
    DELETE,
    DURABLE_KEY,
    EFFECTIVE_AT,
    HASHDIFF,
    HELD_KEY,
    IS_CURRENT,
    IS_DELETED,
    IS_SKELETON,
    KIND,
    ORDER,
    REACH,
    UPSERT,
    VALID_FROM,
    VALID_TO,
    tracked_columns,
)
from karat.temporal.columns import Names, col
from karat.temporal.hashing import hash_of
from karat.temporal.moments import moment
from karat.temporal.windows import all_of

_BEFORE = "__karat_before"
_VERSION = "__karat_version"
_STARTS = "__karat_starts"
_OPENS = "__karat_opens"
_NEXT = "__karat_next"
_HELD_BELOW = 1 << 40
"""Held versions are numbered below 0, so that they come before every commit."""


def with_hashdiff(states: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """The states with the hash of their tracked columns. Grain: unchanged."""
    return states.withColumn(HASHDIFF, hash_of(tracked_columns(columns, dimension), states.schema, "sha256"))


def held_states(held: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """Held versions as states. Grain: one row per version, one more where it ends by a delete or reaches back before its own time."""
    reaches = F.col(IS_SKELETON) | (F.col(VALID_FROM) < F.col(EFFECTIVE_AT))
    key = col(dimension.surrogate)
    states = F.array(
        F.when(reaches, _state(REACH, F.col(VALID_FROM), F.when(F.col(IS_SKELETON), key))),
        F.when(~F.col(IS_SKELETON), _state(UPSERT, F.coalesce(F.col(EFFECTIVE_AT), F.col(VALID_FROM)), key)),
        F.when(F.col(IS_DELETED), _state(DELETE, F.col(VALID_TO), F.lit(None).cast("bigint"))),
    )
    by_start = Window.partitionBy(*map(col, dimension.keys)).orderBy(F.col(VALID_FROM), F.col(VALID_TO).asc_nulls_last())
    numbered = held.withColumn(ORDER, F.row_number().over(by_start) - F.lit(_HELD_BELOW))
    exploded = numbered.select(*map(col, columns), ORDER, F.explode(F.array_compact(states)).alias("__karat_state"))
    return with_hashdiff(exploded, columns, dimension).select(*map(col, columns), HASHDIFF, "__karat_state.*", ORDER)


def versions(states: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """The members' versions with their periods; the surrogate key is null where a version has none yet. Grain: one row per version."""
    ordered = _distinct(_in_commit_order(states, dimension) if dimension.effective_at else states, dimension)
    by_time = Window.partitionBy(*map(col, dimension.keys)).orderBy(AT, ORDER, KIND)
    marked = _with_openings(ordered, by_time)
    said = _last_said(marked, columns, dimension)
    kept = said.where(F.col(_OPENS) | (F.col(KIND) == DELETE) | F.col(IS_SKELETON)).withColumn(
        _NEXT, F.lead(F.struct(AT, KIND)).over(by_time)
    )
    return _as_rows(kept.where(F.col(KIND) != DELETE), columns, dimension)


def latest(states: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """The members as they are now, one row each (SCD1). Grain: one row per natural key."""
    by_time = Window.partitionBy(*map(col, dimension.keys)).orderBy(F.col(AT).desc(), F.col(ORDER).desc(), F.col(KIND).desc())
    told = _in_commit_order(states, dimension) if dimension.effective_at else states
    whole = all_of(by_time)
    is_said = F.col(KIND) == UPSERT
    own = F.struct(*map(col, columns), F.col(HASHDIFF), F.col(AT).alias(EFFECTIVE_AT))
    first = told.withColumns(
        {
            "__karat_place": F.row_number().over(by_time),
            "__karat_said": F.first(F.when(is_said, own), ignorenulls=True).over(whole),
            HELD_KEY: F.max(HELD_KEY).over(whole),
            IS_DELETED: F.first(KIND).over(whole) == DELETE,
            "__karat_ended": F.first(AT).over(whole),
        }
    ).where((F.col("__karat_place") == 1) & (F.col("__karat_said").isNotNull() | F.col(HELD_KEY).isNotNull()))
    said = {name: F.col(f"__karat_said.`{name}`") for name in (*columns, HASHDIFF, EFFECTIVE_AT) if name not in dimension.keys}
    fixed = {
        VALID_FROM: moment(BEGIN),
        VALID_TO: F.when(F.col(IS_DELETED), F.col("__karat_ended")).otherwise(_open_end(dimension)),
        IS_CURRENT: ~F.col(IS_DELETED),
        IS_SKELETON: F.col("__karat_said").isNull(),
        dimension.surrogate: F.col(HELD_KEY),
        DURABLE_KEY: F.lit(None).cast("bigint"),
    }
    return first.withColumns({**said, **fixed}).select(col(dimension.surrogate), *map(col, columns), *ADDED)


def given_periods(rows: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """Rows that have periods already, taken as they are. Grain: one row per row."""
    if dimension.periods is None:
        return rows
    start, end = (col(name).cast("timestamp") for name in dimension.periods)
    by_start = Window.partitionBy(*map(col, dimension.keys)).orderBy(VALID_FROM)
    following = F.lead(VALID_FROM).over(by_start)
    dated = with_hashdiff(rows, columns, dimension).withColumns({VALID_FROM: start, EFFECTIVE_AT: start, _NEXT: end})
    fixed = {
        VALID_TO: F.coalesce(F.col(_NEXT), _open_end(dimension)),
        IS_CURRENT: F.col(_NEXT).isNull(),
        IS_DELETED: F.col(_NEXT).isNotNull() & (following.isNull() | (following > F.col(_NEXT))),
        IS_SKELETON: F.lit(False),
        dimension.surrogate: F.lit(None).cast("bigint"),
        DURABLE_KEY: F.lit(None).cast("bigint"),
    }
    return dated.withColumns(fixed).select(col(dimension.surrogate), *map(col, columns), *ADDED)


def _state(kind: int, at: Column, key: Column) -> Column:
    return F.struct(F.lit(kind).alias(KIND), at.alias(AT), key.alias(HELD_KEY))


def _in_commit_order(states: DataFrame, dimension: Dimension) -> DataFrame:
    """Times that agree with the order of commits around a delete: it ends what was there, and what is there again begins no earlier."""
    earlier = Window.partitionBy(*map(col, dimension.keys)).orderBy(ORDER, AT).rowsBetween(Window.unboundedPreceding, -1)
    begun = F.max(F.when(F.col(KIND) == UPSERT, F.col(AT))).over(earlier)
    gone = F.max(F.when(F.col(KIND) == DELETE, F.col(AT))).over(earlier)
    is_new = F.col(ORDER) >= 0
    ended = states.withColumn(AT, F.when(is_new & (F.col(KIND) == DELETE), F.greatest(F.col(AT), begun)).otherwise(F.col(AT)))
    return ended.withColumn(AT, F.when(is_new & (F.col(KIND) == UPSERT), F.greatest(F.col(AT), gone)).otherwise(F.col(AT)))


def _distinct(states: DataFrame, dimension: Dimension) -> DataFrame:
    """Of new states of one instant the last committed one, in the place of the held version of that instant, whose key it takes."""
    same = Window.partitionBy(*map(col, dimension.keys), AT, KIND)
    is_held = F.col(ORDER) < 0
    counted = states.withColumns({_NEXT: F.max(ORDER).over(same), _BEFORE: F.max(F.when(is_held, F.col(ORDER))).over(same)})
    taken = F.max(F.when(F.col(ORDER) == F.col(_BEFORE), F.col(HELD_KEY))).over(same)
    is_replaced = is_held & (F.col(_NEXT) >= 0) & (F.col(ORDER) == F.col(_BEFORE))
    keyed = counted.withColumn(HELD_KEY, F.when(is_held, F.col(HELD_KEY)).otherwise(taken))
    return keyed.where(F.when(is_held, ~is_replaced).otherwise(F.col(ORDER) == F.col(_NEXT))).drop(_NEXT, _BEFORE)


def _with_openings(states: DataFrame, by_time: WindowSpec) -> DataFrame:
    """Each state with whether it opens a version, the version's start and key, and whether a skeleton is still unfilled."""
    earlier = by_time.rowsBetween(Window.unboundedPreceding, -1)
    is_upsert = F.col(KIND) == UPSERT
    before = F.last(F.when(F.col(KIND) != REACH, F.struct(KIND, HASHDIFF)), ignorenulls=True).over(earlier)
    differs = F.col(_BEFORE).isNull() | (F.col(f"{_BEFORE}.{KIND}") == DELETE) | (F.col(f"{_BEFORE}.{HASHDIFF}") != F.col(HASHDIFF))
    reached = F.lag(F.struct(KIND, AT, HELD_KEY)).over(by_time)
    follows_reach = is_upsert & (F.col(f"{_NEXT}.{KIND}") == REACH)
    marked = states.withColumns({_BEFORE: before, _NEXT: reached})
    return marked.withColumns(
        {
            _OPENS: is_upsert & (F.col(HELD_KEY).isNotNull() | differs),
            _STARTS: F.when(follows_reach, F.col(f"{_NEXT}.{AT}")).otherwise(F.col(AT)),
            HELD_KEY: F.coalesce(F.col(HELD_KEY), F.when(follows_reach, F.col(f"{_NEXT}.{HELD_KEY}"))),
            IS_SKELETON: (F.col(KIND) == REACH)
            & F.col(HELD_KEY).isNotNull()
            & ~F.coalesce(F.lead(KIND).over(by_time) == UPSERT, F.lit(False)),
        }
    )


def _last_said(states: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """Columns that open no version, as they were said last during each version."""
    tracked = {name.lower() for name in (*tracked_columns(columns, dimension), *dimension.keys, *([dimension.effective_at or ""]))}
    untracked = [name for name in columns if name.lower() not in tracked]
    if not untracked:
        return states
    to_here = Window.partitionBy(*map(col, dimension.keys)).orderBy(AT, ORDER, KIND).rowsBetween(Window.unboundedPreceding, 0)
    numbered = states.withColumn(_VERSION, F.sum((F.col(_OPENS) | (F.col(KIND) != UPSERT)).cast("int")).over(to_here))
    of_version = all_of(Window.partitionBy(*map(col, dimension.keys), _VERSION).orderBy(AT, ORDER, KIND))
    return numbered.withColumns({name: F.last(col(name)).over(of_version) for name in untracked})


def _as_rows(kept: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    is_open = F.col(_NEXT).isNull()
    fixed = {
        VALID_FROM: F.when(F.col(KIND) == REACH, F.col(AT)).otherwise(F.col(_STARTS)),
        VALID_TO: F.when(is_open, _open_end(dimension)).otherwise(F.col(f"{_NEXT}.{AT}")),
        IS_CURRENT: is_open,
        IS_DELETED: F.coalesce(F.col(f"{_NEXT}.{KIND}") == DELETE, F.lit(False)),
        EFFECTIVE_AT: F.when(F.col(KIND) == UPSERT, F.col(AT)),
        dimension.surrogate: F.col(HELD_KEY),
        DURABLE_KEY: F.lit(None).cast("bigint"),
    }
    is_skeleton = F.col(KIND) == REACH
    own = {name: F.when(~is_skeleton, col(name)) for name in columns if name not in dimension.keys}
    rows = kept.withColumns({**fixed, **own, HASHDIFF: F.when(~is_skeleton, F.col(HASHDIFF))})
    return rows.select(col(dimension.surrogate), *map(col, columns), *ADDED)


def _open_end(dimension: Dimension) -> Column:
    return F.lit(None).cast("timestamp") if dimension.open_end is None else moment(dimension.open_end)
