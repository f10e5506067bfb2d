"""Tables of a lake as plain rows, read without Spark, and compared with multiplicity."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arro3.core import Table
from deltalake import DeltaTable, QueryBuilder

from tests.support.projects import exists, lake_path

Row = dict[str, Any]

MOST_SHOWN = 12


def table_rows(folder: Path, name: str, where: str = "1 = 1") -> list[Row]:
    """The table's rows: times aware, bytes plain, maps as mappings; none when the table is not there."""
    if not exists(folder, name):
        return []
    query = QueryBuilder().register("held", DeltaTable(lake_path(folder, name))).execute(f"SELECT * FROM held WHERE {where}")  # noqa: S608
    found = Table.from_arrow(query.read_all())
    columns = [[_plain(cell) for cell in found[column].to_pylist()] for column in found.column_names]
    rows = [dict(zip(found.column_names, cells, strict=True)) for cells in zip(*columns, strict=True)]
    return [{**row, **{name: _mapping(row[name]) for name in ("inherited", "because") if name in row}} for row in rows]


def differences(found: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]], without: Iterable[str] = ()) -> list[str]:
    """What differs, as short lines; a row that is there twice and should be there once is a difference."""
    left_out = frozenset(without)
    ours, theirs = (Counter(_text(row, left_out) for row in rows) for rows in (found, expected))
    lines = [f"{number} not expected: {row}" for row, number in sorted((ours - theirs).items())]
    lines += [f"{number} missing: {row}" for row, number in sorted((theirs - ours).items())]
    lines.sort(key=lambda line: line.partition(": ")[2])  # the two sides of one row stand together
    return lines if len(lines) <= MOST_SHOWN else [*lines[:MOST_SHOWN], f"and {len(lines) - MOST_SHOWN} more"]


def view(folder: Path, name: str, without: Sequence[str] = (), where: str = "1 = 1") -> Counter[str]:
    """The table's rows as texts, each with how often it is there."""
    return Counter(_text(row, frozenset(without)) for row in table_rows(folder, name, where))


def _text(row: Mapping[str, Any], without: frozenset[str]) -> str:
    shown = {name: _shown(value) for name, value in row.items() if name not in without}
    return " ".join(f"{name}={shown[name]}" for name in ("bk", *sorted(shown.keys() - {"bk"})) if name in shown)


def _shown(value: Any) -> str:  # noqa: ANN401  (whatever a cell holds)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%m-%dT%H:%M:%S.%f").removesuffix(".000000").removesuffix("T00:00:00")
    if isinstance(value, bytes):
        return value.hex()[:12]
    if isinstance(value, Mapping):
        return "{" + " ".join(f"{name}:{_shown(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(_shown, value)) + "]"
    return repr(value)


def _mapping(value: Any) -> Any:  # noqa: ANN401
    """A map as a mapping: it comes as a list of pairs."""
    if value is None or isinstance(value, Mapping):
        return value
    return {entry["key"]: entry["value"] for entry in value} if value and isinstance(value[0], Mapping) else dict(value)


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value.astimezone(UTC) if isinstance(value, datetime) else value
