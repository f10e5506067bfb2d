"""Project folders from plain values; their lakes are filled and looked at without Spark, in milliseconds."""

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from arro3.core import Array, DataType, Field, Schema, Table
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from tests.support.sessions import SMALL

Row = tuple[object, ...]
Parsed = str | int | float | None

_ARROW = {
    "string": DataType.string(),
    "int": DataType.int32(),
    "long": DataType.int64(),
    "double": DataType.float64(),
    "timestamp": DataType.timestamp("us", tz="UTC"),
    "date": DataType.date32(),
}


def curated(target: str, source: str, **more: object) -> dict[str, object]:
    """A table's declaration: SCD2 by `id` of `source_system` unless `more` says otherwise."""
    return {
        "source_table": source,
        "target_table": target,
        "scd_type": 2,
        "business_key_columns": ["id"],
        "source_system_column": "source_system",
        **more,
    }


def project_folder(
    folder: Path,
    tables: Sequence[Mapping[str, object]],
    *,
    settings: Mapping[str, object] | None = None,
    karat: Mapping[str, object] | None = None,
    sql: Mapping[str, str] | None = None,
) -> Path:
    """A project with one curation declaration in JSON, `karat.yml`, and SQL files under `sql/`."""
    (folder / "sql").mkdir(parents=True, exist_ok=True)
    chosen = {"project": "test", "lake": "./lake", "spark": SMALL, **(karat or {})}
    (folder / "karat.yml").write_text(yaml.safe_dump(chosen), encoding="utf-8")
    declaration = {"kind": "curation", "settings": dict(settings or {}), "tables": [dict(table) for table in tables]}
    (folder / "curation.json").write_text(json.dumps(declaration, indent=2), encoding="utf-8")
    for name, text in (sql or {}).items():
        (folder / "sql" / name).write_text(text, encoding="utf-8")
    return folder


def land(folder: Path, name: str, table: str, mode: Literal["append", "overwrite"] = "append") -> None:
    """Rows into a lake table, from a literal table: `name:type` headings, `|` between cells, `-` for null."""
    heading, *rows = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    fields = [Field(column.split(":")[0], _ARROW[column.split(":")[1]], nullable=True) for column in heading]
    columns = [_column([row[index] for row in rows], heading[index].split(":")[1]) for index in range(len(fields))]
    rows_to_write = Table.from_arrays(columns, schema=Schema(fields))
    schema_mode: Literal["merge", "overwrite"] = "merge" if mode == "append" else "overwrite"
    write_deltalake(lake_path(folder, name), rows_to_write, mode=mode, schema_mode=schema_mode)


def lake_path(folder: Path, name: str) -> str:
    """Where a table of the project's lake is."""
    return str(folder / "lake" / name.replace(".", "/"))


def exists(folder: Path, name: str) -> bool:
    """Whether the table is there."""
    return DeltaTable.is_deltatable(lake_path(folder, name))


def versions(folder: Path, name: str) -> int:
    """How many commits a table has; 0 when there is none."""
    return DeltaTable(lake_path(folder, name)).version() + 1 if exists(folder, name) else 0


def drop(folder: Path, name: str) -> None:
    """The table's folder removed."""
    shutil.rmtree(lake_path(folder, name))


def held(folder: Path, name: str, *columns: str) -> list[Row]:
    """The rows of a table as sorted tuples of the named columns, nulls first; none when the table is not there."""
    if not exists(folder, name):
        return []
    chosen = ", ".join(f'"{column}"' for column in columns)
    query = QueryBuilder().register("this", DeltaTable(lake_path(folder, name))).execute(f"SELECT {chosen} FROM this")  # noqa: S608
    table = Table.from_arrow(query.read_all())
    found = zip(*(table[column].to_pylist() for column in columns), strict=True)
    return sorted((tuple(map(_plain, row)) for row in found), key=lambda row: tuple((cell is not None, str(cell)) for cell in row))


def column_names(folder: Path, name: str) -> list[str]:
    """The table's columns in their order."""
    return [field.name for field in DeltaTable(lake_path(folder, name)).schema().fields]


def commits(folder: Path, name: str) -> list[dict[str, Any]]:
    """What each commit of ours recorded about itself, newest first."""
    found = (commit.get("userMetadata") for commit in DeltaTable(lake_path(folder, name)).history())
    return [json.loads(text) for text in found if text and text.startswith("{")]


def _plain(value: object) -> object:
    """Times as short text, so that literal rows stay readable."""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S") + (f".{value.microsecond:06d}" if value.microsecond else "")
    return value.isoformat() if isinstance(value, date) else value


def _column(cells: Sequence[str], kind: str) -> Array:
    if kind == "timestamp":
        return Array([_parsed(cell, kind) for cell in cells], type=DataType.int64()).cast(_ARROW[kind])
    if kind == "date":
        return Array([_parsed(cell, kind) for cell in cells], type=DataType.int32()).cast(_ARROW[kind])
    return Array([_parsed(cell, kind) for cell in cells], type=_ARROW[kind])


def _parsed(cell: str, kind: str) -> Parsed:
    if cell == "-":
        return None
    match kind:
        case "string":
            return cell
        case "double":
            return float(cell)
        case "timestamp":
            since = datetime.fromisoformat(cell).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        case "date":
            return (date.fromisoformat(cell) - date(1970, 1, 1)).days
        case _:
            return int(cell)
