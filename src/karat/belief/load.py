"""A belief brought up to date with the evidence: what is new about whom, judged by the rule in force, in four commits.

receipts   follow from the evidence and from how far the history has come, so they can be made until that moves on
conflicts  rows that differ; a rerun finds the same difference, or none
history    then: its commit says which batch of the evidence and which rule the belief has reached
current    beside all of them: the history's commit says which of its commits goes with it, so that one that is missing is noticed

A crash in between leaves the history behind. The next run then takes the same step once more, without the receipts that are there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from karat.belief.concerned import Ground, Step
from karat.belief.present import GOES_WITH, Present, mended, present_beside
from karat.belief.schema import belief_schema, conflicts_schema, history_schema, restatements_schema
from karat.belief.seat import Reached, Seat
from karat.belief.step import Judged, judge
from karat.config.resolved import Belief, Entity
from karat.config.rules import in_force
from karat.execute.acts import write
from karat.execute.ahead import logs_read_ahead
from karat.execute.evidence import APPEND_ONLY, LIVE_APART, ensure, terms_of, told_by_evidence
from karat.execute.spoken import Spoken
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.outcome import Outcome
from karat.lake.tables import Layout
from karat.plan.stages import Believe
from karat.state.commits import Commit, Written
from karat.state.rules_used import check_unedited
from karat.telemetry.events import Rows
from karat.temporal.columns import BK, IS_CURRENT, VALID_FROM, VALID_TO
from karat.temporal.entity_schema import EntitySchema

_MIRRORED = re.compile(r"batch (\d+), rule version (\d+)")


def believe(stage: Believe, world: RunContext) -> Outcome:
    """Judge what the evidence has that the belief has not heard; nothing new under the same rule: nothing written."""
    belief, tables = stage.belief, world.tables()
    rule = in_force(belief.rules, world.stamp.started_at)
    if rule is None:
        first = f"no rule is in force before {belief.rules[0].in_force_from:%Y-%m-%d %H:%M:%S}: nothing is believed yet"
        return Outcome("unchanged", notes=(first,))
    if not tables.exists(belief.entity.assertions):
        return Outcome("unchanged")
    seat = _seat(belief, tables, world)
    check_unedited(belief, seat.history.position)
    was_behind = mended(seat) != Written()
    goal = Reached(seat.latest, rule.version)
    reached = _reached(seat, stage.since)
    if reached == goal:
        return Outcome("succeeded" if was_behind else "unchanged", position=str(goal))
    _prepare(seat)
    done = [_stepped(seat, start, end) for start, end in _way(seat, reached, goal)]
    rows = Rows(read=sum(each.read for each in done), **_summed([each.history for each in done]))
    restated = sum(each.receipts for each in done)
    what = "restatement" if restated == 1 else "restatements"
    notes = (f"{restated} {what} of the past: see {belief.restatements}",) if restated else ()
    changed = was_behind or any(each.changed for each in done)
    return Outcome("succeeded" if changed else "unchanged", rows, position=str(goal), notes=notes)


def judged_anew(belief: Belief, tables: DeltaTables, world: RunContext) -> Judged | None:
    """Everybody judged anew from the evidence the belief rests on, by the rule it used; None while it rests on none."""
    seat = _seat(belief, tables, world)
    reached = _reached(seat, None)
    if reached is None:
        return None
    check_unedited(belief, seat.history.position)
    # a batch may have moved who differs, and no period: then only that table's commit tells of it
    positions = [tables.checkpoint(table, str(belief.table)).position for table in (belief.table, belief.conflicts)]
    until = max([reached.batch, *(int(each["batch"]) for each in positions if each.get("evidence") == seat.made_at)])
    return judge(Step(None, until, None, seat.rule(reached.version)), seat.ground, compare_present=True)


def mend(belief: Belief, world: RunContext) -> None:
    """The belief's tables as its evidence has them; only what differs is written."""
    tables = world.tables()
    judged = judged_anew(belief, tables, world) if tables.exists(belief.history) else None
    if judged is None:
        return
    seat = _seat(belief, tables, world)
    _prepare(seat)
    end = Reached(judged.step.until, judged.step.rule.version)
    with present_beside(seat, judged, end) as present:
        _written(seat, judged, end, present)


@dataclass(frozen=True)
class Stepped:
    """What one step wrote."""

    read: int
    history: Written
    receipts: int
    changed: bool


def _seat(belief: Belief, tables: DeltaTables, world: RunContext) -> Seat:
    entity = belief.entity
    evidence = tables.checkpoint(entity.assertions, str(entity.timeline))
    history = tables.checkpoint(belief.history, str(belief.table))
    terms = evidence_terms(entity, tables, evidence.position)
    return Seat(Ground(belief, terms, tables), world, evidence.sequence, tables.made_at(entity.assertions), history)


def evidence_terms(entity: Entity, tables: DeltaTables, position: Mapping[str, Any]) -> EntitySchema:
    """How the evidence is to be read; its last commit tells what never happened, so that it need not be looked for."""
    told = position if "sweeps" in position else told_by_evidence(entity, tables)
    terms = terms_of(entity, tables, tuple(sorted(told["sources"])))
    return replace(terms, swept=bool(told["sweeps"]), shown_apart=bool(told["apart"]))


