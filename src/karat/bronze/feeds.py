"""What an entity's feeds have that was not read yet, as statements. A feed that fails does not stop the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame

from karat.bronze.context import StageContext
from karat.bronze.files_read import sort_out, with_files
from karat.config.declared.entity import FilesSource, TableSource
from karat.config.resolved import FeedOf
from karat.contract.statements import statements
from karat.errors import ConfigError, InternalError, KaratError
from karat.lake.engine_errors import explained
from karat.lake.outcome import Outcome
from karat.sources.changes import changed_records, highest, records_between
from karat.sources.files import FileStat, listed, read_files

Entry = Mapping[str, Any]
"""What a feed's part of the next commit says about how far it was read."""


@dataclass(frozen=True)
class FeedBatch:
    """What one feed hands over."""

    feed: FeedOf
    rows: DataFrame
    entry: Entry
    files: Sequence[FileStat] = ()

    @property
    def may_be_empty_snapshot(self) -> bool:
        """Whether a file without rows would claim that everything is gone."""
        return self.feed.feed.absence_means == "deleted" and bool(self.files)


@dataclass(frozen=True)
class News:
    """What all feeds hand over together."""

    batches: tuple[FeedBatch, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, KaratError], ...] = ()

    @property
    def rows(self) -> DataFrame | None:
        """Every feed's statements; None when no feed has anything new."""
        return reduce(DataFrame.unionByName, (batch.rows for batch in self.batches)) if self.batches else None

    def without(self, failures: Sequence[tuple[str, KaratError]]) -> "News":
        """The same without what these feeds hand over: their rows showed that they break their contract."""
        failed = {name for name, _ in failures}
        left = tuple(batch for batch in self.batches if batch.feed.feed.name not in failed)
        return replace(self, batches=left, failures=(*self.failures, *failures))

    def entries(self, position: Mapping[str, Any]) -> dict[str, Entry]:
        """The next commit's account of every feed."""
        return {**position.get("feeds", {}), **{batch.feed.feed.name: batch.entry for batch in self.batches}}

    def concluded(self, outcome: Outcome) -> Outcome:
        """The outcome, failed if a feed did."""
        if not self.failures:
            return outcome
        _, first = self.failures[0]
        message = "; ".join(f"feed {name}: {failure.message}" for name, failure in self.failures)
        summary = "; ".join(f"feed {name}: {failure.summary}" for name, failure in self.failures)
        return replace(outcome, status="failed", problem=type(first)(message, remedy=first.remedy, summary=summary))


def read_feeds(context: StageContext) -> News:
    """Ask every feed; what is wrong with one is told at the end."""
    batches, notes, failures = [], [], []
    for feed in context.entity.feeds:
        try:
            batch, told = _read(feed, context)
        except Exception as failure:  # noqa: BLE001  (whatever one feed does, the others are heard)
            failures.append((feed.feed.name, explained(failure)))
            continue
        notes.extend(told)
        if batch is not None:
            batches.append(batch)
    return News(tuple(batches), tuple(notes), tuple(failures))


def _read(feed: FeedOf, context: StageContext) -> tuple[FeedBatch | None, list[str]]:
    match feed.feed.source:
        case FilesSource():
            return _read_files(feed, context)
        case TableSource():
            return _read_table(feed, feed.feed.source, context), []
    message = f"feed {feed.feed.name} reads from nowhere"
    raise ConfigError(message)


def _read_files(feed: FeedOf, context: StageContext) -> tuple[FeedBatch | None, list[str]]:
    session, name = context.tables.session, feed.feed.name
    found = sort_out(listed(feed.path, session), name, context)
    notes = [f"{file.path} was rewritten after it was read: deliver it under a new name" for file in found.rewritten]
    if not found.new:
        return None, notes
    raw = read_files(session, feed, found.new)
    entry = with_files(name, found.new, context)
    batch = _gated(raw, feed, entry, context)
    return replace(batch, files=found.new), notes


def _read_table(feed: FeedOf, source: TableSource, context: StageContext) -> FeedBatch | None:
    """The rows of a lake table beyond where the evidence's last commit says it was read to."""
    tables, name = context.tables, feed.table
    if name is None:
        message = f"feed {feed.feed.name} does not read a table"
        raise InternalError(message)
    rows = tables.read(name)  # an unknown table says so before anything else is asked of it
    version, entry = tables.version(name), context.position.get("feeds", {}).get(feed.feed.name, {})
    stands_at = {"version": version, "since": tables.table_id(name)}
    is_same_table = entry.get("since") == stands_at["since"]
    if is_same_table and entry.get("version") == version:
        return None
    if source.watermark is None:
        lower = entry.get("version") if is_same_table else None
        raw = changed_records(tables.session, tables.address(name), str(name), lower, version)
        return _gated(raw, feed, stands_at, context)
    lower, upper = entry.get("watermark"), highest(rows, source.watermark)
    raw = records_between(rows, str(name), source.watermark, lower, upper)
    return _gated(raw, feed, {**stands_at, "watermark": upper or lower}, context)


def _gated(raw: DataFrame, feed: FeedOf, entry: Entry, context: StageContext) -> FeedBatch:
    return FeedBatch(feed, statements(raw, context.entity, feed, context.run.stamp.started_at), entry)
