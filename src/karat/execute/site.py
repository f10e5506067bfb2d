"""Where an entity's stage works, and what its commits remember for the next batch."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from karat.bronze.continuation import Past
from karat.config.resolved import Entity
from karat.execute.advance import Ground
from karat.execute.evidence import terms_of, told_by_evidence
from karat.execute.snapshots import Complete
from karat.execute.suspicion import Watch
from karat.execute.tally import Tally, latest
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.state.commits import Checkpoint, Commit
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, micros_of


@dataclass(frozen=True)
class Site:
    """Where a stage works: the entity, its terms, its tables, and the run it is part of."""

    entity: Entity
    terms: EntitySchema
    tables: DeltaTables
    world: RunContext
    previous: Checkpoint
    replayed: tuple[str, ...] = ()
    """Rows of the quarantine that this batch admits."""

    @property
    def ground(self) -> Ground:
        """Where its timeline stands."""
        return Ground(self.entity, self.terms, self.tables)

    @property
    def watch(self) -> Watch:
        """What is looked out for, given how far its sources had got."""
        return Watch(self.entity, self.previous.position.get("reached", {}), self.world.stamp.started_at)

    @property
    def knows_how_far(self) -> bool:
        """Whether it is on record how far every source had got."""
        return "reached" in self.previous.position or self.previous.sequence == 0

    def is_behind(self, tally: Tally) -> bool:
        """Whether all of a batch is later than anything on record."""
        return self.knows_how_far and tally.earliest is not None and self.watch.is_behind(tally.earliest)

    def reached(self, tally: Tally) -> datetime:
        """The latest time anybody has spoken of."""
        return max(from_micros(told["time"]) for told in self.watch.remembered(tally.watched).values() if "time" in told)

    def commit(self, **position: Any) -> Commit:  # noqa: ANN401  (whatever JSON holds)
        """The next commit to the evidence."""
        stamp = self.world.stamp
        return Commit(str(self.entity.timeline), self.previous.sequence + 1, stamp.run_id, self.world.config.hash, position)


def site_of(entity: Entity, world: RunContext) -> Site:
    """The entity as its own evidence describes it: who has ever spoken, which attributes are on record, how far it was read."""
    tables = world.tables()
    previous = tables.checkpoint(entity.assertions, str(entity.timeline))
    if "clock" not in previous.position:  # a log that was cleaned up does not say, nor does one of before; then the evidence is asked
        told = told_by_evidence(entity, tables)
        lacking = {"clock": told["clock"]} if "sources" in previous.position else told
        previous = replace(previous, position={**previous.position, **lacking})
    speaking = {feed.feed.source_system for feed in entity.feeds} | set(previous.position["sources"])
    return Site(entity, terms_of(entity, tables, tuple(sorted(speaking))), tables, world, previous)


def past_of(site: Site, tally: Tally, complete: Complete | None) -> Past:
    """What earlier commits and this batch say beyond what versions show."""
    position = site.previous.position
    known = [(source, datetime.fromisoformat(at)) for source, at in position.get("sweeps", {}).items()]
    swept = [*known, *tally.truncates.items(), *(complete.until.items() if complete else ())]
    unseen = position.get("unseen")
    apart = frozenset(position.get("apart", ())) | tally.shows_apart
    never: dict[str, datetime] | None = {} if site.previous.sequence == 0 else None
    behind = {source: from_micros(at) for source, at in position["behind"].items()} if "behind" in position else never
    return Past(latest(swept), apart, None if unseen is None else from_micros(unseen), behind)


def remembered(past: Past, tally: Tally, site: Site) -> dict[str, Any]:
    """What the next batch must know; that sightings were once lazy holds on, whatever is declared later."""
    reached = site.watch.remembered(tally.watched)
    unseen = site.previous.position.get("unseen")
    if site.ground.is_lazy:
        unseen = max((told["time"] for told in reached.values() if "time" in told), default=unseen)
    sweeps = {source: at.isoformat() for source, at in past.sweeps.items()}
    seen = {"apart": sorted(past.shows_apart), "reached": reached, "unseen": unseen}
    return {"sweeps": sweeps, **seen, "clock": _clock(site), "behind": _behind(past, tally, site)}


def _behind(past: Past, tally: Tally, site: Site) -> dict[str, int]:
    """What had arrived when each source last spoke of a time it had reached before; where nobody knows, of all that have ever spoken.

    Statements of one batch hear each other in their order, so what arrives with it is not overtaken by it.
    """
    spoke = site.terms.sources if past.behind is None else site.watch.spoke_of_the_past(tally.watched)
    known = {source: micros_of(at) for source, at in (past.behind or {}).items()}
    arrived = site.previous.position.get("clock")
    return {**known, **dict.fromkeys(spoke, _clock(site) if arrived is None else arrived)}


def _clock(site: Site) -> int:
    """The latest arrival there has been: clocks may run behind, and what came before this batch must not seem to come after it."""
    now = micros_of(site.world.stamp.started_at)
    return max(now, site.previous.position.get("clock") or now)
