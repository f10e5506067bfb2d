"""A fact table brought up to date: the latest row of each grain, its dimensions' keys looked up, the difference written in one commit."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.star import NOT_YET_KNOWN, DimensionLookup, Fact
from karat.errors import ContractBreach
from karat.gold.commit import concluded, prepare, unchanged, write_target
from karat.gold.context import Account, DimensionState, StarContext, dimension_states, looked_up
from karat.gold.fact import first_of_each_grain, latest_of_each_grain, merged_with_held, of_these_periods, with_duplicates_refused
from karat.gold.late import late_facts, record_late_facts
from karat.gold.lookups import AMBIGUOUS, with_keys_of_dimensions, with_lookup_values
from karat.gold.reading import Work, affected_keys, changes, concerning, everything, work_for
from karat.gold.refused import record, refused_rows, split_refused
from karat.gold.schema import AT, COMMIT, COMMITTED_AT, DELETE, KIND, ORDER, UPSERT, fact_schema, own_columns, require_columns
from karat.gold.skeletons import asked_members, mint_skeletons
from karat.gold.states import dated, settled
from karat.lake.materialized import materialized
from karat.lake.outcome import Outcome
from karat.temporal.changes import TableSpec, difference
from karat.temporal.columns import REASON, Names, col
from karat.temporal.moments import moment

Dimensions = dict[str, DimensionState]


def load_fact(fact: Fact, context: StarContext) -> Outcome:
    """The facts with all that their sources and dimensions tell by now."""
    work = work_for(context)
    dimensions = dimension_states(looked_up(fact), context)
    moved = [name for name, known in dimensions.items() if known.read is not None and known.state.version != known.read]
    if work.is_nothing and not moved:
        return unchanged(context)
    account = Account()
    with ExitStack() as stack:
        fresh, gone, columns = None, None, _held_columns(fact, context)
        if not work.is_nothing:
            states = stack.enter_context(_told(fact, context, work))
            columns = own_columns(states.drop(KIND, AT, ORDER, REASON).columns, str(fact.table))
            prepare(fact_schema(states.select(*map(col, columns)).schema, fact), context)
            admitted = split_refused(with_duplicates_refused(states, columns, fact), columns, context, account)
            fresh, gone, dimensions = _fresh(stack, admitted, columns, fact, context, account, dimensions)
        late = stack.enter_context(materialized(late_facts(fact, columns, dimensions, context))) if moved else None
        return _write(fresh, gone, late, columns, fact, context, account, dimensions)


def _held_columns(fact: Fact, context: StarContext) -> Names:
    """The query's columns as the table has them; none before it exists."""
    if not context.state.exists:
        return ()
    keys = {lookup.into for lookup in fact.lookups}
    return tuple(name for name in context.tables.schema(fact.table).names if name not in keys)


@contextmanager
def _told(fact: Fact, context: StarContext, work: Work) -> Iterator[DataFrame]:
    """What sources tell of facts, each row once, with a reason where it is refused. Grain: one row per state."""
    grain = fact.grain
    if work.everything or work.row_by_row:
        rows = everything(context) if work.everything else changes(context, work)
        require_columns(rows.columns, grain, str(fact.table), "grain")
        with materialized(refused_rows(dated(settled(rows, grain), None), grain, "grain")) as states:
            yield states
        return
    with materialized(affected_keys(context, work, grain)) as concerned:
        now = settled(concerning(everything(context), concerned, grain), grain)
        gone = concerned.join(now.select(*map(col, grain)), list(grain), "left_anti")
        none = {name: F.lit(None).cast(now.schema[name].dataType) for name in now.columns if name not in grain}
        at = {KIND: F.lit(DELETE), COMMITTED_AT: moment(context.committed_at), COMMIT: F.lit(context.newest).cast("bigint")}
        deletes = gone.withColumns({**none, **at}).select(*map(col, now.columns))
        with materialized(refused_rows(dated(now.unionByName(deletes), None), grain, "grain")) as states:
            yield states


def _fresh(
    stack: ExitStack,
    states: DataFrame,
    columns: Names,
    fact: Fact,
    context: StarContext,
    account: Account,
    dimensions: Dimensions,
) -> tuple[DataFrame, DataFrame, Dimensions]:
    """The rows to write with their keys, the grains that are gone, and the dimensions as they were looked up."""
    held = context.tables.read(fact.table, None)
    account.read += states.count()
    latest = latest_of_each_grain(states, columns, fact)
    if fact.load == "append":
        rows = first_of_each_grain(latest, held, fact)
    else:
        rows = merged_with_held(latest, _of_grains(held, latest, fact), columns, fact)
    batch = stack.enter_context(materialized(rows.select(*map(col, columns), F.col(KIND))))
    there = batch.where(F.col(KIND) == UPSERT).drop(KIND)
    keyed, dimensions = _with_keys(stack, there, fact, context, account, dimensions)
    nothing = batch.where(F.lit(False))
    gone = batch.where(F.col(KIND) == DELETE) if fact.load != "append" and not fact.keeps_deleted else nothing
    return keyed, gone.select(*map(col, fact.grain)), dimensions


