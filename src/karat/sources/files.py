"""Files: each is listed with size and time, read once, and handed over as raw records."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, assert_never

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.config.declared.entity import FilesSource
from karat.config.names import local_path
from karat.config.resolved import FeedOf
from karat.errors import InternalError, SourceUnavailable
from karat.sources.delimited import read_delimited
from karat.sources.documents import bare, has_field_twice, with_objects
from karat.sources.paths import file_column, literal_path, path_column
from karat.sources.raw import BROKEN, FIELDS, FIELDS_TYPE, FILE, LINE, PATH, no_text
from karat.sources.typed import read_parquet

_TEXT: Final = "__karat_text"


@dataclass(frozen=True, order=True)
class FileStat:
    """A file as it was when it was listed."""

    path: str
    size: int
    modified: int
    """Milliseconds since 1970."""


def listed(location: str, session: SparkSession) -> tuple[FileStat, ...]:
    """The files at a path, in a folder or behind a glob, by path; hidden ones (`.`, `_`) are not there."""
    here = local_path(location)
    if here is not None:
        return _listed_here(here)
    wanted = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(location)
    try:
        found = wanted.select("path", "length", F.unix_millis("modificationTime").alias("modified")).collect()
    except AnalysisException as missing:
        if missing.getCondition() == "PATH_NOT_FOUND":
            return ()
        raise
    return tuple(sorted(FileStat(row["path"], row["length"], row["modified"]) for row in found))


def is_local(location: str) -> bool:
    """Whether Python can list and open it by itself."""
    return local_path(location) is not None


def read_files(session: SparkSession, feed: FeedOf, files: Sequence[FileStat]) -> DataFrame:
    """The records of the files as a raw frame. Grain: one row per record."""
    source = feed.feed.source
    if not isinstance(source, FilesSource):
        message = f"feed {feed.feed.name} does not read files"
        raise InternalError(message)
    if not files:
        message = f"feed {feed.feed.name} was given no files to read"
        raise InternalError(message)
    paths = [file.path for file in files]
    match source.format:
        case "json":
            return json_records(_lines(session, paths))
        case "csv":
            return read_delimited(session, paths, source.options)
        case "parquet":
            return read_parquet(session, paths, feed.feed.name)
        case "text":
            return documents(_lines(session, paths))
        case "xml":
            return documents(_lines(session, paths, whole=True))
        case _:
            assert_never(source.format)


def json_records(lines: DataFrame) -> DataFrame:
    """Lines to raw records, each parsed once; `null` and a blank line are tombstones. Grain: one row per line."""
    others = (LINE, PATH, FILE, _TEXT)
    parsed = with_objects(lines.select(LINE, PATH, FILE, bare(F.col(LINE)).alias(_TEXT)), {FIELDS: F.col(_TEXT)})
    text, fields = F.col(_TEXT), F.col(FIELDS)
    fault = (
        F.when(says_nothing(text), no_text())
        .when(~F.is_valid_utf8(F.col(LINE)), F.lit("not UTF-8"))
        .when(fields.isNull() & text.startswith("["), F.lit("a JSON array, where an object was expected"))
        .when(fields.isNull() & text.startswith("{"), F.lit("a line that is not exactly one JSON object"))
        .when(fields.isNull(), F.lit("not a JSON object"))
        .when(has_field_twice(fields), F.lit("a JSON object that says the same field twice"))
    )
    looked_at = parsed.select(*others, FIELDS, fault.alias(BROKEN))
    line = F.when(F.col(BROKEN).isNull(), F.col(LINE)).otherwise(F.make_valid_utf8(F.col(LINE)))
    return looked_at.select(line.alias(LINE), F.when(F.col(BROKEN).isNull(), fields).alias(FIELDS), PATH, FILE, BROKEN)


def documents(texts: DataFrame) -> DataFrame:
    """Texts that are kept whole, without fields; a blank one is a tombstone. Grain: one row per text."""
    none_of_its_own = F.create_map().cast(FIELDS_TYPE)
    fields = F.when(says_nothing(bare(F.col(LINE))), F.lit(None).cast(FIELDS_TYPE)).otherwise(none_of_its_own)
    fault = F.when(~F.is_valid_utf8(F.col(LINE)), F.lit("not UTF-8"))
    return texts.select(F.make_valid_utf8(F.col(LINE)).alias(LINE), fields.alias(FIELDS), PATH, FILE, fault.alias(BROKEN))


def says_nothing(text: Column) -> Column:
    """Whether a line is a tombstone."""
    return (text == "") | (text == "null")


def _lines(session: SparkSession, paths: Sequence[str], *, whole: bool = False) -> DataFrame:
    texts = session.read.text([literal_path(path) for path in paths], wholetext=whole)
    return texts.select(F.col("value").alias(LINE), path_column().alias(PATH), file_column().alias(FILE))


def _listed_here(pattern: str) -> tuple[FileStat, ...]:
    named = os.path.lexists(pattern)
    matches = [pattern] if named else glob.glob(pattern, recursive=True)  # noqa: PTH207  (Path.glob takes no absolute pattern)
    start = len(_fixed_part(pattern, named=named).parts)
    found: set[Path] = set()
    for match in map(Path, matches):
        below = match.rglob("*") if match.is_dir() else (match,)
        found.update(file for file in below if not _is_hidden(file.parts[start:]) and file.is_file())
    return tuple(sorted(_stat(file) for file in found))


def _fixed_part(pattern: str, *, named: bool) -> Path:
    """The folder a listing starts in: what the user wrote out is meant, hidden or not."""
    path = Path(pattern)
    if named:
        return path if path.is_dir() else path.parent
    return next((parent for parent in path.parents if not glob.has_magic(str(parent))), Path())


def _is_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)


def _stat(file: Path) -> FileStat:
    try:
        stat = file.stat()
    except OSError as gone:
        message = f"{file} cannot be read: {gone.strerror}"
        raise SourceUnavailable(message, remedy="run again; if it persists, look at the file's rights") from gone
    return FileStat(str(file), stat.st_size, stat.st_mtime_ns // 1_000_000)
