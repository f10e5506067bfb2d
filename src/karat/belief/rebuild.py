"""A belief derived again from all the evidence that it has consumed: compared with its tables, and written where it differs.

While a run is at work, or after one was interrupted, the tables may be at different steps. They are compared as they were
after the last step that all of them have followed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.belief.affected import between_batches, relevant_evidence
from karat.belief.conflicts import conflicts
from karat.belief.context import GOES_WITH, BeliefContext, Progress, belief_context, prepared
from karat.belief.schema import belief_spec, conflicts_spec, history_spec
from karat.belief.step import believed_history, ordered_statements
from karat.config.resolved import Belief
from karat.lake.changes import replacing_keys
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.tables import TableState
from karat.lake.verification import MEANING, MOST_SHOWN, Verified, compared
from karat.state.commits import Checkpoint, Commit, ours
from karat.state.rules_used import check_unedited
from karat.temporal.changes import TableSpec
from karat.temporal.columns import ACTION, BK, IS_CURRENT, VALID_FROM


@dataclass(frozen=True)
class Rebuilt:
    """One of the belief's tables as its evidence has it, and as it is held."""

    state: TableState
    fresh: DataFrame
    held: DataFrame
    spec: TableSpec

    def differences(self) -> DataFrame:
        """The rows that differ, each with its action. Grain: one row per missing, extra, differing or repeated row."""
        return compared(self.fresh, self.held, self.spec)


def rebuild_belief(belief: Belief, run: RunContext) -> None:
    """The belief's tables as the evidence has them that the history has consumed; only keys that differ are written."""
    context = belief_context(belief, run, run.tables())
    reached = None if context is None else context.progress_of(context.history)
    if context is None or reached is None:
        return
    check_unedited(belief, context.history.checkpoint.position)
    context = prepared(context)
    with rebuilt(context, reached) as (current, conflicting, history):
        was_current = _mend(current, context, context.commit(context.current, reached))
        was_conflicting = _mend(conflicting, context, context.commit(context.conflicts, reached))
        present = context.current.next_number if was_current else context.current.checkpoint.sequence
        position = {**context.history.checkpoint.position, GOES_WITH: present}
        commit = context.run.commit(str(belief.table), context.history.next_number, **position)
        if not _mend(history, context, commit) and (was_current or was_conflicting):
            context.tables.append(context.nothing(context.history), context.history.name, commit)


@contextmanager
def rebuilt(context: BeliefContext, reached: Progress) -> Iterator[tuple[Rebuilt, ...]]:
    """The current table, the conflicts and the history, each as the evidence has it and as it is held."""
    schema, rule = context.schema, context.rule(reached.rule)
    evidence = relevant_evidence(between_batches(context.assertions(), None, reached.batch), None, schema)
    with materialized(ordered_statements(evidence, context)) as ordered:
        history = believed_history(ordered, rule, context)
        found = (
            (context.current, history.where(F.col(IS_CURRENT)), belief_spec(schema)),
            (context.conflicts, conflicts(ordered, schema, rule), conflicts_spec(schema)),
            (context.history, history, replace(history_spec(schema), unread=())),
        )
        yield tuple(Rebuilt(state, fresh, _held(state, spec, context), spec) for state, fresh, spec in found)


def at_one_step(context: BeliefContext) -> BeliefContext:
    """The context with its tables as they were after the last step that all of them have followed."""
    history = context.history
    if _goes_with(history.checkpoint.position) > context.current.checkpoint.sequence:
        missing = context.current.checkpoint.sequence
        history = _before(history, context, lambda record: _goes_with(record["position"]) > missing)
    reached = context.progress_of(history)
    if reached is None:
        return replace(context, history=history)
    conflicts, current, present = context.conflicts, context.current, _goes_with(history.checkpoint.position)
    ahead = context.progress_of(conflicts)
    if ahead is not None and ahead.is_after(reached):
        conflicts = _before(conflicts, context, lambda record: _progress(record["position"]).is_after(reached))
    if current.checkpoint.sequence > present:
        current = _before(current, context, lambda record: int(record["sequence"]) > present)
    return replace(context, history=history, conflicts=conflicts, current=current)


def _mend(table: Rebuilt, context: BeliefContext, commit: Commit) -> bool:
    """Every key that differs in any row gets exactly the rows it should have, in one commit. Returns whether any did."""
    key = table.spec.key
    with materialized(table.differences().select(key).distinct()) as keys:
        if not keys.take(1):
            return False
        fresh = table.fresh.join(keys, key, "left_semi").select(*table.spec.columns)
        context.tables.merge(replacing_keys(fresh, keys, table.spec), table.state.name, commit)
        return True


def _held(state: TableState, spec: TableSpec, context: BeliefContext) -> DataFrame:
    held = context.held(state, spec)
    return context.nothing(state).select(*spec.columns) if held is None else held


def _before(state: TableState, context: BeliefContext, is_later: Callable[[Mapping[str, Any]], bool]) -> TableState:
    """The table as it was before the first of its stage's latest commits for which this holds."""
    stage, version = str(context.belief.table), state.version
    for entry in context.tables.commits(state.name):
        record = ours(entry)
        if record is None or record["stage"] != stage:
            continue
        if not is_later(record):
            return TableState(state.name, version, Checkpoint(int(record["sequence"]), record["run_id"], record["position"], trusted=True))
        version = int(entry["version"]) - 1
    return TableState(state.name, version, Checkpoint(trusted=True))


def _goes_with(position: Mapping[str, Any]) -> int:
    return int(position.get(GOES_WITH, 0))


def _progress(position: Mapping[str, Any]) -> Progress:
    return Progress(int(position.get("batch", 0)), int(position.get("rule", 0)))


def verify_belief(belief: Belief, run: RunContext) -> Verified:
    """Compare the belief's tables with the evidence; reads everything, changes nothing."""
    name, found = str(belief.table), belief_context(belief, run, run.tables())
    context = None if found is None else at_one_step(found)
    reached = None if context is None else context.progress_of(context.history)
    if context is None or reached is None:
        return Verified(name, equal=True)
    check_unedited(belief, context.history.checkpoint.position)
    counts: Counter[str] = Counter()
    shown: list[Mapping[str, Any]] = []
    with rebuilt(context, reached) as tables:
        for table in tables:
            _compare(table, counts, shown)
    return Verified(name, equal=not counts, differences=tuple(shown[:MOST_SHOWN]), counts=counts or None)


def _compare(table: Rebuilt, counts: Counter[str], shown: list[Mapping[str, Any]]) -> None:
    """What differs in one of the tables, added to what was found before."""
    name = str(table.state.name)
    since = F.col(VALID_FROM) if VALID_FROM in table.spec.columns else F.lit(None)
    # years beyond Python's own are shown as text
    with materialized(table.differences().select(ACTION, BK, since.cast("string").alias(VALID_FROM))) as rows:
        for row in rows.groupBy(ACTION).count().collect():
            counts[f"{MEANING[row[ACTION]]} ({name})"] += row["count"]
        first = rows.orderBy(BK, VALID_FROM, ACTION).limit(MOST_SHOWN).collect()
        shown += [{"table": name, "what": MEANING[row[ACTION]], BK: row[BK], VALID_FROM: row[VALID_FROM]} for row in first]
