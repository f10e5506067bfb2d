"""The timeline brought up to its evidence: what is new there, the versions it concerns, their difference, one commit.

New is every row of a later batch than the timeline's commit says, whoever wrote it and whenever. So a timeline that a
crash left behind catches up by the same steps that follow a batch.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.concerned import Concerned, concerned_by
from karat.bronze.context import StageContext, evidence_state, latest_by_source, remembered
from karat.bronze.continuation import REBUILD, continued
from karat.bronze.new_evidence import EvidenceState, NewEvidence
from karat.bronze.schema import SIGHTINGS, timeline_spec
from karat.bronze.timeline import timeline
from karat.errors import StateConflict
from karat.lake.changes import ChangeSet, change_set, inserts, write
from karat.lake.materialized import materialized
from karat.state.commits import Written, ours
from karat.temporal.changes import difference
from karat.temporal.columns import ACTION, BATCH_SEQ, BK, SK
from karat.temporal.statements import takes_part

ATTEMPTS = 5
"""How often a timeline that met another writer is brought up again."""


@dataclass(frozen=True)
class Consumed:
    """How far the timeline has come, and what was on record then."""

    batch: int
    before: EvidenceState


def catch_up(context: StageContext, known: Concerned | None = None) -> tuple[StageContext, Written]:
    """The context with a timeline that has consumed all evidence, and what that changed.

    `known` is what the last batch concerns. Another writer's commit is no failure: the timeline is then read again and
    brought up from there.
    """
    if not context.evidence.exists:
        return context, Written()
    for _ in range(ATTEMPTS - 1):
        try:
            written = advance(context, known)
        except StateConflict:
            context, known = context.refreshed(), None
        else:
            return (context if written == Written() else context.refreshed()), written
    written = advance(context)
    return context.refreshed(), written


def advance(context: StageContext, known: Concerned | None = None) -> Written:
    """Bring the timeline up to the evidence; nothing new: nothing written.

    `known` counts if the timeline is still the one it was looked up in, and lacks the last batch alone.
    """
    consumed = consumed_by(context)
    if consumed.batch >= context.batch:
        return Written()
    new = context.assertions().where(F.col(BATCH_SEQ) > consumed.batch)
    with ExitStack() as stack:
        if known is None or known.at != context.timeline.version or consumed.batch != context.batch - 1:
            known = stack.enter_context(concerned_by(new, consumed.before, context))
        if not known.new.about_keys and not known.new.source_level:
            return Written()
        changes = stack.enter_context(_changes(new, known, consumed, context))
        position = {"batch": context.batch, **remembered(state_after(consumed.before, known.new, context))}
        commit = context.run.commit(context.stage, context.timeline.next_number, **position)
        return write(changes, context.entity.timeline, context.tables, commit)


def consumed_by(context: StageContext) -> Consumed:
    """How far the timeline has come, by its own commit; commits of older versions name the evidence's version instead."""
    position = context.timeline.checkpoint.position
    if "batch" in position:
        return Consumed(int(position["batch"]), evidence_state(position))
    nothing = Consumed(0, evidence_state({}, is_first=True))
    if context.timeline.is_empty or "assertions" not in position:
        return nothing
    version = int(position["assertions"])
    for commit in context.tables.commits(context.entity.assertions):
        record = ours(commit)
        if commit["version"] <= version and record is not None and record["stage"] == context.stage:
            return Consumed(int(record["sequence"]), evidence_state(record["position"]))
    return nothing


def state_after(before: EvidenceState, found: NewEvidence, context: StageContext) -> EvidenceState:
    """What is on record once the new evidence is consumed."""
    unseen = before.unseen
    if context.is_lazy:
        unseen = max((at for at in (unseen, found.latest) if at is not None), default=None)
    source_level = latest_by_source(before.source_level, found.source_level)
    return replace(
        before,
        source_level=source_level,
        shows_apart=before.shows_apart | found.shows_apart,
        unseen=unseen,
        snapshots=before.snapshots or found.snapshots,
    )


@contextmanager
def _changes(new: DataFrame, concerned: Concerned, consumed: Consumed, context: StageContext) -> Iterator[ChangeSet]:
    """What the new evidence changes, computed and counted."""
    spec, found = timeline_spec(context.schema), concerned.new
    with ExitStack() as stack:
        if context.timeline.is_empty:
            yield inserts(_all_versions(found, context), spec)
            return
        if not consumed.batch:
            rows = difference(_all_versions(found, context), context.versions(), spec)
            yield change_set(stack.enter_context(materialized(rows)), spec)
            return
        news = (consumed.before, found)
        rows = continued(concerned.versions, new.where(takes_part()), news, context.schema, lazy=context.is_lazy)
        followed = stack.enter_context(materialized(rows))
        changes = change_set(followed, spec)
        if changes.counts.get(REBUILD):
            keys = stack.enter_context(materialized(followed.where(F.col(ACTION) == REBUILD).select(SK).distinct()))
            rebuilt = stack.enter_context(materialized(_rebuilt(keys, found, consumed.before, context)))
            changes = change_set(followed.join(keys, SK, "left_anti").unionByName(rebuilt), spec)
        yield changes


def _all_versions(found: NewEvidence, context: StageContext) -> DataFrame:
    """Every version that follows from the evidence. Grain: one row per version."""
    source_level = bool(found.source_level or found.shows_apart)
    return timeline(context.assertions(), context.schema, source_level=source_level)


def _rebuilt(keys: DataFrame, found: NewEvidence, before: EvidenceState, context: StageContext) -> DataFrame:
    """The versions of these keys from their whole evidence, as far as they differ from the held ones."""
    evidence = context.assertions()
    history = evidence.where(F.col(BK).isNotNull()).join(keys, SK, "left_semi")
    source_level = bool(found.source_level or before.source_level or found.shows_apart or before.shows_apart)
    if source_level:
        history = history.unionByName(evidence.where(F.col(BK).isNull()))
    held = context.versions().join(keys, SK, "left_semi")
    fresh = timeline(history, context.schema, source_level=source_level)
    return difference(fresh, held, timeline_spec(context.schema), SIGHTINGS if context.is_lazy else ())
