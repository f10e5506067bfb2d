"""A fact table brought up to date: the latest row of each grain, its dimensions' keys looked up, the difference written in one commit."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.star import NOT_YET_KNOWN, DimensionLookup, Fact
from karat.errors import ContractBreach
from karat.gold.commit import concluded, prepare, unchanged, write_target
from karat.gold.context import Account, DimensionState, StarContext, dimension_states, looked_up
from karat.gold.fact import first_of_each_grain, latest_of_each_grain, merged_with_held, of_these_periods, with_duplicates_refused
from karat.gold.late import late_facts, record_late_facts
from karat.gold.lookups import AMBIGUOUS, with_keys_of_dimensions, with_lookup_values
from karat.gold.reading import Work, affected_keys, changes, everything, states_of_members, work_for
from karat.gold.refused import record, refused_rows, split_refused
from karat.gold.schema import AT, DELETE, KIND, ORDER, UPSERT, fact_schema, own_columns, require_columns
from karat.gold.skeletons import asked_members, mint_skeletons
from karat.gold.states import dated, settled
from karat.lake.materialized import materialized
from karat.lake.outcome import Outcome
from karat.temporal.changes import TableSpec, difference
from karat.temporal.columns import REASON, Names, col


@dataclass
class _Load:
    """A fact table that is being brought up to date."""

    fact: Fact
    context: StarContext
    dimensions: dict[str, DimensionState]
    """The dimensions by name, as they were looked up."""
    staged: ExitStack
    """What is staged until the commit."""
    columns: Names = ()
    """The query's own columns."""
    account: Account = field(default_factory=Account)

    @property
    def grain(self) -> list[str]:
        """The columns that identify a fact."""
        return list(self.fact.grain)

    @property
    def spec(self) -> TableSpec:
        """How facts are told apart."""
        return TableSpec((*(lookup.into for lookup in self.fact.lookups), *self.columns), self.fact.grain)

    def held(self) -> DataFrame:
        """The facts that are there."""
        return self.context.tables.read(self.fact.table).select(*map(col, self.spec.columns))

    def stage(self, rows: DataFrame) -> DataFrame:
        """The rows computed once, to be read several times."""
        return self.staged.enter_context(materialized(rows))

    def held_of(self, rows: DataFrame) -> DataFrame:
        """The held facts of the rows' grains. Grain: one row per fact."""
        held = self.held()
        return held.join(rows.select(*map(col, self.grain)), self.grain, "left_semi").select(*map(col, held.columns))


def load_fact(fact: Fact, context: StarContext) -> Outcome:
    """The facts with all that their sources and dimensions tell by now."""
    work = work_for(context)
    dimensions = dimension_states(looked_up(fact), context)
    moved = any(known.read is not None and known.state.version != known.read for known in dimensions.values())
    if work.is_nothing and not moved:
        return unchanged(context)
    with ExitStack() as staged:
        load = _Load(fact, context, dimensions, staged, _held_columns(fact, context))
        new = None if work.is_nothing else _new_facts(work, load)
        late = load.stage(late_facts(fact, load.columns, dimensions, context)) if moved else None
        return _write(new, late, load)


def _held_columns(fact: Fact, context: StarContext) -> Names:
    """The query's columns as the table has them; none before it exists."""
    if not context.state.exists:
        return ()
    keys = {lookup.into for lookup in fact.lookups}
    return tuple(name for name in context.tables.schema(fact.table).names if name not in keys)


def _new_facts(work: Work, load: _Load) -> tuple[DataFrame, DataFrame]:
    """The rows to write with the keys of their dimensions, and the grains that are gone."""
    fact, context = load.fact, load.context
    states = load.staged.enter_context(_told(fact, context, work))
    load.columns = own_columns(states.drop(KIND, AT, ORDER, REASON).columns, str(fact.table))
    prepare(fact_schema(states.select(*map(col, load.columns)).schema, fact), context)
    admitted = split_refused(with_duplicates_refused(states, load.columns, fact), load.columns, context, load.account)
    load.account.read += admitted.count()
    latest = latest_of_each_grain(admitted, load.columns, fact)
    if fact.load == "append":
        rows = first_of_each_grain(latest, load.held(), fact)
    else:
        rows = merged_with_held(latest, load.held_of(latest), load.columns, fact)
    batch = load.stage(rows.select(*map(col, load.columns), F.col(KIND)))
    keyed = _with_keys(batch.where(F.col(KIND) == UPSERT).drop(KIND), load)
    is_gone = F.col(KIND) == DELETE if fact.load != "append" and not fact.keeps_deleted else F.lit(False)
    return keyed, batch.where(is_gone).select(*map(col, load.grain))


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
    with (
        materialized(affected_keys(context, work, grain)) as concerned,
        materialized(refused_rows(dated(states_of_members(context, concerned, grain), None), grain, "grain")) as states,
    ):
        yield states


