"""What an entity's feeds have that was not read yet, as statements; a feed that fails does not keep the others from speaking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from karat.config.entity import FilesSource, TableSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.drift import drift
from karat.contract.statements import statements
from karat.errors import ConfigError, KaratError
from karat.execute.handed_over import Known, known_files, news, with_files
from karat.execute.kept import kept
from karat.execute.pace import interpreted, planned_once
from karat.execute.tabled import read_table
from karat.lake.delta import DeltaTables
from karat.lake.engine_errors import explained
from karat.lake.outcome import Outcome
from karat.sources.files import FileStat, listed, read_files
from karat.sources.raw import is_typed
from karat.state.commits import Commit

Entry = Mapping[str, Any]
"""What a feed's part of the next commit says about how far it was read."""


SMALL = 32 * 1024 * 1024
"""Bytes of files of text that are still little."""
SMALL_PACKED = 1024 * 1024
"""Bytes of files of columns, where a few may hold very many rows."""


@dataclass(frozen=True)
class Part:
    """What one feed hands over."""

    feed: FeedOf
    rows: DataFrame
    files: Sequence[FileStat] = ()
    known: Known = field(default_factory=Known)
    entry: Entry | None = None
    """Where a feed without files stands afterwards."""


@dataclass(frozen=True)
class Gathered:
    """All parts together."""

    parts: tuple[Part, ...]
    position: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, KaratError], ...] = ()

    @property
    def rows(self) -> DataFrame | None:
        """Every feed's statements; None when no feed has anything new."""
        return reduce(DataFrame.unionByName, (part.rows for part in self.parts)) if self.parts else None

    @property
    def is_small(self) -> bool:
        """Whether it is known to be little: files say how large they are, tables do not."""
        return all(part.files for part in self.parts) and sum(_share_of_little(part.feed, part.files) for part in self.parts) <= 1

    @property
    def empty(self) -> tuple[Part, ...]:
        """Parts that may be empty snapshots: feeds whose silence would delete."""
        return tuple(part for part in self.parts if part.feed.feed.absence_means == "deleted" and part.files)

    def entries(self, entity: Entity, tables: DeltaTables, commit: Commit) -> dict[str, Entry]:
        """The next commit's account of every feed."""
        said = dict(self.position.get("feeds", {}))
        for part in self.parts:
            name = part.feed.feed.name
            said[name] = part.entry if part.entry is not None else with_files(entity, name, part.known, part.files, (tables, commit))
        return said

    def concluded(self, outcome: Outcome) -> Outcome:
        """The outcome, failed if a feed did."""
        if not self.failures:
            return outcome
        _, first = self.failures[0]
        message = "; ".join(f"feed {name}: {failure.message}" for name, failure in self.failures)
        return replace(outcome, status="failed", problem=type(first)(message, remedy=first.remedy))


def gather(entity: Entity, position: Mapping[str, Any], tables: DeltaTables, ingest_ts: datetime) -> Gathered:
    """Ask every feed; what is wrong with one is kept for the end."""
    parts, notes, failures = [], [], []
    for feed in entity.feeds:
        try:
            part, heard = _asked(entity, feed, position, tables, ingest_ts)
        except Exception as failure:  # noqa: BLE001  (whatever one feed does, the others are heard)
            failures.append((feed.feed.name, explained(failure)))
            continue
        notes.extend(heard)
        if part is not None:
            parts.append(part)
    return Gathered(tuple(parts), position, tuple(notes), tuple(failures))


def _share_of_little(feed: FeedOf, files: Sequence[FileStat]) -> float:
    """How much of what counts as little the files are; above 1 they are much."""
    source = feed.feed.source
    is_packed = isinstance(source, FilesSource) and source.format == "parquet"
    return sum(file.size for file in files) / (SMALL_PACKED if is_packed else SMALL)


def _asked(
    entity: Entity, feed: FeedOf, position: Mapping[str, Any], tables: DeltaTables, ingest_ts: datetime
) -> tuple[Part | None, list[str]]:
    match feed.feed.source:
        case FilesSource():
            known = known_files(entity, feed.feed.name, position, tables)
            found = news(listed(feed.path, tables.session), known)
            notes = [f"{file.path} was rewritten after it was read: deliver it under a new name" for file in found.rewritten]
            if not found.files:
                return None, notes
            raw = read_files(tables.session, feed, found.files)
            few = _share_of_little(feed, found.files) <= 1
            if few and not is_typed(raw):  # looked through for its columns, then read: taken to pieces once
                raw = kept(raw)
            with interpreted(tables.session, few=few), planned_once(tables.session):  # names are few, however many rows have them
                drifted = drift(raw, entity, feed, few=few)
            said = statements(raw, entity, feed, ingest_ts, drifted)
            return Part(feed, said, found.files, known), [*notes, *drifted.notes]
        case TableSource():
            handed = read_table(feed, position.get("feeds", {}).get(feed.feed.name, {}), tables)
            if handed is None:
                return None, []
            raw, entry = handed
            drifted = drift(raw, entity, feed)
            return Part(feed, statements(raw, entity, feed, ingest_ts, drifted), entry=entry), list(drifted.notes)
    message = f"feed {feed.feed.name} reads from nowhere"
    raise ConfigError(message)
