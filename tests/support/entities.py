"""Projects with entities: declared from plain values, fed by files, looked at without Spark."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from deltalake import DeltaTable, QueryBuilder

from tests.support.projects import lake_path
from tests.support.sessions import SMALL

CONTRACT = dict.fromkeys(("has_source_time", "has_stable_bk", "has_explicit_load_type", "has_delete_semantics"), True)
CRM: dict[str, Any] = {
    "name": "crm",
    "source_system": "CRM",
    "precedence_rank": 1,
    "from": {"kind": "files", "path": "data/crm/*.ndjson", "format": "json"},
    "load_type": "PARTIAL",
    "event_time": "source_event_ts",
    "op": "op",
}
CORE: dict[str, Any] = {**CRM, "name": "core", "source_system": "CORE", "precedence_rank": 2}
CORE["from"] = {"kind": "files", "path": "data/core/*.ndjson", "format": "json"}
CUSTOMER: dict[str, Any] = {
    "kind": "entity",
    "name": "customer",
    "key": ["customer_id"],
    "attributes": {"name": "string", "address": "string", "status": "string"},
    "feeds": [CRM, CORE],
}


def entity_project(folder: Path, *entities: Mapping[str, Any], karat: Mapping[str, Any] | None = None) -> Path:
    """A project with the entities, a declaration a file."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {"project": "test", "lake": "./lake", "spark": SMALL, **(karat or {})}
    (folder / "karat.yml").write_text(yaml.safe_dump(chosen), encoding="utf-8")
    for entity in entities:
        (folder / f"{entity['name']}.yml").write_text(yaml.safe_dump(dict(entity), sort_keys=False), encoding="utf-8")
    return folder


def drop(folder: Path, file: str, rows: Iterable[Mapping[str, Any] | str | None]) -> Path:
    """A file of messages, one a line; a text is written as it is, None is a tombstone."""
    path = folder / "data" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def held(folder: Path, table: str, *columns: str, where: str = "1 = 1") -> list[tuple[Any, ...]]:
    """The table's rows as tuples of the named columns, in order of the columns' text."""
    rows = QueryBuilder().register("held", DeltaTable(lake_path(folder, table))).execute(f"SELECT * FROM held WHERE {where}").read_all()  # noqa: S608
    wanted: Sequence[str] = columns or rows.schema.names
    values = [rows.column(name).to_pylist() for name in wanted]
    return sorted(zip(*values, strict=True), key=lambda row: [(cell is not None, str(cell)) for cell in row])
