"""What the user said, with defaults filled in and names settled: the only form later rooms see."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from karat.config.entity import EntityDeclaration, Feed
from karat.config.grading import Grading
from karat.config.names import TableName
from karat.config.rules import Rule
from karat.config.settings import ProjectSettings


@dataclass(frozen=True)
class OrderBy:
    """One column of an order, with its real direction."""

    column: str
    descending: bool
    nulls_first: bool | None = None


@dataclass(frozen=True)
class CurationBooks:
    """Where a curation keeps its accounts."""

    control: TableName
    audit: TableName


@dataclass(frozen=True)
class CuratedTable:
    """One table to curate, complete."""

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
    books: CurationBooks

    @property
    def entity_key(self) -> tuple[str, ...]:
        """What identifies a row: the business key within its source system."""
        return self.keys if self.source_system is None else (*self.keys, self.source_system)

    @property
    def fingerprint(self) -> str:
        """Changes when anything declared of this table changes, its SQL included."""
        sql = self.sql_file.read_bytes() if self.sql_file and self.sql_file.is_file() else b"-"
        return hashlib.sha256(str(replace(self, sql_file=None)).encode() + sql).hexdigest()[:16]

    @property
    def quarantine(self) -> TableName:
        """Where refused rows go."""
        return self.target.beside("_quarantine")


@dataclass(frozen=True)
class FeedOf:
    """A feed of an entity, with its grade and where it reads."""

    feed: Feed
    grading: Grading
    table: TableName | None
    """The lake table it reads, if it reads one."""
    path: str
    """The path or glob of its files, if it reads files."""


@dataclass(frozen=True)
class Entity:
    """A thing many systems speak of, complete."""

    declared: EntityDeclaration
    timeline: TableName
    feeds: tuple[FeedOf, ...]

    @property
    def name(self) -> str:
        """The name people call it by."""
        return self.declared.name

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify it."""
        return tuple(self.declared.key)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Everything said about it, in the order of the declaration."""
        return tuple(self.declared.attributes)

    @property
    def assertions(self) -> TableName:
        """Where the evidence is kept."""
        return self.timeline.beside("_assertions")

    @property
    def quarantine(self) -> TableName:
        """Where refused rows go."""
        return self.timeline.beside("_quarantine")


@dataclass(frozen=True)
class Belief:
    """What is held true of an entity, complete."""

    name: str
    entity: Entity
    table: TableName
    rules: tuple[Rule, ...]
    place: str = field(default="", compare=False, repr=False)
    """Where it is declared."""

    @property
    def history(self) -> TableName:
        """Where every period of the belief is kept."""
        return self.table.beside("_history")

    @property
    def restatements(self) -> TableName:
        """Where it is kept what was believed of the past before that changed."""
        return self.table.beside("_restatements")

    @property
    def conflicts(self) -> TableName:
        """Where sources differ now."""
        return self.table.beside("_conflicts")

    @property
    def tables(self) -> tuple[TableName, ...]:
        """All of them."""
        return (self.table, self.history, self.restatements, self.conflicts)


@dataclass(frozen=True)
class Config:
    """A whole project as it was read."""

    folder: Path
    settings: ProjectSettings
    lake: str
    curated: tuple[CuratedTable, ...]
    entities: tuple[Entity, ...] = ()
    beliefs: tuple[Belief, ...] = ()

    @property
    def hash(self) -> str:
        """Changes when anything declared changes, the SQL included; secrets are references, so none is in it."""
        declared = [*(table.fingerprint for table in self.curated), *map(str, self.entities), *map(str, self.beliefs)]
        text = json.dumps([self.settings.model_dump(mode="json"), declared], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