def _reached(seat: Seat, mirrored: str | None) -> Reached | None:
    """Where the belief stands: by its own last commit, or further by the mirror, when later batches changed nothing of it."""
    standing = seat.history
    lacking = not all(seat.tables.exists(table) for table in (seat.belief.table, seat.belief.conflicts))
    if lacking or "batch" not in standing.position or standing.position["evidence"] != seat.made_at:
        return None
    reached = Reached(int(standing.position["batch"]), int(standing.position["rule"]))
    if reached.batch > seat.latest:
        return None
    if (found := _MIRRORED.fullmatch(mirrored or "")) and standing.trusted and not standing.set_back:
        told = Reached(int(found[1]), int(found[2]))
        if reached.batch <= told.batch <= seat.latest and told.version == reached.version:
            return told
    return reached


def _way(seat: Seat, reached: Reached | None, goal: Reached) -> list[tuple[Reached | None, Reached]]:
    """The steps to take: first the one a crash interrupted, if its receipts are there."""
    receipts = seat.tables.checkpoint(seat.belief.restatements, str(seat.belief.table)).position
    if reached is None or receipts.get("evidence") != seat.made_at:
        return [(reached, goal)]
    begun = Reached(int(receipts["batch"]), int(receipts["rule"]))
    is_ahead = (begun.batch, begun.version) > (reached.batch, reached.version)
    if not is_ahead or begun == goal or begun.version not in {rule.version for rule in seat.belief.rules}:
        return [(reached, goal)]
    return [(reached, begun), (begun, goal)]


def _prepare(seat: Seat) -> None:
    """All four tables exist afterwards and have every column."""
    belief, key, subject = seat.belief, dict(seat.ground.terms.key), seat.ground.subject
    opened = Commit(str(belief.table), 0, seat.world.stamp.run_id, seat.world.config.hash)
    live_apart = Layout((IS_CURRENT,), (BK, VALID_FROM, VALID_TO), LIVE_APART)
    for name, schema, layout in (
        (belief.restatements, restatements_schema(key), Layout((), (BK, VALID_FROM, VALID_TO), APPEND_ONLY)),
        (belief.conflicts, conflicts_schema(key), Layout((), (BK,), LIVE_APART)),
        (belief.table, belief_schema(key, subject), Layout((), (BK,), LIVE_APART)),
        (belief.history, history_schema(key, subject), live_apart),
    ):
        ensure(name, schema, layout, seat.tables, opened)


def _stepped(seat: Seat, start: Reached | None, end: Reached) -> Stepped:
    """One step, from what was believed then to what is believed now."""
    belief = seat.belief
    former = None if start is None else next((rule for rule in belief.rules if rule.version == start.version), None)
    step = Step(None if start is None else start.batch, end.batch, former, seat.rule(end.version), _just_spoken(seat, start, end))
    was_lost = seat.tables.version(belief.table) == 0 < seat.tables.version(belief.history)
    with logs_read_ahead(seat.tables, [belief.restatements] if step.may_restate else [], [belief.table, belief.history]):
        judged = judge(step, seat.ground, compare_present=was_lost)
    if judged is None:
        return Stepped(0, Written(), 0, changed=False)
    with present_beside(seat, judged, end) as present:
        receipts = _receipts_written(seat, judged, end)
        wrote = _written(seat, judged, end, present)
    return Stepped(judged.read, wrote[-1], receipts, changed=bool(receipts) or any(each != Written() for each in wrote))


def _just_spoken(seat: Seat, start: Reached | None, end: Reached) -> Spoken | None:
    """What the step is about, if it is one batch that this run has landed."""
    spoken = seat.world.spoken.get(str(seat.belief.entity.timeline))
    is_it = spoken is not None and start is not None and (spoken.after, spoken.batch) == (start.batch, end.batch)
    return spoken if is_it else None


def _written(seat: Seat, judged: Judged, end: Reached, present: Present) -> list[Written]:
    """Conflicts, then the history, whose commit says how far the belief has come; the present beside them."""
    belief, tables = seat.belief, seat.tables
    position = {"rules": _rules_used(seat, end), "known_at": seat.world.stamp.started_at.isoformat()}
    differing = write(judged.conflicts, belief.conflicts, tables, seat.commit(belief.conflicts, end))
    commit = seat.commit(belief.history, end, **position, **{GOES_WITH: present.number()})
    followed = write(judged.history, belief.history, tables, commit)
    return [differing, present.written(), followed]


def _receipts_written(seat: Seat, judged: Judged, end: Reached) -> int:
    """The receipts of a step, unless they are there already; they carry who wrote them and when."""
    table = seat.belief.restatements
    there = seat.tables.checkpoint(table, str(seat.belief.table)).position
    are_there = (there.get("evidence"), there.get("batch"), there.get("rule")) == (seat.made_at, end.batch, end.version)
    rows = None if are_there else judged.receipts_of(seat.world.stamp)
    if rows is None:
        return 0
    return seat.tables.append(rows, table, seat.commit(table, end)).inserted


def _rules_used(seat: Seat, end: Reached) -> dict[str, str]:
    """Every version that has ever been in force, with what it said."""
    begun = [rule for rule in seat.belief.rules if rule.in_force_from <= seat.world.stamp.started_at or rule.version == end.version]
    return {**seat.history.position.get("rules", {}), **{str(rule.version): rule.content_hash for rule in begun}}


def _summed(written: list[Written]) -> dict[str, int]:
    return {name: sum(getattr(each, name) for each in written) for name in ("inserted", "updated", "deleted")}
