"""Where a stage of an entity works: its schema, how its tables stood when the stage began, and what commits remember.

The position in a commit to the evidence is described in `karat.lake.evidence`. The position in a commit to the timeline
says which batch of the evidence it has consumed (`batch`), and what sources had said by then about everything they have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame

from karat.bronze.batch_stats import BatchStats
from karat.bronze.feed_progress import FeedProgress
from karat.bronze.new_evidence import EvidenceState, NewEvidence, SourceLevel
from karat.bronze.schema import assertions_schema, timeline_schema
from karat.config.resolved import Entity
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.evidence import entity_schema, evidence_of
from karat.lake.preparation import APPEND_ONLY, DELETION_VECTORS, ensure
from karat.lake.tables import Layout, TableState
from karat.state.commits import Commit
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, micros_of


@dataclass(frozen=True)
class StageContext:
    """An entity's tables as they were when the stage began, and the run that the stage is part of."""

    entity: Entity
    schema: EntitySchema
    tables: DeltaTables
    run: RunContext
    evidence: TableState
    timeline: TableState
    is_replay: bool = False
    """Whether the batch comes from the quarantine."""

    @property
    def position(self) -> Mapping[str, Any]:
        """What the evidence's last commit remembers."""
        return self.evidence.checkpoint.position

    @property
    def batch(self) -> int:
        """The number of the evidence's last batch."""
        return self.evidence.checkpoint.sequence

    @property
    def before(self) -> EvidenceState:
        """What is on record, beyond what versions show."""
        return evidence_state(self.position, is_first=self.batch == 0)

    @property
    def progress(self) -> FeedProgress:
        """How far each source has got, to see what runs backwards."""
        return FeedProgress(self.entity, self.position.get("reached", {}), self.run.stamp.started_at)

    @property
    def is_lazy(self) -> bool:
        """Whether a version that was merely seen again stays as it is."""
        return self.entity.declared.sightings == "lazy"

    @property
    def stage(self) -> str:
        """The name under which both tables count the stage's commits."""
        return str(self.entity.timeline)

    def assertions(self) -> DataFrame:
        """All evidence, as it was when the stage began."""
        return self.tables.read(self.entity.assertions, self.evidence.version)

    def versions(self) -> DataFrame:
        """All held versions, as they were when the stage began."""
        rows = self.tables.read(self.entity.timeline, self.timeline.version)
        return rows.select(*map(c.col, timeline_schema(self.schema).names))

    def commit(self, **position: Any) -> Commit:  # noqa: ANN401  (whatever JSON holds)
        """The next commit to the evidence."""
        return self.run.commit(self.stage, self.evidence.next_number, **position)

    def refreshed(self) -> "StageContext":
        """The same with both tables as they are now."""
        timeline = self.tables.state(self.entity.timeline, self.stage)
        evidence = evidence_of(self.entity, self.tables)
        return replace(self, schema=entity_schema(self.entity, evidence, self.tables), evidence=evidence, timeline=timeline)


def stage_context(entity: Entity, run: RunContext) -> StageContext:
    """Both tables' state, read once: the timeline's first, so that the evidence has all that the timeline has consumed."""
    tables = run.tables()
    timeline = tables.state(entity.timeline, str(entity.timeline))
    evidence = evidence_of(entity, tables)
    return StageContext(entity, entity_schema(entity, evidence, tables), tables, run, evidence, timeline)


def prepared(context: StageContext) -> StageContext:
    """The context with both tables there and every column in them."""
    entity, schema, tables = context.entity, context.schema, context.tables
    opened = context.run.commit(context.stage, 0)
    by_time = Layout((), (c.BK, c.EVENT_TS, c.INGEST_TS, c.BATCH_SEQ), APPEND_ONLY)
    live_apart = () if schema.is_transaction else (c.IS_SOURCE_CURRENT,)
    by_period = Layout(live_apart, (c.BK, c.EFFECTIVE_FROM, c.EFFECTIVE_TO, c.SOURCE_EFFECTIVE_TO), DELETION_VECTORS)
    changed = [
        ensure(name, wanted, layout, tables, opened)
        for name, wanted, layout in (
            (entity.assertions, assertions_schema(schema), by_time),
            (entity.timeline, timeline_schema(schema), by_period),
        )
    ]
    # numbers stay those of the beginning: a commit of another run in between must show itself as a conflict
    evidence, timeline = (
        replace(state, version=tables.version(state.name)) if was_changed else state
        for state, was_changed in zip((context.evidence, context.timeline), changed, strict=True)
    )
    return replace(context, evidence=evidence, timeline=timeline)


