"""Members that a fact knows before their source tells of them.

    no version of the member        a skeleton from the beginning of time on
    the fact lies before a version  that version reaches back to where the one before it ended, or to the beginning of time
    the fact lies after a delete    a skeleton from the delete on

A skeleton is written in a commit of the dimension's own stage, under its next number: of two facts that race for one member the second
meets a conflict, starts again, and finds the member there. The commit keeps the position of the dimension, so nothing of its sources is
taken for read.
"""

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import Dimension, DimensionLookup
from karat.gold.context import DimensionState, StarContext
from karat.gold.keys import IS_NEW, check_collisions, with_keys
from karat.gold.lookups import asks_by_time, key_columns, time_column
from karat.gold.members import columns_of, without_reserved
from karat.gold.schema import (
    BEGIN,
    DURABLE_KEY,
    EFFECTIVE_AT,
    HASHDIFF,
    IS_CURRENT,
    IS_DELETED,
    IS_SKELETON,
    VALID_FROM,
    VALID_TO,
    dimension_spec,
)
from karat.lake.changes import change_set, write
from karat.lake.materialized import materialized
from karat.temporal.changes import difference
from karat.temporal.columns import col
from karat.temporal.moments import moment

_FACT_AT = "__karat_fact_at"
_GAP = "__karat_gap"


def asked_members(missing: DataFrame, lookups: list[DimensionLookup], schema: T.StructType) -> DataFrame:
    """The natural keys and times for which lookups of one dimension found nothing. Grain: one row per key and time."""
    found = []
    for lookup in lookups:
        rows = missing.where(col(lookup.into).isNull())
        names = {column.lower(): name for name, (column, _) in zip(key_columns(lookup), lookup.on, strict=True)}
        keys = [col(names[key.lower()]).cast(schema[key].dataType).alias(key) for key in lookup.dimension.keys]
        at = col(time_column(lookup)) if asks_by_time(lookup) else F.lit(None).cast("timestamp")
        found.append(rows.select(*keys, at.alias(_FACT_AT)).distinct())
    return reduce(DataFrame.unionByName, found).distinct()


def mint_skeletons(asked: DataFrame, known: DimensionState, context: StarContext) -> tuple[int, DimensionState]:
    """The dimension afterwards has a version for every key and time that was asked for. Returns how many rows it gained or changed."""
    dimension, tables = known.dimension, context.tables
    held = without_reserved(tables.read(dimension.table, known.state.version), dimension)
    of_keys = held.join(asked.select(*map(col, dimension.keys)).distinct(), list(dimension.keys), "left_semi").select(
        *map(col, held.columns)
    )
    columns = columns_of(held.schema, dimension)
    with materialized(of_keys) as there:
        fresh = _with_gaps_filled(there, asked, dimension)
        spec = dimension_spec(columns, dimension)
        with materialized(difference(fresh, there, spec, ignored=[DURABLE_KEY])) as rows:
            highest = highest_key(held, dimension)
            with materialized(with_keys(rows, dimension, highest)) as keyed:
                check_collisions(keyed.where(IS_NEW), held, dimension)
                changes = change_set(keyed, spec)
                stage = str(dimension.table)
                commit = context.run.commit(stage, known.state.next_number, **known.state.checkpoint.position)
                written = write(changes, dimension.table, tables, replace(commit, writer=str(context.star.table)))
    return written.inserted + written.updated, replace(known, state=tables.state(dimension.table, stage))


def highest_key(held: DataFrame, dimension: Dimension) -> int:
    """The highest surrogate key so far; asked only where keys are counted."""
    if dimension.strategy != "sequence":
        return 0
    row = held.agg(F.max(col(dimension.surrogate)).alias("highest")).collect()[0]
    return max(0, row["highest"] or 0)


def _with_gaps_filled(held: DataFrame, asked: DataFrame, dimension: Dimension) -> DataFrame:
    """The held versions of the asked members, and what fills the gaps in which facts lie. Grain: one row per version."""
    keys = list(map(col, dimension.keys))
    if not dimension.has_history:
        gaps = asked.select(*keys).distinct().withColumn(_GAP, moment(BEGIN))
        return held.unionByName(_skeletons(gaps.join(held.select(*keys), list(dimension.keys), "left_anti"), held.schema, dimension))
    by_start = Window.partitionBy(*keys).orderBy(VALID_FROM)
    periods = held.select(*keys, VALID_FROM, VALID_TO).withColumn("__karat_ended", F.lag(VALID_TO).over(by_start))
    gap_start = F.coalesce(F.col("__karat_ended"), moment(BEGIN))
    before = periods.select(*keys, gap_start.alias(_GAP), F.col(VALID_FROM).alias("__karat_until")).where(
        F.col(_GAP) < F.col("__karat_until")
    )
    reached = _in_gap(asked, before, dimension).select(*keys, F.col(_GAP), F.col("__karat_until").alias(VALID_FROM)).distinct()
    joined = held.join(reached.withColumnRenamed(_GAP, "__karat_start"), [*dimension.keys, VALID_FROM], "left")
    moved = joined.withColumn(VALID_FROM, F.coalesce(F.col("__karat_start"), F.col(VALID_FROM))).select(*map(col, held.columns))
    last = periods.groupBy(*keys).agg(F.max_by(VALID_TO, VALID_FROM).alias("__karat_last"), F.max(VALID_FROM).alias("__karat_first"))
    after = asked.join(last, list(dimension.keys), "left")
    is_after = F.col("__karat_first").isNull() | (F.col("__karat_last").isNotNull() & (F.col(_FACT_AT) >= F.col("__karat_last")))
    open_gaps = after.where(is_after).select(*keys, F.coalesce(F.col("__karat_last"), moment(BEGIN)).alias(_GAP)).distinct()
    return moved.unionByName(_skeletons(open_gaps, held.schema, dimension))


def _in_gap(asked: DataFrame, gaps: DataFrame, dimension: Dimension) -> DataFrame:
    """The gaps in which an asked time lies; a lookup without a time asks for the first."""
    joined = asked.join(gaps, list(dimension.keys))
    return joined.where((F.col(_FACT_AT) >= F.col(_GAP)) & (F.col(_FACT_AT) < F.col("__karat_until")))


def _skeletons(gaps: DataFrame, schema: T.StructType, dimension: Dimension) -> DataFrame:
    """A version without attributes for each gap that nothing follows. Grain: one row per gap."""
    open_end = F.lit(None) if dimension.open_end is None else moment(dimension.open_end)
    fixed = {
        VALID_FROM: F.col(_GAP),
        VALID_TO: open_end,
        IS_CURRENT: F.lit(True),
        IS_DELETED: F.lit(False),
        IS_SKELETON: F.lit(True),
        HASHDIFF: F.lit(None),
        EFFECTIVE_AT: F.lit(None),
    }
    keys = {name.lower(): name for name in dimension.keys}

    def value(field: T.StructField) -> Column:
        if field.name.lower() in keys:
            return col(keys[field.name.lower()])
        return fixed.get(field.name, F.lit(None))

    return gaps.select(*(value(field).cast(field.dataType).alias(field.name) for field in schema))