def _with_keys(rows: DataFrame, load: _Load) -> DataFrame:
    """The rows with the keys of their dimensions; those that may not be without one are refused. Grain: one row per fact."""
    fact = load.fact
    found = load.stage(_looked_up(rows, load))
    lacking = [F.count_if(col(lookup.into).isNull()).alias(lookup.into) for lookup in fact.lookups]
    counts = found.agg(F.count_if(F.col(AMBIGUOUS).isNotNull()).alias(AMBIGUOUS), *lacking).collect()[0].asDict()
    wanting = [lookup for lookup in fact.lookups if lookup.missing == "skeleton" and counts[lookup.into]]
    if wanting:
        is_complete = F.lit(True)
        for lookup in wanting:
            is_complete = is_complete & col(lookup.into).isNotNull()
        missing = found.where(~is_complete)
        _mint(missing, wanting, load)
        found = load.stage(found.where(is_complete).unionByName(_looked_up(missing.select(*map(col, rows.columns)), load)))
    return _without_refused(found, counts, load)


def _looked_up(rows: DataFrame, load: _Load) -> DataFrame:
    members = {name: load.context.tables.read(known.dimension.table, known.state.version) for name, known in load.dimensions.items()}
    return with_keys_of_dimensions(rows, load.fact.lookups, members, load.fact.grain)


def _mint(missing: DataFrame, wanting: list[DimensionLookup], load: _Load) -> None:
    """The dimensions have members afterwards for the facts that found none."""
    for name in dict.fromkeys(lookup.dimension.name for lookup in wanting):
        lookups, known = [lookup for lookup in wanting if lookup.dimension.name == name], load.dimensions[name]
        schema = load.context.tables.read(known.dimension.table, known.state.version).schema
        asked_for = missing
        for lookup in lookups:
            asked_for = with_lookup_values(asked_for, lookup, schema)
        with materialized(asked_members(asked_for, lookups, schema)) as asked:
            count, load.dimensions[name] = mint_skeletons(asked, known, load.context)
            load.account.skeletons += count


def _without_refused(found: DataFrame, counts: dict[str, int], load: _Load) -> DataFrame:
    """The facts that may be written; what is missing becomes the reserved member, or the row goes to quarantine, or the run fails."""
    fact = load.fact
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
        load.account.quarantined += refused.count()
        record(refused.drop(AMBIGUOUS, *values), load.context)
    return marked.where(F.col(REASON).isNull()).drop(REASON, AMBIGUOUS).withColumns(values)


def _write(new: tuple[DataFrame, DataFrame] | None, late: DataFrame | None, load: _Load) -> Outcome:
    """New, changed, re-pointed and removed facts in one commit."""
    fact, context, spec = load.fact, load.context, load.spec
    wanted = [col(name) for name in spec.columns]
    rows = load.held().where(F.lit(False)) if new is None else new[0].select(*wanted)
    concerned = rows.select(*map(col, load.grain))
    if new is not None:
        concerned = concerned.unionByName(new[1])
    if late is not None:
        others = record_late_facts(late, fact, context).join(concerned, load.grain, "left_anti").select(*wanted)
        rows = rows.unionByName(others)
        concerned = concerned.unionByName(others.select(*map(col, load.grain)))
    there = of_these_periods(load.held(), rows, fact) if fact.load == "periodic" else load.held_of(concerned)
    looked = {name: known.state.version for name, known in load.dimensions.items()}
    with materialized(difference(rows, there, spec)) as found:
        return concluded(context, load.account, write_target(found, spec, context, dimensions=looked))