def evidence_state(position: Mapping[str, Any], *, is_first: bool = False) -> EvidenceState:
    """What was on record, as a commit remembers it; `is_first`: before anything was."""
    at = {source: datetime.fromisoformat(time) for source, time in position.get("sweeps", {}).items()}
    unseen = position.get("unseen")
    overtaken = {source: from_micros(time) for source, time in position["behind"].items()} if "behind" in position else None
    return EvidenceState(
        at,
        frozenset(position.get("apart", ())),
        None if unseen is None else from_micros(unseen),
        {} if overtaken is None and is_first else overtaken,
        bool(position.get("snapshots", not is_first)),
        bool(position.get("in_order", is_first)),
    )


def remembered(state: EvidenceState) -> dict[str, Any]:
    """The other way round: what a commit remembers of it."""
    told: dict[str, Any] = {
        "sweeps": {source: at.isoformat() for source, at in state.source_level.items()},
        "apart": sorted(state.shows_apart),
        "unseen": None if state.unseen is None else micros_of(state.unseen),
        "snapshots": state.snapshots,
        "in_order": state.arrivals_in_order,
    }
    if state.overtaken is not None:
        told["behind"] = {source: micros_of(at) for source, at in state.overtaken.items()}
    return told


def position_after(stats: BatchStats, new: NewEvidence, feeds: Mapping[str, Any], context: StageContext) -> dict[str, Any]:
    """What the evidence's next commit remembers: `new` are the batch's statements in sum."""
    before, position = context.before, context.position
    reached = context.progress.remembered(stats.watched)
    unseen = before.unseen
    if context.is_lazy:
        times = [from_micros(told["time"]) for told in reached.values() if "time" in told]
        unseen = max(times, default=unseen)
    after = replace(
        before,
        source_level=latest_by_source(before.source_level, new.source_level),
        shows_apart=before.shows_apart | new.shows_apart,
        unseen=unseen,
        overtaken=_overtaken_after(before, stats, context),
        snapshots=before.snapshots or new.snapshots,
        arrivals_in_order=before.arrivals_in_order and _clock(context) == micros_of(context.run.stamp.started_at),
    )
    return {
        "feeds": dict(feeds),
        "key": list(context.entity.key),
        "sources": sorted({*context.schema.sources, *position.get("sources", ())}),
        **remembered(after),
        "reached": reached,
        "clock": _clock(context),
    }


def latest_by_source(known: Mapping[str, datetime], new: tuple[SourceLevel, ...]) -> dict[str, datetime]:
    """Source to the latest time at which it said something about everything it has."""
    latest = dict(known)
    for each in new:
        latest[each.source] = max(each.at, latest.get(each.source, each.at))
    return latest


def _overtaken_after(before: EvidenceState, stats: BatchStats, context: StageContext) -> dict[str, datetime]:
    """What had arrived when each source last spoke of a time it had reached before; of all sources where nothing is known.

    Statements of one batch inherit from each other in their order, so what arrives with it is not overtaken by it.
    """
    sources = context.schema.sources if before.overtaken is None else context.progress.went_back(stats.watched)
    arrived = context.position.get("clock")
    until = from_micros(_clock(context) if arrived is None else arrived)
    return {**(before.overtaken or {}), **dict.fromkeys(sources, until)}


def _clock(context: StageContext) -> int:
    """The latest arrival there has been: clocks may run behind, and what came before this batch must not seem to come after it."""
    now = micros_of(context.run.stamp.started_at)
    return max(now, context.position.get("clock") or now)
