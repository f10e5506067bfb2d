"""Stages as plain values: which table is brought up to date, what is read and written, since when, and why."""

from dataclasses import dataclass
from typing import Literal

from karat.config.resolved import Belief, CuratedTable, Entity
from karat.config.star import Star
from karat.config.wiring import tables_read, tables_written


@dataclass(frozen=True)
class Curate:
    """Bring one silver table up to date with its source."""

    table: CuratedTable
    since: str | None
    """The watermark on record, as text; None before the first load. The run itself reads it from the target's log."""
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
        return (
            str(self.table.target),
            str(self.table.quarantine),
            str(self.table.audit_tables.control),
            str(self.table.audit_tables.audit),
        )


@dataclass(frozen=True)
class Land:
    """Append what is new in an entity's feeds to its evidence, and bring its timeline up to date with it."""

    entity: Entity
    since: str | None
    """How far its feeds have been consumed, as text; None before the first load. The run itself reads it from the evidence's log."""
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
    """Bring a belief, the golden record of an entity, up to date with the entity's evidence."""

    belief: Belief
    since: str | None
    """How much of the evidence it rests on, as text; None before the first time. The run itself reads it from the log of the history."""
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


@dataclass(frozen=True)
class Load:
    """Bring a dimension, a fact or a bridge up to date with its sources."""

    star: Star
    since: str | None
    """The version of each source that was read last, as text; None before the first load. The run itself reads it from the target's log."""
    why: str
    reload: bool = False
    """Whether everything is read again, whatever was read before."""
    kind: Literal["load"] = "load"

    @property
    def name(self) -> str:
        """The name people select it by."""
        return str(self.star.table)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables it reads."""
        return tables_read(self.star)

    @property
    def writes(self) -> tuple[str, ...]:
        """The tables it may write."""
        return tables_written(self.star)


Stage = Curate | Land | Believe | Load
"""Every kind of stage; after adding one here, the type checker names each place that must handle it."""
