"""Delimited files (csv): the header of each file names its columns, whatever their order and whatever the others have.

Files with the same header are read together. Every cell is a text; `""` is an empty one and nothing is none.
"""

import bz2
import codecs
import csv
import gzip
import lzma
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Final, TextIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.config.names import is_uri
from karat.sources.paths import file_column, literal_path, path_column
from karat.sources.raw import BROKEN, FIELDS, FIELDS_TYPE, FILE, LINE, PATH, fields_of, no_text

Options = Mapping[str, str | int | bool]

_NOTHING: Final = "\x01karat:nothing"
"""What stands for a cell with nothing in it; with Spark's own default, `""`, an empty text would be nothing too."""
_OWN_READER: Final = frozenset({"sep", "delimiter", "quote", "escape", "encoding", "charset", "nullvalue", "emptyvalue", "multiline"})
"""Options that Python's reader of one header line understands, or that do not touch a header."""
_OPENERS: Final[Mapping[str, Callable[..., TextIO]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_RAW: Final = "__karat_corrupt"


def read_delimited(session: SparkSession, paths: Sequence[str], options: Options) -> DataFrame:
    """The rows of delimited files as a raw frame; a row with too many or too few cells is broken. Grain: one row per row."""
    by_header: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        by_header.setdefault(_header(session, path, options), []).append(path)
    groups = [_read(session, files, header, options) for header, files in by_header.items()]
    return reduce(DataFrame.unionByName, groups)


def _read(session: SparkSession, paths: Sequence[str], header: tuple[str, ...], options: Options) -> DataFrame:
    cells = [f"c{number}" for number in range(max(len(header), 1))]
    schema = ", ".join(f"{name} string" for name in (*cells, _RAW))
    read = (
        session.read.options(header=True, multiLine=True, escape='"', nullValue=_NOTHING)
        .options(**{name: str(value) for name, value in options.items()})
        .options(mode="PERMISSIVE", columnNameOfCorruptRecord=_RAW, enforceSchema=True)
    )
    rows = read.schema(schema).csv([literal_path(path) for path in paths])
    count = f"not {len(header)} cells, as the header has"
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:  # nobody can say which of the two a name means
        whole = F.coalesce(F.col(_RAW), F.to_json(F.array(*cells)))
        fields, line, fault = F.lit(None).cast(FIELDS_TYPE), whole, F.lit(f"the header names {twice[0]!r} twice")
    else:
        fields = F.when(F.col(_RAW).isNull(), fields_of(header or ("",), [F.col(cell) for cell in cells]))
        line, fault = F.col(_RAW), F.when(F.col(_RAW).isNotNull(), F.lit(count)).otherwise(no_text())
    return rows.select(line.alias(LINE), fields.alias(FIELDS), path_column().alias(PATH), file_column().alias(FILE), fault.alias(BROKEN))


def _header(session: SparkSession, path: str, options: Options) -> tuple[str, ...]:
    """The names of a file's columns; Spark is asked only where Python cannot read the line as Spark would."""
    known = {name.lower() for name in options} <= _OWN_READER
    if not is_uri(path) and known and _decoder(options) is not None:
        return _header_here(path, options)
    asked = session.read.options(header=True, multiLine=True, escape='"').options(**{name: str(value) for name, value in options.items()})
    return tuple(asked.csv(literal_path(path)).columns)


def _header_here(path: str, options: Options) -> tuple[str, ...]:
    given = {name.lower(): str(value) for name, value in options.items()}
    separator = given.get("sep") or given.get("delimiter") or ","
    opener = next((opener for ending, opener in _OPENERS.items() if path.endswith(ending)), open)
    with opener(path, "rt", encoding=_decoder(options), errors="replace", newline="") as text:
        lines = (line for line in text if line.strip())
        names = next(csv.reader(lines, delimiter=_separator(separator), quotechar=given.get("quote") or '"'), [])
    return tuple(name.removeprefix("\ufeff") or f"_c{number}" for number, name in enumerate(names))


def _separator(text: str) -> str:
    return "\t" if text == "\\t" else text


def _decoder(options: Options) -> str | None:
    """The encoding as Python calls it; None when it knows no such one, or the separator is more than a letter."""
    given = {name.lower(): str(value) for name, value in options.items()}
    if len(_separator(given.get("sep") or given.get("delimiter") or ",")) != 1:
        return None
    name = given.get("encoding") or given.get("charset") or "utf-8"
    try:
        codecs.lookup(name)
    except LookupError:
        return None
    return name
