"""Which files of a feed were read already, as the evidence's own commits say it.

Files are remembered one by one: a name that sorts low or a date that lies back must not hide a new file. A file inside
the project is remembered by its path from there, so that a project can be moved. The latest files are listed in the
commit itself; when the list grows long, its older part moves into a table beside the evidence, before the commit that no
longer lists it. A crash in between leaves a file on both lists, which changes nothing. Where the table's log was cleaned up
and no commit tells any more, the rows of the evidence tell which files brought them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.bronze.context import StageContext
from karat.config.names import TableName
from karat.config.resolved import Entity
from karat.lake.tables import Layout
from karat.sources.files import FileStat
from karat.temporal.columns import FEED, SOURCE_PATH

MOST_LISTED: Final = 500
"""How many files of a feed a commit lists."""
FILES_READ: Final = T.StructType(
    [
        T.StructField("feed", T.StringType()),
        T.StructField("path", T.StringType()),
        T.StructField("size", T.LongType()),
        T.StructField("modified", T.LongType()),
    ]
)


@dataclass(frozen=True)
class Found:
    """The files that a feed has: never read, and read but rewritten since."""

    new: tuple[FileStat, ...]
    rewritten: tuple[FileStat, ...]


def sort_out(files: Sequence[FileStat], feed: str, context: StageContext) -> Found:
    """The files of a feed, less those that were read and have not changed since."""
    entry = context.position.get("feeds", {}).get(feed, {})
    known = {path: (size, modified) for path, size, modified in entry.get("files", [])}
    if entry.get("moved"):
        known |= _on_record([file for file in files if _known_as(file, known, context) is None], feed, context)
    if entry.get("in_evidence"):
        known |= _in_evidence([file for file in files if _known_as(file, known, context) is None], feed, context)
    new = tuple(file for file in files if _known_as(file, known, context) is None)
    rewritten = tuple(file for file in files if _known_as(file, known, context) not in {None, (file.size, file.modified)})
    return Found(new, rewritten)


def with_files(feed: str, read: Sequence[FileStat], context: StageContext) -> dict[str, Any]:
    """The feed's entry for the next commit; a list that has grown too long first moves into the table."""
    entry = context.position.get("feeds", {}).get(feed, {})
    before, moved = entry.get("files", []), bool(entry.get("moved"))
    lasting = {"in_evidence": True} if entry.get("in_evidence") else {}
    now = [[remembered_path(file.path, context.run.config.folder), file.size, file.modified] for file in read]
    if len(before) + len(now) <= MOST_LISTED:
        return {"files": [*before, *now], "moved": moved, **lasting}
    if before:  # this batch's own files are not read until its commit is there, so only earlier ones move
        _move(feed, before, context)
    return {"files": now, "moved": moved or bool(before), **lasting}


def files_table(entity: Entity) -> TableName:
    """The table beside the evidence that lists files read long ago."""
    return entity.timeline.with_suffix("_files")


def remembered_path(path: str, folder: Path) -> str:
    """The path from the project's folder where the file lies in it; else the whole path."""
    inside = Path(path)
    return str(inside.relative_to(folder)) if inside.is_absolute() and inside.is_relative_to(folder) else path


def _known_as(file: FileStat, known: Mapping[str, tuple[int, int]], context: StageContext) -> tuple[int, int] | None:
    """Size and time of a file when it was read; commits of older versions name whole paths."""
    return known.get(remembered_path(file.path, context.run.config.folder)) or known.get(file.path)


def _on_record(files: Sequence[FileStat], feed: str, context: StageContext) -> dict[str, tuple[int, int]]:
    """Those of the files that the table lists."""
    if not files:
        return {}
    folder = context.run.config.folder
    names = sorted({name for file in files for name in (file.path, remembered_path(file.path, folder))})
    wanted = context.tables.session.createDataFrame([(name,) for name in names], "path string")
    rows = context.tables.read(files_table(context.entity)).where(F.col("feed") == feed).join(wanted, "path", "left_semi")
    return {row["path"]: (row["size"], row["modified"]) for row in rows.collect()}


def _in_evidence(files: Sequence[FileStat], feed: str, context: StageContext) -> dict[str, tuple[int, int]]:
    """Those of the files that have rows in the evidence; how large they were then is not on record."""
    if not files:
        return {}
    wanted = context.tables.session.createDataFrame([(file.path,) for file in files], f"{SOURCE_PATH} string")
    rows = context.assertions().where(F.col(FEED) == feed).select(SOURCE_PATH).join(wanted, SOURCE_PATH, "left_semi").distinct()
    found = {row[SOURCE_PATH] for row in rows.collect()}
    return {file.path: (file.size, file.modified) for file in files if file.path in found}


def _move(feed: str, files: Sequence[Sequence[Any]], context: StageContext) -> None:
    table, tables, stage = files_table(context.entity), context.tables, f"{context.stage}/files"
    tables.create(table, FILES_READ, Layout(), context.run.commit(stage, 0))
    state = tables.state(table, stage)
    rows = tables.session.createDataFrame([(feed, *file) for file in files], FILES_READ)
    tables.append(rows, table, context.run.commit(stage, state.next_number))
