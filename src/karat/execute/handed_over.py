"""What a feed has handed over already, as the evidence's own commits say it, and what is new.

Files are remembered one by one: a name that sorts low or a date that lies back must not hide a new file. The latest are
listed in the commit itself; when the list grows long its older part moves into a table beside the evidence, before the
commit that no longer lists it. A crash in between leaves a file on both lists, which hurts nobody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.config.resolved import Entity
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout
from karat.sources.files import FileStat
from karat.state.commits import Commit

MOST_LISTED = 500
"""How many files of a feed a commit lists."""
LEDGER = T.StructType(
    [
        T.StructField("feed", T.StringType()),
        T.StructField("path", T.StringType()),
        T.StructField("size", T.LongType()),
        T.StructField("modified", T.LongType()),
    ]
)


@dataclass(frozen=True)
class Known:
    """The files of one feed that were read: by path, with size and time as they were then."""

    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    listed: Sequence[Sequence[Any]] = ()
    """Those the last commit lists."""


@dataclass(frozen=True)
class News:
    """What a feed has that was not read, and what it has under a name that was."""

    files: tuple[FileStat, ...]
    rewritten: tuple[FileStat, ...]


def known_files(entity: Entity, feed: str, position: Mapping[str, Any], tables: DeltaTables) -> Known:
    """Every file of the feed on record, in the commit or in the table beside the evidence."""
    entry = position.get("feeds", {}).get(feed, {})
    listed = entry.get("files", [])
    files = {path: (size, modified) for path, size, modified in listed}
    if entry.get("moved"):
        rows = tables.read(ledger_of(entity)).where(F.col("feed") == feed).collect()
        files |= {row["path"]: (row["size"], row["modified"]) for row in rows}
    return Known(files, listed)


def news(found: Sequence[FileStat], known: Known) -> News:
    """The found files apart: never read, and read but changed since."""
    new = tuple(file for file in found if file.path not in known.files)
    changed = tuple(file for file in found if file.path in known.files and known.files[file.path] != (file.size, file.modified))
    return News(new, changed)


def with_files(entity: Entity, feed: str, known: Known, read: Sequence[FileStat], writing: tuple[DeltaTables, Commit]) -> dict[str, Any]:
    """The feed's entry for the next commit; a list that has grown too long first moves into the ledger."""
    listed = [*known.listed, *([file.path, file.size, file.modified] for file in read)]
    moved = len(known.files) > len(known.listed)
    if len(listed) <= MOST_LISTED:
        return {"files": listed, "moved": moved}
    tables, commit = writing
    ledger = ledger_of(entity)
    stage = f"{commit.stage}/files"
    tables.create(ledger, LEDGER, Layout(), Commit(stage, 0, commit.run_id, commit.config_hash))
    # Only what earlier commits list is moved: this batch's own files are not read until its commit is there.
    rows = [F.struct(*(F.lit(value).alias(name) for name, value in zip(LEDGER.names, (feed, *file), strict=True))) for file in known.listed]
    if rows:
        last = tables.checkpoint(ledger, stage)
        frame = tables.session.range(1).select(F.inline(F.array(*rows)))
        tables.append(frame, ledger, Commit(stage, last.sequence + 1, commit.run_id, commit.config_hash))
    return {"files": [[file.path, file.size, file.modified] for file in read], "moved": moved or bool(rows)}


def ledger_of(entity: Entity) -> TableName:
    """The table beside the evidence that lists files read long ago."""
    return entity.timeline.beside("_files")
