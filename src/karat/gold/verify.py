"""A table of the star compared with what its sources give, as of the versions that it has read.

periods and bridges        every row
facts                      every row whose source is still there; keys of dimensions by their own policy
members without history    the latest row of each
members with history       every version where the change feed is there from the beginning (`initial: changes`), else the current ones
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from karat.config.star import Bridge, Dimension, Fact, Star
from karat.gold.bridge import pair_columns, with_member_keys, with_reasons
from karat.gold.context import StarContext, looked_up, star_context
from karat.gold.dimension import given_periods, versions, with_hashdiff
from karat.gold.fact import latest_of_each_grain
from karat.gold.lookups import AMBIGUOUS, with_keys_of_dimensions
from karat.gold.members import columns_of, without_reserved
from karat.gold.reading import Work, changes, everything
from karat.gold.refused import refused_rows
from karat.gold.schema import (
    CHANGE,
    COMMIT,
    COMMITTED_AT,
    DURABLE_KEY,
    EFFECTIVE_AT,
    HASHDIFF,
    HELD_KEY,
    IS_CURRENT,
    IS_DELETED,
    IS_SKELETON,
    KIND,
    UPSERT,
    VALID_FROM,
    VALID_TO,
)
from karat.gold.states import dated, settled
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.verification import MEANING, MOST_SHOWN, Verified, compared, readable
from karat.plan.stages import Load
from karat.temporal.changes import TableSpec
from karat.temporal.columns import ACTION, REASON, Names, col


@dataclass(frozen=True)
class _Compared:
    """A table as its sources have it, and as it is held."""

    fresh: DataFrame
    held: DataFrame
    spec: TableSpec
    keeps_more: bool = False
    """Whether rows that sources no longer have may stay."""


def verify_star(star: Star, run: RunContext) -> Verified:
    """Compare the table with its sources; reads everything, changes nothing."""
    context = star_context(Load(star, None, "verify"), run)
    if not context.state.exists or context.is_first:
        return Verified(str(star.table), equal=True)
    context = replace(context, sources=tuple(replace(each, version=each.read or each.version, read=None) for each in context.sources))
    found = _compared(star, context)
    with materialized(compared(found.fresh, found.held, found.spec)) as rows:
        differences = rows.where(F.col(ACTION) != "delete") if found.keeps_more else rows
        counts = {MEANING[row[ACTION]]: row["count"] for row in differences.groupBy(ACTION).count().collect()}
        if not counts:
            return Verified(str(star.table), equal=True)
        identity = found.spec.identity
        first = readable(differences.orderBy(*map(col, identity), ACTION).limit(MOST_SHOWN)).collect()
        stored = readable(found.held.join(differences.select(*map(col, identity)), list(identity), "left_semi").limit(10 * MOST_SHOWN))
        held = {tuple(row[name] for name in identity): row for row in stored.collect()}
        told = tuple(_explained(row, held, identity) for row in first)
    return Verified(str(star.table), equal=False, differences=told, counts=counts)


def _compared(star: Star, context: StarContext) -> _Compared:
    match star:
        case Dimension():
            return _dimension(star, context)
        case Fact():
            return _fact(star, context)
        case Bridge():
            return _bridge(star, context)


def _dimension(dimension: Dimension, context: StarContext) -> _Compared:
    keys = dimension.keys
    table = without_reserved(context.tables.read(dimension.table, context.state.version), dimension)
    held = table.where(~F.col(IS_SKELETON))
    columns = columns_of(held.schema, dimension)
    if dimension.calendar is not None:
        return _Compared(held.select(*map(col, columns)), held.select(*map(col, columns)), TableSpec(columns, keys))
    if dimension.periods is not None:
        rows = everything(context).drop(CHANGE, COMMIT, COMMITTED_AT)
        spec = TableSpec((*columns, VALID_FROM, VALID_TO), (*keys, VALID_FROM))
        fresh = given_periods(rows.where(_has_key(keys)), columns, dimension)
        return _Compared(_only(fresh, spec), _only(held, spec), spec)
    if dimension.has_history and dimension.from_changes:
        feeds = tuple(each for each in context.sources if each.source.is_feed)
        told = _with_states(dated(settled(changes(context, Work(drivers=feeds)), keys), dimension.effective_at), columns, dimension)
        spec = TableSpec((*columns, HASHDIFF, VALID_FROM, VALID_TO, IS_DELETED), (*keys, VALID_FROM))
        own_start = held.withColumn(VALID_FROM, F.coalesce(F.col(EFFECTIVE_AT), F.col(VALID_FROM)))
        fresh = versions(told, columns, dimension)
        return _Compared(_only(_joined(fresh, keys), spec), _only(_joined(own_start, keys), spec), spec)
    now = everything(context).where(_has_key(keys)).select(*map(col, columns))
    current = held.where(F.col(IS_CURRENT)) if dimension.has_history else held.where(~F.col(IS_DELETED))
    spec = TableSpec(columns, keys)
    return _Compared(now, _only(current, spec), spec, keeps_more=_keeps_absent(dimension))


def _keeps_absent(dimension: Dimension) -> bool:
    return not dimension.absence_deletes and not any(source.is_feed for source in dimension.sources)


def _with_states(states: DataFrame, columns: Names, dimension: Dimension) -> DataFrame:
    """States of a whole change feed, as those that a load would compare. Grain: unchanged."""
    admitted = refused_rows(states, dimension.keys, "natural key", dimension.effective_at).where(F.col(REASON).isNull()).drop(REASON)
    return with_hashdiff(admitted, columns, dimension).withColumn(HELD_KEY, F.lit(None).cast("bigint"))


def _joined(rows: DataFrame, keys: Names) -> DataFrame:
    """Versions of one state that follow each other without a gap as one: a version that has a key keeps it. Grain: one row per state."""
    by_start = Window.partitionBy(*map(col, keys)).orderBy(VALID_FROM)
    continues = (F.lag(HASHDIFF).over(by_start) == F.col(HASHDIFF)) & (F.lag(VALID_TO).over(by_start) == F.col(VALID_FROM))
    numbered = rows.withColumn("__karat_starts", (~F.coalesce(continues, F.lit(False))).cast("int")).withColumn(
        "__karat_state", F.sum("__karat_starts").over(by_start)
    )
    of_state = Window.partitionBy(*map(col, keys), "__karat_state").orderBy(VALID_FROM)
    whole = of_state.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ended = {VALID_TO: F.last(VALID_TO).over(whole), IS_DELETED: F.last(IS_DELETED).over(whole)}
    return numbered.withColumns(ended).where(F.col("__karat_starts") == 1)


def _fact(fact: Fact, context: StarContext) -> _Compared:
    held = context.tables.read(fact.table, context.state.version)
    intos = tuple(lookup.into for lookup in fact.lookups)
    columns = tuple(name for name in held.columns if name not in intos)
    states = refused_rows(dated(settled(everything(context), fact.grain), None), fact.grain, "grain").where(F.col(REASON).isNull())
    rows = latest_of_each_grain(states.drop(REASON), columns, fact).where(F.col(KIND) == UPSERT).select(*map(col, columns))
    if fact.load == "periodic" and fact.period is not None:
        held = held.join(rows.select(col(fact.period)).distinct(), fact.period, "left_semi").select(*map(col, held.columns))
    members = {name: context.tables.read(dimension.table) for name, dimension in looked_up(fact).items()}
    keyed = with_keys_of_dimensions(rows, fact.lookups, members, fact.grain).where(F.col(AMBIGUOUS).isNull())
    refused = F.lit(False)
    for lookup in fact.lookups:
        refused = refused | (F.lit(lookup.missing == "quarantine") & col(lookup.into).isNull())
    known = tuple(name for name in columns if name not in fact.milestones)
    spec = TableSpec((*intos, *known), fact.grain)
    sides = [keyed.where(~refused), held]
    for lookup in fact.lookups:
        sides = [_comparable_key(side, lookup.into, members[lookup.dimension.name], lookup.dimension) for side in sides]
    keeps_more = fact.keeps_deleted or fact.load == "append" or not any(source.is_feed for source in fact.sources)
    return _Compared(_only(sides[0], spec), _only(sides[1], spec), spec, keeps_more=keeps_more)


def _comparable_key(facts: DataFrame, into: str, members: DataFrame, dimension: Dimension) -> DataFrame:
    """Keys of a dimension whose facts are not re-pointed by their member: a fact stays with the version that it found. Grain: unchanged."""
    named = facts.withColumn(into, F.coalesce(col(into), F.lit(-3).cast("bigint")))
    if dimension.repoints or not dimension.has_history:
        return named
    durable = members.select(col(dimension.surrogate).alias("__karat_key"), F.col(DURABLE_KEY).alias("__karat_member"))
    joined = named.join(durable, col(into) == F.col("__karat_key"), "left")
    return joined.withColumn(into, F.coalesce(F.col("__karat_member"), col(into))).select(*map(col, facts.columns))


def _bridge(bridge: Bridge, context: StarContext) -> _Compared:
    held = context.tables.read(bridge.table, context.state.version)
    spec = TableSpec(tuple(held.columns), pair_columns(bridge))
    rows = everything(context).drop(CHANGE, COMMIT, COMMITTED_AT)
    fresh = with_member_keys(with_reasons(rows, bridge), bridge).where(F.col(REASON).isNull())
    return _Compared(_only(fresh, spec), _only(held, spec), spec)


def _has_key(keys: Names) -> Any:  # noqa: ANN401  (a column)
    found = F.lit(True)
    for name in keys:
        found = found & col(name).isNotNull()
    return found


def _only(rows: DataFrame, spec: TableSpec) -> DataFrame:
    return rows.select(*map(col, spec.columns))


def _explained(row: Row, held: Mapping[tuple[Any, ...], Row], identity: Names) -> Mapping[str, Any]:
    """One difference: which row, what kind, and for a changed one which columns."""
    found: dict[str, Any] = {
        "what": MEANING[row[ACTION]],
        "bk": ", ".join(str(row[name]) for name in identity),
        "source_system": "the sources",
    }
    stored = held.get(tuple(row[name] for name in identity))
    if row[ACTION] == "update" and stored is not None:
        fields = stored.asDict()
        found["columns"] = {name: {"held": fields[name], "evidence": row[name]} for name in fields if fields[name] != row[name]}
    return found
