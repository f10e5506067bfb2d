"""The configuration with defaults filled in and names resolved: the only form that other folders read."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from karat.config.declared.entity import EntityDeclaration, Feed
from karat.config.declared.grading import Grading
from karat.config.names import TableName
from karat.config.rules import Rule
from karat.config.settings import ProjectSettings

if TYPE_CHECKING:
    from karat.config.star import Star


@dataclass(frozen=True)
class OrderBy:
    """One column of an order, with its direction."""

    column: str
    descending: bool
    nulls_first: bool | None = None


@dataclass(frozen=True)
class AuditTables:
    """The control table and the audit table of a curation."""

    control: TableName
    audit: TableName


@dataclass(frozen=True)
class CuratedTable:
    """One curated table with all its settings."""

    source: TableName
    target: TableName
    scd_type: int
    keys: tuple[str, ...]
    source_system: str | None
    watermark: str
    lookback: str
    order: tuple[OrderBy, ...]
    start: str
    end: str
    current: str
    tracked: tuple[str, ...] | None
    sql_file: Path | None
    place_late: bool
    hash: str
    effective_from: str
    add_columns: bool
    open_end: datetime
    audit_tables: AuditTables

    @property
    def entity_key(self) -> tuple[str, ...]:
        """What identifies a row: the business key within its source system."""
        return self.keys if self.source_system is None else (*self.keys, self.source_system)

    @property
    def fingerprint(self) -> str:
        """A hash that changes with anything declared of this table, its SQL included."""
        sql = self.sql_file.read_bytes() if self.sql_file and self.sql_file.is_file() else b"-"
        return hashlib.sha256(str(replace(self, sql_file=None)).encode() + sql).hexdigest()[:16]

    @property
    def quarantine(self) -> TableName:
        """The table of refused rows."""
        return self.target.with_suffix("_quarantine")


@dataclass(frozen=True)
class FeedOf:
    """A feed of an entity, with its grade and its location."""

    feed: Feed
    grading: Grading
    table: TableName | None
    """The lake table it reads, if it reads one."""
    path: str
    """The path or glob of its files, if it reads files."""


@dataclass(frozen=True)
class Entity:
    """An entity with its feeds and tables."""

    declared: EntityDeclaration
    timeline: TableName
    feeds: tuple[FeedOf, ...]

    @property
    def name(self) -> str:
        """The declared name."""
        return self.declared.name

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify it."""
        return tuple(self.declared.key)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes, in the order of the declaration."""
        return tuple(self.declared.attributes)

    @property
    def assertions(self) -> TableName:
        """The table of its evidence."""
        return self.timeline.with_suffix("_assertions")

    @property
    def quarantine(self) -> TableName:
        """The table of refused rows."""
        return self.timeline.with_suffix("_quarantine")


@dataclass(frozen=True)
class Belief:
    """A belief about an entity, with its rules and tables."""

    name: str
    entity: Entity
    table: TableName
    rules: tuple[Rule, ...]
    place: str = field(default="", compare=False, repr=False)
    """File and line of its rules."""

    @property
    def history(self) -> TableName:
        """The table of all periods of the belief."""
        return self.table.with_suffix("_history")

    @property
    def restatements(self) -> TableName:
        """The table of what was believed about the past before it changed."""
        return self.table.with_suffix("_restatements")

    @property
    def conflicts(self) -> TableName:
        """The table of attributes on which sources differ now."""
        return self.table.with_suffix("_conflicts")

    @property
    def tables(self) -> tuple[TableName, ...]:
        """All tables of the belief."""
        return (self.table, self.history, self.restatements, self.conflicts)


@dataclass(frozen=True)
class Config:
    """A project's configuration."""

    folder: Path
    settings: ProjectSettings
    lake: str
    curated: tuple[CuratedTable, ...]
    entities: tuple[Entity, ...] = ()
    beliefs: tuple[Belief, ...] = ()
    star: "tuple[Star, ...]" = ()
    """Dimensions first, then facts and bridges."""
    variables: Mapping[str, object] = field(default_factory=dict)
    """What templates know as `var`."""

    @property
    def hash(self) -> str:
        """A hash that changes with anything declared, SQL included; secrets are references, so none is in it."""
        declared = [*(table.fingerprint for table in self.curated), *map(str, self.entities), *map(str, self.beliefs), *map(str, self.star)]
        text = json.dumps([self.settings.model_dump(mode="json"), declared], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
