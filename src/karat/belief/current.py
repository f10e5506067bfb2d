"""What is believed now, as a table of its own: the live periods of the history, one row per entity.

The history's commit says which commit of the current table goes with it. Where that is missing, because a run ended between
the two, the current table is set against the history's live periods.
"""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.belief.context import GOES_WITH, BeliefContext, Progress
from karat.belief.schema import belief_spec
from karat.lake.changes import ChangeSet, change_set, write
from karat.lake.materialized import materialized
from karat.lake.tables import TableState
from karat.state.commits import Written
from karat.temporal.changes import DELETE, INSERT, UPDATE, WAS_HELD_UNTIL, as_inserts, difference
from karat.temporal.columns import ACTION, BK, IS_CURRENT, col
from karat.temporal.entity_schema import EntitySchema

_PUT = "put"
_PUTS, _LEAVES = "puts", "leaves"


@dataclass(frozen=True)
class HistoryShape:
    """What a change of the history means for the current table."""

    puts: int
    """Entities whose live period is written."""
    leaves: int
    """Entities that have no live period any more."""


def history_shape(history: ChangeSet) -> HistoryShape:
    """What there is to know, from one job."""
    if history.is_empty:
        return HistoryShape(0, 0)
    is_gone = F.col(ACTION) == DELETE
    is_written = F.col(ACTION).isin(INSERT, UPDATE)
    per_key = history.rows.groupBy(BK).agg(
        F.max(is_written & F.col(IS_CURRENT)).alias(_PUTS),
        F.max(is_gone & F.col(IS_CURRENT)).alias(_LEAVES),
    )
    found = per_key.agg(
        F.count_if(F.col(_PUTS)),
        F.count_if(F.col(_LEAVES) & ~F.col(_PUTS)),
    ).collect()[0]
    return HistoryShape(*found)


def current_changes(history: ChangeSet, shape: HistoryShape, context: BeliefContext) -> ChangeSet:
    """What follows for the current table from a change of the history."""
    spec = belief_spec(context.schema)
    live = history.rows.where(F.col(IS_CURRENT))
    written = live.where(F.col(ACTION) != DELETE)
    if context.current.is_empty:
        return ChangeSet(as_inserts(written, spec), spec, {INSERT: shape.puts} if shape.puts else {})
    puts = _acting(written, _PUT, context.schema)
    if not shape.leaves:
        return ChangeSet(puts, spec, {UPDATE: shape.puts} if shape.puts else {})
    leaves = _acting(live.where(F.col(ACTION) == DELETE), DELETE, context.schema).join(written.select(BK), BK, "left_anti")
    return ChangeSet(puts.unionByName(leaves), spec, {UPDATE: shape.puts, DELETE: shape.leaves})


def with_current(context: BeliefContext) -> tuple[BeliefContext, Written]:
    """The context with a current table that goes with the history, and what had to be written for that."""
    position, state = context.history.checkpoint.position, context.current
    wanted = int(position.get(GOES_WITH, 0))
    if state.checkpoint.sequence >= wanted:
        return context, Written()
    # the very number that the history names, so that another run that catches up meanwhile shows itself as a conflict
    behind = replace(state, checkpoint=replace(state.checkpoint, sequence=wanted - 1))
    commit = context.commit(behind, Progress(int(position["batch"]), int(position["rule"])))
    with materialized(_set_against_history(context)) as rows:
        changes = change_set(rows, belief_spec(context.schema))
        written = write(changes, state.name, context.tables, commit)
    if changes.is_empty:
        context.tables.append(context.nothing(state), state.name, commit)
    return replace(context, current=_after(behind, context)), written


def _after(state: TableState, context: BeliefContext) -> TableState:
    """The table's state after the next commit."""
    checkpoint = replace(state.checkpoint, sequence=state.next_number)
    return replace(state, version=context.tables.version(state.name), checkpoint=checkpoint)


def _set_against_history(context: BeliefContext) -> DataFrame:
    """The difference between the history's live periods and the current table. Grain: one row per row that differs."""
    spec = belief_spec(context.schema)
    columns = [col(name) for name in spec.columns]
    live = context.tables.read(context.history.name, context.history.version).where(F.col(IS_CURRENT)).select(*columns)
    held = context.held(context.current, spec)
    return as_inserts(live, spec) if held is None else difference(live, held, spec)


def _acting(rows: DataFrame, action: str, schema: EntitySchema) -> DataFrame:
    columns = [col(name) for name in belief_spec(schema).columns]
    return rows.select(*columns, F.lit(action).alias(ACTION), F.lit(None).cast("timestamp").alias(WAS_HELD_UNTIL))
