"""A belief brought up to date with the evidence: what is new there, for whom, by the rule in force, in four commits.

    restatements   follow from the evidence and from how far the history has come, so they come before the history moves on
    conflicts      rows that differ; a rerun finds the same difference, or none
    history        its commit says which batch of the evidence and which rule the belief has reached
    current        the history's live periods; the history's commit says which commit of this table goes with it

Each commit has the number after the one that was read when the stage began: a second writer meets a conflict, and its
stage starts again. New is every row of a later batch than the history's commit says, whoever wrote it and whenever. So a
belief that is behind, or that a crash left between two commits, goes on by the same steps.
"""

from dataclasses import dataclass, field

from pyspark.sql import functions as F

from karat.belief.context import BeliefContext, Progress, belief_context, prepared
from karat.belief.current import current_changes, history_shape, with_current
from karat.belief.step import Step, StepChanges, step_changes
from karat.config.resolved import Belief
from karat.config.rules import in_force
from karat.lake.changes import ChangeSet, write
from karat.lake.context import RunContext
from karat.lake.outcome import Outcome
from karat.lake.tables import TableState
from karat.plan.stages import Believe
from karat.state.commits import Commit, Written
from karat.state.rules_used import check_unedited
from karat.telemetry.events import Rows
from karat.temporal.changes import WAS_HELD_UNTIL
from karat.temporal.columns import ACTION, RULE_VERSION
from karat.temporal.moments import moment


@dataclass(frozen=True)
class Stepped:
    """What one step wrote."""

    read: int = 0
    history: Written = field(default_factory=Written)
    receipts: int = 0
    changed: bool = False


def believe(stage: Believe, run: RunContext) -> Outcome:
    """Bring the belief up to its evidence; nothing new under the same rule: nothing written."""
    belief, tables = stage.belief, run.tables()
    rule = in_force(belief.rules, run.stamp.started_at)
    if rule is None:
        first = f"no rule is in force before {belief.rules[0].in_force_from:%Y-%m-%d %H:%M:%S}: nothing is believed yet"
        return Outcome("unchanged", notes=(first,))
    context = belief_context(belief, run, tables)
    if context is None:
        return Outcome("unchanged")
    check_unedited(belief, context.history.checkpoint.position)
    goal = Progress(context.latest, rule.version)
    context, mended = with_current(prepared(context) if context.consumed() != goal or not context.current.exists else context)
    done: list[Stepped] = []
    for end in _way(context, goal):
        context = context if not done else _again(context)
        done.append(_step(context, end))
    return _outcome(belief, goal, done, mended)


def _outcome(belief: Belief, goal: Progress, done: list[Stepped], mended: Written) -> Outcome:
    rows = Rows(read=sum(each.read for each in done), **_summed([each.history for each in done]))
    restated = sum(each.receipts for each in done)
    what = "restatement" if restated == 1 else "restatements"
    notes = (f"{restated} {what} of the past: see {belief.restatements}",) if restated else ()
    changed = mended != Written() or any(each.changed for each in done)
    return Outcome("succeeded" if changed else "unchanged", rows, position=str(goal), notes=notes)


def _way(context: BeliefContext, goal: Progress) -> list[Progress]:
    """Where the steps lead: first to the end of one that was interrupted, if its receipts are there, then to the goal."""
    reached = context.consumed()
    if reached == goal:
        return []
    begun = _begun(context, reached)
    return [goal] if begun is None or begun == goal else [begun, goal]


def _begun(context: BeliefContext, reached: Progress | None) -> Progress | None:
    """The end of a step whose receipts are there although the history has not come that far."""
    begun = context.progress_of(context.restatements)
    if reached is None or begun is None or not begun.is_after(reached):
        return None
    is_known = begun.batch <= context.latest and any(rule.version == begun.rule for rule in context.belief.rules)
    return begun if is_known else None


def _again(context: BeliefContext) -> BeliefContext:
    """The state of every table after a step."""
    found = belief_context(context.belief, context.run, context.tables)
    return context if found is None else found


def _step(context: BeliefContext, end: Progress) -> Stepped:
    """One step, from what was believed then to what is believed now."""
    start = context.consumed()
    if start is not None and (start == end or start.batch > end.batch):  # another run came further meanwhile
        return Stepped()
    former = None if start is None else next((rule for rule in context.belief.rules if rule.version == start.rule), None)
    with_receipts = _begun(context, start) != end
    step = Step(None if start is None else start.batch, end.batch, former, context.rule(end.rule), with_receipts)
    with step_changes(step, context) as changes:
        if changes is None:
            return Stepped()
        receipts = _write_receipts(changes, step, context, end)
        differing = _written(changes.conflicts, context.conflicts, context, context.commit(context.conflicts, end))
        history, current = write_history(changes.history, context, end)
        changed = receipts or any(each != Written() for each in (differing, history, current))
        return Stepped(changes.read, history, receipts, bool(changed))


def write_history(changes: ChangeSet, context: BeliefContext, end: Progress) -> tuple[Written, Written]:
    """The history, whose commit says how far the belief has come, and then the current table."""
    shape = history_shape(changes)
    followed = current_changes(changes, shape, context)
    number = context.current.checkpoint.sequence if followed.is_empty else context.current.next_number
    commit = context.history_commit(end, number)
    history = _written(changes, context.history, context, commit)
    if changes.is_empty:  # evidence that changes no period is consumed all the same
        context.tables.append(context.nothing(context.history), context.history.name, commit)
    return history, _written(followed, context.current, context, context.commit(context.current, end))


def _written(changes: ChangeSet, state: TableState, context: BeliefContext, commit: Commit) -> Written:
    return write(changes, state.name, context.tables, commit)


def _write_receipts(changes: StepChanges, step: Step, context: BeliefContext, end: Progress) -> int:
    """The receipts of the step with the run that writes them, unless they are there already."""
    if changes.restatements.is_empty:
        return 0
    stamp = context.run.stamp
    stamped = {
        RULE_VERSION: F.lit(step.rule.version),
        "rule_version_before": F.lit(None if step.former is None else step.former.version).cast("int"),
        "run_id": F.lit(stamp.run_id),
        "restated_at": moment(stamp.started_at),
    }
    rows = changes.restatements.rows.drop(ACTION, WAS_HELD_UNTIL).withColumns(stamped)
    table = context.restatements
    return context.tables.append(rows, table.name, context.commit(table, end)).inserted


def _summed(written: list[Written]) -> dict[str, int]:
    return {name: sum(getattr(each, name) for each in written) for name in ("inserted", "updated", "deleted")}
