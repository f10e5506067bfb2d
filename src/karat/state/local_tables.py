"""A table on a local disk, asked through delta-rs what Spark would take a job or several calls into the JVM to tell.

None where it cannot be read that way: it lies elsewhere, or has features delta-rs does not know. Then Spark is asked.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from karat.state.commits import LogEntry

_Answer = TypeVar("_Answer")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def is_table(path: str) -> bool:
    """Whether a Delta table is seen there."""
    return is_local(path) and DeltaTable.is_deltatable(path)


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's disk; others begin with a scheme: `s3://`, `dbfs:/`."""
    return _SCHEME.match(path) is None


def local_history(path: str, limit: int | None) -> list[LogEntry] | None:
    """The log, newest commit first; a table without any commit is one whose log delta-rs did not find."""
    return _asked(path, lambda table: table.history(limit)) or None


def local_id(path: str) -> str | None:
    """What tells the table from another one made later in its place."""
    return _asked(path, lambda table: str(table.metadata().id))


def local_schema(path: str) -> str | None:
    """Its columns and their types, as the JSON that Spark writes and reads."""
    return _asked(path, lambda table: table.schema().to_json())


def local_files(path: str) -> int | None:
    """How many files it has now."""
    return _asked(path, lambda table: len(table.file_uris()))


def local_rows(path: str, columns: Sequence[str]) -> list[tuple[Any, ...]] | None:
    """The rows of a small table."""
    chosen = ", ".join(f'"{column}"' for column in columns)

    def rows(table: DeltaTable) -> list[tuple[Any, ...]]:
        found = QueryBuilder().register("small", table).execute(f"SELECT {chosen} FROM small").read_all()  # noqa: S608  (columns of our own)
        return list(zip(*(found.column(column).to_pylist() for column in columns), strict=True))

    return _asked(path, rows)


def _asked(path: str, question: Callable[[DeltaTable], _Answer]) -> _Answer | None:
    if not is_local(path):
        return None
    try:
        return question(DeltaTable(path))
    except (DeltaError, OSError, ValueError):
        return None
