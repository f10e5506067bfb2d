"""Facts to facts with the keys of their dimensions: of each member the version that was valid at the fact's own time.

A lookup never changes the number of facts. Where nothing is found the key is null, and the declaration says what becomes of it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import BAD_VALUE, DimensionLookup
from karat.gold.schema import BEGIN, IS_CURRENT, VALID_FROM, VALID_TO
from karat.temporal.columns import Names, col
from karat.temporal.moments import moment
from karat.temporal.windows import all_of

AMBIGUOUS: Final = "__karat_ambiguous"
"""Working: the lookup that found several members for a fact; null where none did."""
_MEMBER, _FACT = "member", "fact"


def with_keys_of_dimensions(
    facts: DataFrame, lookups: Sequence[DimensionLookup], members: Mapping[str, DataFrame], grain: Names
) -> DataFrame:
    """The facts with the key of every lookup, null where nothing is found, and `AMBIGUOUS`. Grain: one row per fact."""
    found = facts.withColumn(AMBIGUOUS, F.lit(None).cast("string"))
    for lookup in lookups:
        found = _looked_up(found, lookup, members[lookup.dimension.name], grain)
    return found


def key_columns(lookup: DimensionLookup) -> Names:
    """The columns under which a fact's natural key of a dimension is found among its working columns."""
    return tuple(f"__karat_{lookup.into}_{place}" for place in range(len(lookup.on)))


def time_column(lookup: DimensionLookup) -> str:
    """The working column of the time for which a lookup asks."""
    return f"__karat_{lookup.into}_at"


def with_lookup_values(facts: DataFrame, lookup: DimensionLookup, types: T.StructType) -> DataFrame:
    """The facts with what a lookup asks for: the natural key in the dimension's types, and the time. Grain: unchanged."""
    held = {field.name.lower(): field.dataType for field in types}
    keys = {
        name: F.expr(expression).try_cast(held[column.lower()])
        for name, (column, expression) in zip(key_columns(lookup), lookup.on, strict=True)
    }
    at = F.lit(None).cast("timestamp") if lookup.at is None else F.expr(lookup.at).cast("timestamp")
    said = F.lit(True)
    for _, expression in lookup.on:
        said = said & F.expr(expression).isNotNull()
    return facts.withColumns({**keys, time_column(lookup): at, _said(lookup): said})


def asks_by_time(lookup: DimensionLookup) -> bool:
    """Whether the version of a member depends on the fact's time."""
    return lookup.dimension.has_history and lookup.at is not None


def is_whole_key(lookup: DimensionLookup) -> bool:
    """Whether the lookup names every column of the natural key: then no two members are found."""
    return {name.lower() for name, _ in lookup.on} == {name.lower() for name in lookup.dimension.keys}


def _looked_up(facts: DataFrame, lookup: DimensionLookup, members: DataFrame, grain: Names) -> DataFrame:
    dimension = lookup.dimension
    asked = with_lookup_values(facts, lookup, members.schema)
    names = key_columns(lookup)
    period = (F.col(VALID_FROM), F.col(VALID_TO)) if asks_by_time(lookup) else ()
    wanted = [col(column).alias(f"__karat_m{place}") for place, (column, _) in enumerate(lookup.on)]
    there = members if asks_by_time(lookup) or not dimension.has_history else members.where(F.col(IS_CURRENT))
    found = there.select(*wanted, *period, col(dimension.surrogate).alias(lookup.into)).alias(_MEMBER)
    same = F.lit(True)
    for place, name in enumerate(names):
        same = same & (col(f"__karat_m{place}", _MEMBER) == col(name, _FACT))
    if asks_by_time(lookup):
        at = col(time_column(lookup), _FACT)
        ends = col(VALID_TO, _MEMBER)
        same = same & (col(VALID_FROM, _MEMBER) <= at) & (ends.isNull() | (ends > at))
    kept = [col(name, _FACT).alias(name) for name in facts.columns]
    joined = asked.alias(_FACT).join(found, same, "left").select(*kept, _key(lookup).alias(lookup.into))
    return joined if is_whole_key(lookup) else _one_of_each(joined, lookup, grain)


def _key(lookup: DimensionLookup) -> Column:
    """The member's key; a reserved one where the fact has no natural key, or one that cannot be."""
    fits = F.lit(True)
    for name in key_columns(lookup):
        fits = fits & col(name, _FACT).isNotNull()
    if asks_by_time(lookup):
        at = col(time_column(lookup), _FACT)
        fits = fits & at.isNotNull() & (at >= moment(BEGIN))
    is_said = col(_said(lookup), _FACT)
    reserved = F.when(~is_said, F.lit(lookup.when_null)).when(~fits, F.lit(BAD_VALUE)).cast("bigint")
    return F.coalesce(reserved, col(lookup.into, _MEMBER))


def _said(lookup: DimensionLookup) -> str:
    return f"__karat_{lookup.into}_said"


def _one_of_each(joined: DataFrame, lookup: DimensionLookup, grain: Names) -> DataFrame:
    """Each fact once; where several members were found, that is noted and no key is taken."""
    of_fact = Window.partitionBy(*map(col, grain)).orderBy(col(lookup.into))
    counted = joined.withColumns(
        {"__karat_place": F.row_number().over(of_fact), "__karat_many": F.count(F.lit(1)).over(all_of(of_fact)) > 1}
    ).where(F.col("__karat_place") == 1)
    noted = F.coalesce(F.col(AMBIGUOUS), F.when(F.col("__karat_many"), F.lit(lookup.into)))
    return counted.withColumn(AMBIGUOUS, noted).drop("__karat_place", "__karat_many")
