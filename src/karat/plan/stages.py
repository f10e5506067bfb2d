"""One stage is one act on one table, as a plain value: what it reads, what it writes, since when, and why."""

from dataclasses import dataclass
from typing import Literal

from karat.config.resolved import Belief, CuratedTable, Entity


@dataclass(frozen=True)
class Curate:
    """Bring one silver table up to date with its source."""

    table: CuratedTable
    since: str | None
    """The watermark on record, as text; None before the first load. Execution asks the target itself."""
    why: str
    kind: Literal["curate"] = "curate"

    @property
    def name(self) -> str:
        """The name people select it by."""
        return str(self.table.target)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables it reads."""
        return (str(self.table.source),)

    @property
    def writes(self) -> tuple[str, ...]:
        """The tables it may write."""
        return (str(self.table.target), str(self.table.quarantine), str(self.table.books.control), str(self.table.books.audit))


@dataclass(frozen=True)
class Land:
    """Keep what an entity's feeds say as evidence, and bring its timeline up to date with it."""

    entity: Entity
    since: str | None
    """How far its feeds have been consumed, as text; None before the first load. Execution asks the evidence itself."""
    why: str
    kind: Literal["land"] = "land"

    @property
    def name(self) -> str:
        """The name people select it by."""
        return str(self.entity.timeline)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables and files it reads."""
        return tuple(str(feed.table) if feed.table is not None else feed.feed.source.path for feed in self.entity.feeds)  # type: ignore[union-attr]

    @property
    def writes(self) -> tuple[str, ...]:
        """The tables it may write."""
        return (str(self.entity.timeline), str(self.entity.assertions), str(self.entity.quarantine))


@dataclass(frozen=True)
class Believe:
    """Decide what is believed of an entity, attribute by attribute, from what is on record about it."""

    belief: Belief
    since: str | None
    """How much of the evidence it rests on, as text; None before the first time. Execution asks its history itself."""
    why: str
    kind: Literal["believe"] = "believe"

    @property
    def name(self) -> str:
        """The name people select it by."""
        return str(self.belief.table)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables it reads."""
        return (str(self.belief.entity.assertions),)

    @property
    def writes(self) -> tuple[str, ...]:
        """The tables it may write."""
        return tuple(map(str, self.belief.tables))


Stage = Curate | Land | Believe
"""Every kind of stage; a new kind joins by `|`, and the type checker names each place that must learn it."""