def _with_keys(
    stack: ExitStack, rows: DataFrame, fact: Fact, context: StarContext, account: Account, dimensions: Dimensions
) -> tuple[DataFrame, Dimensions]:
    """The rows with the keys of their dimensions; those that may not be without one are refused. Grain: one row per fact."""
    found = stack.enter_context(materialized(_looked_up(rows, fact, context, dimensions)))
    lacking = [F.count_if(col(lookup.into).isNull()).alias(lookup.into) for lookup in fact.lookups]
    counts = found.agg(F.count_if(F.col(AMBIGUOUS).isNotNull()).alias(AMBIGUOUS), *lacking).collect()[0].asDict()
    wanting = [lookup for lookup in fact.lookups if lookup.missing == "skeleton" and counts[lookup.into]]
    if wanting:
        is_complete = F.lit(True)
        for lookup in wanting:
            is_complete = is_complete & col(lookup.into).isNotNull()
        complete, missing = found.where(is_complete), found.where(~is_complete)
        dimensions = _minted(missing, wanting, context, account, dimensions)
        again = _looked_up(missing.select(*map(col, rows.columns)), fact, context, dimensions)
        found = stack.enter_context(materialized(complete.unionByName(again)))
    return _without_refused(found, counts, fact, context, account), dimensions


def _looked_up(rows: DataFrame, fact: Fact, context: StarContext, dimensions: Dimensions) -> DataFrame:
    members = {name: context.tables.read(known.dimension.table, known.state.version) for name, known in dimensions.items()}
    return with_keys_of_dimensions(rows, fact.lookups, members, fact.grain)


def _minted(
    missing: DataFrame, wanting: list[DimensionLookup], context: StarContext, account: Account, dimensions: Dimensions
) -> Dimensions:
    """The dimensions after skeletons were made for the facts that found no member."""
    after = dict(dimensions)
    for name in dict.fromkeys(lookup.dimension.name for lookup in wanting):
        lookups, known = [lookup for lookup in wanting if lookup.dimension.name == name], after[name]
        schema = context.tables.read(known.dimension.table, known.state.version).schema
        asked_for = missing
        for lookup in lookups:
            asked_for = with_lookup_values(asked_for, lookup, schema)
        with materialized(asked_members(asked_for, lookups, schema)) as asked:
            count, after[name] = mint_skeletons(asked, known, context)
            account.skeletons += count
    return after


def _without_refused(found: DataFrame, counts: dict[str, int], fact: Fact, context: StarContext, account: Account) -> DataFrame:
    """The facts that may be written; what is missing becomes the reserved member, or the row goes to quarantine, or the run fails."""
    reason = F.when(F.col(AMBIGUOUS).isNotNull(), F.concat(F.lit("ambiguous lookup: several members for "), F.col(AMBIGUOUS)))
    values = {}
    for lookup in fact.lookups:
        is_missing = col(lookup.into).isNull() & F.col(AMBIGUOUS).isNull()
        if lookup.missing == "fail" and counts[lookup.into] and found.where(is_missing).take(1):
            message = f"{fact.table}: {counts[lookup.into]} facts find no {lookup.into} in {lookup.dimension.table}"
            raise ContractBreach(message, remedy="load the dimension first, or set missing: skeleton, member or quarantine")
        if lookup.missing == "quarantine":
            reason = reason.when(is_missing, F.lit(f"missing member: nothing in {lookup.dimension.table} for {lookup.into}"))
        values[lookup.into] = F.coalesce(col(lookup.into), F.lit(NOT_YET_KNOWN).cast("bigint"))
    marked = found.withColumn(REASON, reason)
    if counts[AMBIGUOUS] or any(lookup.missing == "quarantine" and counts[lookup.into] for lookup in fact.lookups):
        refused = marked.where(F.col(REASON).isNotNull())
        account.quarantined += refused.count()
        record(refused.drop(AMBIGUOUS, *values), context)
    return marked.where(F.col(REASON).isNull()).drop(REASON, AMBIGUOUS).withColumns(values)


def _of_grains(held: DataFrame, rows: DataFrame, fact: Fact) -> DataFrame:
    """The held facts of the rows' grains. Grain: unchanged."""
    return held.join(rows.select(*map(col, fact.grain)), list(fact.grain), "left_semi").select(*map(col, held.columns))


def _write(
    fresh: DataFrame | None,
    gone: DataFrame | None,
    late: DataFrame | None,
    columns: Names,
    fact: Fact,
    context: StarContext,
    account: Account,
    dimensions: Dimensions,
) -> Outcome:
    """New, changed, re-pointed and removed facts in one commit."""
    spec = TableSpec((*(lookup.into for lookup in fact.lookups), *columns), fact.grain)
    wanted = [col(name) for name in spec.columns]
    held = context.tables.read(fact.table).select(*wanted)
    nothing = held.where(F.lit(False))
    rows = nothing if fresh is None else fresh.select(*wanted)
    grains = rows.select(*map(col, fact.grain))
    if late is not None:
        moved = record_late_facts(late, fact, context)
        others = moved.join(grains, list(fact.grain), "left_anti").select(*wanted)
        rows = rows.unionByName(others)
        grains = rows.select(*map(col, fact.grain))
    concerned = grains if gone is None else grains.unionByName(gone)
    there = of_these_periods(held, rows, fact) if fact.load == "periodic" else _of_grains(held, concerned, fact)
    looked = {name: known.state.version for name, known in dimensions.items()}
    with materialized(difference(rows, there, spec)) as found:
        written = write_target(found, spec, context, dimensions=looked)
    return concluded(replace(context), account, written)
