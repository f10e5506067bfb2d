"""Facts in the period of a version that came after them: they are pointed at it, or stay as they are, and either way are on record."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import Fact
from karat.gold.context import DimensionState, StarContext
from karat.gold.lookups import AMBIGUOUS, asks_by_time, with_keys_of_dimensions
from karat.gold.schema import VALID_FROM
from karat.lake.preparation import ensure
from karat.lake.tables import Layout
from karat.sources.changes import change_rows
from karat.temporal.columns import Names, col
from karat.temporal.moments import moment

_NOW = "__karat_now_"
_FIRST = "__karat_first"


def late_facts(fact: Fact, columns: Names, dimensions: dict[str, DimensionState], context: StarContext) -> DataFrame:
    """Held facts whose lookup has another answer by now, with that answer. Grain: one row per fact."""
    held = context.tables.read(fact.table, context.state.version)
    members = {name: context.tables.read(known.dimension.table, known.state.version) for name, known in dimensions.items()}
    wanted = [col(name) for name in (*(lookup.into for lookup in fact.lookups), *columns)]
    near = held.select(*wanted).where(F.lit(False))
    for lookup in fact.lookups:
        known = dimensions[lookup.dimension.name]
        if not asks_by_time(lookup) or known.read is None or known.state.version == known.read:
            continue
        new = _new_periods(known, context)
        same = F.lit(True)
        named = new.select(F.col(_FIRST), *(col(column).alias(f"{_NOW}{place}") for place, (column, _) in enumerate(lookup.on)))
        for place, (_, expression) in enumerate(lookup.on):
            same = same & (F.col(f"{_NOW}{place}") == F.expr(expression))
        same = same & (F.expr(lookup.at or "null").cast("timestamp") >= F.col(_FIRST))
        near = near.unionByName(held.select(*wanted).join(named, same, "left_semi"))
    before = near.dropDuplicates(list(fact.grain))
    again = with_keys_of_dimensions(before.select(*map(col, columns)), fact.lookups, members, fact.grain).drop(AMBIGUOUS)
    renamed = again.select(*map(col, fact.grain), *(col(lookup.into).alias(_NOW + lookup.into) for lookup in fact.lookups))
    differs = F.lit(False)
    for lookup in fact.lookups:
        now = col(_NOW + lookup.into)
        differs = differs | (F.lit(asks_by_time(lookup)) & now.isNotNull() & (now != col(lookup.into)))
    return before.join(renamed, list(fact.grain)).where(differs)


def _new_periods(known: DimensionState, context: StarContext) -> DataFrame:
    """Members with versions that are new since the dimension was looked up, and the first start among these. Grain: one row per member."""
    dimension, tables = known.dimension, context.tables
    feed = change_rows(tables.session, tables.address(dimension.table), str(dimension.table), known.read, int(known.state.version or 0))
    key = col(dimension.surrogate)
    was_there = feed.where(F.col("_change_type").isin("delete", "update_preimage")).select(key, VALID_FROM)
    is_there = feed.where(F.col("_change_type").isin("insert", "update_postimage"))
    new = is_there.join(was_there, [dimension.surrogate, VALID_FROM], "left_anti")
    return new.groupBy(*map(col, dimension.keys)).agg(F.min(VALID_FROM).alias(_FIRST))


def record_late_facts(late: DataFrame, fact: Fact, context: StarContext) -> DataFrame:
    """The receipts written; returns the facts that are to be re-pointed, with their new keys. Grain: one row per fact."""
    repointed = {lookup.into for lookup in fact.lookups if lookup.dimension.repoints}
    stage = f"{fact.table}/late dimensions"
    grain = [late.schema[name] for name in fact.grain]
    schema = T.StructType(
        [
            *(T.StructField(field.name, field.dataType) for field in grain),
            T.StructField("lookup", T.StringType()),
            T.StructField("dimension", T.StringType()),
            T.StructField("key_before", T.LongType()),
            T.StructField("key_now", T.LongType()),
            T.StructField("policy", T.StringType()),
            T.StructField("run_id", T.StringType()),
            T.StructField("recorded_at", T.TimestampType()),
        ]
    )
    ensure(fact.late_dimensions, schema, Layout(), context.tables, context.run.commit(stage, 0))
    state = context.tables.state(fact.late_dimensions, stage)
    receipts = _receipts(late, fact, context).select(*schema.names)
    known = context.tables.read(fact.late_dimensions, state.version)
    on = [*fact.grain, "lookup", "key_before", "key_now"]
    new = receipts.join(known.select(*map(col, on)), on, "left_anti").select(*schema.names)
    if new.take(1):
        context.tables.append(new, fact.late_dimensions, context.run.commit(stage, state.next_number))
    keys = {lookup.into: F.coalesce(col(_NOW + lookup.into), col(lookup.into)) for lookup in fact.lookups if lookup.into in repointed}
    if not keys:
        return late.where(F.lit(False))
    return late.withColumns(keys)


def _receipts(late: DataFrame, fact: Fact, context: StarContext) -> DataFrame:
    told = F.array(
        *(
            F.when(
                F.lit(asks_by_time(lookup)) & (col(lookup.into) != col(_NOW + lookup.into)),
                F.struct(
                    F.lit(lookup.into).alias("lookup"),
                    F.lit(str(lookup.dimension.table)).alias("dimension"),
                    col(lookup.into).alias("key_before"),
                    col(_NOW + lookup.into).alias("key_now"),
                    F.lit("repoint" if lookup.dimension.repoints else "keep").alias("policy"),
                ),
            )
            for lookup in fact.lookups
        )
    )
    exploded = late.select(*map(col, fact.grain), F.explode(F.array_compact(told)).alias("told"))
    stamp = {
        "run_id": F.lit(context.run.stamp.run_id),
        "recorded_at": moment(context.run.stamp.started_at),
    }
    return exploded.select(*map(col, fact.grain), "told.*").withColumns(stamp)
