"""Where a stage of the star works: its table and its sources as they were when the stage began, and what was read of them before.

A commit's position has, for each source, the table's id and the version that was read: {"sources": {"c": {"id": …, "version": 7}}}.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from karat.config.star import Dimension, Fact, Source, StarTable
from karat.errors import ConfigError, StateConflict
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.tables import TableState
from karat.plan.stages import Load
from karat.state.commits import Commit


@dataclass(frozen=True)
class SourceState:
    """A source as it was when the stage began."""

    source: Source
    version: int
    committed_at: datetime
    table_id: str
    read: int | None
    """The version that was read last; None before the first time, and when everything is read again."""
    known_id: str | None
    """The id of the table that was read last."""

    @property
    def is_changed(self) -> bool:
        """Whether there is anything that was not read."""
        return self.read is None or self.version > self.read or self.table_id != self.known_id


@dataclass(frozen=True)
class StarContext:
    """A target's table and sources as they were when the stage began, and the run that the stage is part of."""

    star: StarTable
    tables: DeltaTables
    run: RunContext
    state: TableState
    sources: tuple[SourceState, ...]
    is_reload: bool = False

    @property
    def is_first(self) -> bool:
        """Whether nothing of the sources is in the table yet."""
        return not self.state.checkpoint.position.get("sources") and not self.state.checkpoint.position.get("calendar")

    @property
    def committed_at(self) -> datetime:
        """When the youngest source was last changed."""
        return max((source.committed_at for source in self.sources), default=self.run.stamp.started_at)

    @property
    def newest(self) -> int:
        """The highest version of any source: the order of states that are read from whole tables."""
        return max((source.version for source in self.sources), default=0)

    def position(self, **more: Any) -> dict[str, Any]:  # noqa: ANN401  (whatever JSON holds)
        """What the target's next commit remembers."""
        sources = {
            each.source.alias: {"table": str(each.source.table), "id": each.table_id, "version": each.version, "read": each.read}
            for each in self.sources
        }
        return {"sources": sources, "committed_at": self.committed_at.isoformat(), **more}

    def commit(self, **more: Any) -> Commit:  # noqa: ANN401
        """The next commit to the target."""
        return self.run.commit(str(self.star.table), self.state.next_number, **self.position(**more))


def star_context(stage: Load, run: RunContext) -> StarContext:
    """The target's log read once, then each source's; a source that cannot be continued is refused."""
    tables, star = run.tables(), stage.star
    state = tables.state(star.table, stage.name)
    known = {} if stage.reload else state.checkpoint.position.get("sources", {})
    sources = tuple(_source_state(source, known.get(source.alias), tables, star) for source in star.sources)
    return StarContext(star, tables, run, state, sources, stage.reload)


def _source_state(source: Source, known: Mapping[str, Any] | None, tables: DeltaTables, star: StarTable) -> SourceState:
    tables.read(source.table)  # an unknown table says so before anything else is asked of it
    version, committed_at = tables.last_commit(source.table)
    table_id = tables.table_id(source.table)
    read, known_id = (None, None) if known is None else (int(known["version"]), str(known["id"]))
    if source.is_feed and known_id is not None and known_id != table_id:
        message = f"{source.table} was made anew since {star.table} read it: what changed in between is not known"
        raise ConfigError(message, remedy=reload_remedy(star))
    if source.is_feed and known is None and tables.property(source.table, "delta.enableChangeDataFeed") != "true":
        message = f"{source.table} has no change feed, which {star.table} reads (mode: cdf)"
        remedy = f"ALTER TABLE {source.table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true), or use mode: full"
        raise ConfigError(message, remedy=remedy)
    return SourceState(source, version, committed_at, table_id, read, known_id)


def reload_remedy(star: StarTable) -> str:
    """The way out where changes are lost."""
    return f"karat run --select {star.table} --reload reads all of its sources again; its history and its keys stay"


@dataclass(frozen=True)
class DimensionState:
    """A dimension as it is now, for a target that takes its keys."""

    dimension: Dimension
    state: TableState
    read: int | None = None
    """The version that the target looked up last."""


def dimension_states(dimensions: Mapping[str, Dimension], context: StarContext) -> dict[str, DimensionState]:
    """Each dimension that a target looks up, by name."""
    known = context.state.checkpoint.position.get("dimensions", {})
    found = {}
    for name, dimension in dimensions.items():
        state = context.tables.state(dimension.table, str(dimension.table))
        if not state.exists:
            message = f"there is no table {dimension.table} yet, in which {context.star.table} looks up keys"
            raise StateConflict(message, remedy=f"run {dimension.table} first: karat run --select {dimension.table}")
        found[name] = DimensionState(dimension, state, known.get(name))
    return found


def looked_up(fact: Fact) -> dict[str, Dimension]:
    """The dimensions of a fact's lookups, by name."""
    return {lookup.dimension.name: lookup.dimension for lookup in fact.lookups}


@dataclass
class Account:
    """What a stage counts on its way."""

    read: int = 0
    quarantined: int = 0
    skeletons: int = 0
    closed: int = 0
    notes: list[str] = field(default_factory=list)


def in_utc(value: datetime) -> datetime:
    """A time as Spark hands it to Python: without a zone it is this machine's."""
    return value.astimezone(UTC)
