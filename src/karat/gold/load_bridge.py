"""A bridge brought up to date: the groups that changed, whole, in one commit."""

from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import Bridge, BridgeSide
from karat.errors import ConfigError
from karat.gold.bridge import group_columns, pair_columns, with_member_keys, with_reasons
from karat.gold.commit import concluded, prepare, unchanged, write_target
from karat.gold.context import Account, DimensionState, StarContext, dimension_states
from karat.gold.reading import affected_keys, concerning, everything, work_for
from karat.gold.refused import record
from karat.gold.schema import CHANGE, COMMIT, COMMITTED_AT, bridge_schema, own_columns, require_columns
from karat.gold.skeletons import mint_skeletons
from karat.lake.materialized import materialized
from karat.lake.outcome import Outcome
from karat.temporal.changes import TableSpec, difference
from karat.temporal.columns import REASON, col


def load_bridge(bridge: Bridge, context: StarContext) -> Outcome:
    """The bridge with all that its sources tell by now."""
    work = work_for(context, whole_keys=True)
    if work.is_nothing:
        return unchanged(context)
    account = Account()
    dimensions = dimension_states({side.dimension.name: side.dimension for side in bridge.sides}, context)
    with ExitStack() as stack:
        rows = everything(context).drop(CHANGE, COMMIT, COMMITTED_AT)
        require_columns(rows.columns, pair_columns(bridge), str(bridge.table), "between")
        require_columns(rows.columns, (bridge.weight,) if bridge.weight else (), str(bridge.table), "weight")
        groups = None
        if not work.everything:
            groups = stack.enter_context(materialized(affected_keys(context, work, group_columns(bridge))))
            rows = concerning(rows, groups, group_columns(bridge))
        columns = own_columns(rows.columns, str(bridge.table))
        told = stack.enter_context(materialized(with_member_keys(with_reasons(rows, bridge), bridge)))
        prepare(bridge_schema(rows.schema, bridge), context)
        account.quarantined = _refuse(told, columns, context)
        account.read = told.count()
        fresh = told.where(F.col(REASON).isNull()).drop(REASON)
        for side in bridge.sides:
            dimensions[side.dimension.name] = _with_members(fresh, side, dimensions[side.dimension.name], context, account)
        spec = TableSpec((*(side.into for side in bridge.sides), *columns), pair_columns(bridge))
        wanted = [col(name) for name in spec.columns]
        held = context.tables.read(bridge.table).select(*wanted)
        there = held if groups is None else concerning(held, groups, group_columns(bridge))
        with materialized(difference(fresh.select(*wanted), there, spec)) as found:
            return concluded(context, account, write_target(found, spec, context))


def _refuse(told: DataFrame, columns: tuple[str, ...], context: StarContext) -> int:
    refused = told.where(F.col(REASON).isNotNull()).select(*map(col, columns), REASON)
    count = refused.count()
    if count:
        record(refused, context)
    return count


def _with_members(rows: DataFrame, side: BridgeSide, known: DimensionState, context: StarContext, account: Account) -> DimensionState:
    """The dimension after every member that the bridge names is there, as a skeleton where its source has not told of it."""
    dimension = known.dimension
    held = context.tables.read(dimension.table, known.state.version)
    by_name = {name.lower(): column for name, column in side.on}
    keys = []
    for name in dimension.keys:
        wanted, given = held.schema[name].dataType, rows.schema[by_name[name.lower()]].dataType
        if wanted != given and not isinstance(given, T.NullType):
            column, of_key = by_name[name.lower()], f"{name} of {dimension.table}"
            message = f"{context.star.table}: {column} is {given.simpleString()}, {of_key} is {wanted.simpleString()}"
            raise ConfigError(message, remedy=f"cast it to {wanted.simpleString()} in the query")
        keys.append(col(by_name[name.lower()]).alias(name))
    asked = rows.select(*keys).distinct().join(held.select(*map(col, dimension.keys)), list(dimension.keys), "left_anti")
    with materialized(asked.withColumn("__karat_fact_at", F.lit(None).cast("timestamp"))) as missing:
        if not missing.take(1):
            return known
        count, after = mint_skeletons(missing, known, context)
    account.skeletons += count
    return after
