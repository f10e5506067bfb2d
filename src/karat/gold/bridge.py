"""Rows between two dimensions, group by group: those of one member of the first side."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.config.star import Bridge
from karat.gold.keys import durable_key
from karat.temporal.columns import REASON, Names, col
from karat.temporal.windows import all_of

TOLERANCE = 1e-6
"""How far the weights of a group may be from 1 in sum: fractions such as 1/3 have no exact form."""


def group_columns(bridge: Bridge) -> Names:
    """The query's columns that name a group."""
    return tuple(column for _, column in bridge.sides[0].on)


def pair_columns(bridge: Bridge) -> Names:
    """The query's columns that name a row."""
    return tuple(dict.fromkeys(column for side in bridge.sides for _, column in side.on))


def with_reasons(rows: DataFrame, bridge: Bridge) -> DataFrame:
    """Each row once, with a reason where it, or its group, is refused. Grain: one row per distinct row."""
    group, pair = list(map(col, group_columns(bridge))), list(map(col, pair_columns(bridge)))
    lacks = F.lit(False)
    for column in pair:
        lacks = lacks | column.isNull()
    of_pair = Window.partitionBy(*pair).orderBy(F.lit(1))
    reason = F.when(lacks, F.lit("null key: a side of the bridge has no value")).when(
        F.count(F.lit(1)).over(all_of(of_pair)) > 1, F.lit("duplicate pair: several rows of the same two members")
    )
    marked = rows.distinct().withColumn(REASON, reason.cast("string"))
    if bridge.weight is None:
        return marked
    of_group = Window.partitionBy(*group)
    refused = F.max(F.col(REASON).isNotNull()).over(of_group)
    total = F.sum(F.when(F.col(REASON).isNull(), col(bridge.weight).cast("double"))).over(of_group)
    unweighted = F.max(col(bridge.weight).isNull()).over(of_group)
    text = F.coalesce(F.round(total, 6).cast("string"), F.lit("nothing"))
    off = F.concat(F.lit("weights: those of the group sum to "), text, F.lit(", not to 1"))
    is_off = unweighted | total.isNull() | (F.abs(total - 1) > TOLERANCE)
    by_group = F.when(is_off, off).when(refused, F.lit("group: another row of it is refused, and weights count only together"))
    return marked.withColumn(REASON, F.coalesce(F.col(REASON), by_group))


def with_member_keys(rows: DataFrame, bridge: Bridge) -> DataFrame:
    """The rows with the durable keys of both members. Grain: unchanged."""
    return rows.withColumns({side.into: _durable(side.on, bridge, place) for place, side in enumerate(bridge.sides)})


def _durable(on: tuple[tuple[str, str], ...], bridge: Bridge, place: int) -> Column:
    by_name = {name.lower(): column for name, column in on}
    return durable_key(tuple(by_name[name.lower()] for name in bridge.sides[place].dimension.keys))
