"""Literal tables of statements, played run by run into rows of an assertions table, and timelines shown as text.

A heading names the columns: `at` and, where they matter, `key source rank op load seq file run snapshot feed copies`; every other column
is an attribute. A cell `.` was not said, `-` is null. A bare number is a day of March 2026. Each line is a run of its own unless `run`
says otherwise.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

from karat.reference import EntitySchema, Row, reconstruct, timeline

NOT_SAID, NULL = ".", "-"
MARCH = datetime(2026, 3, 1, tzinfo=UTC)
COLUMN = {
    "from": "effective_from",
    "to": "effective_to",
    "current": "is_current",
    "source_to": "source_effective_to",
    "source_current": "is_source_current",
    "source": "source_system",
    "rank": "precedence_rank",
    "deleted": "is_deleted",
    "seen": "seen_count",
    "last": "last_event_ts",
    "file": "source_file",
    "run": "ingest_run_id",
    "key": "customer_id",
}


def terms(*attributes: str, **others: Any) -> EntitySchema:  # noqa: ANN401 - whatever EntitySchema takes
    names = attributes or ("status",)
    return EntitySchema(key=("customer_id",), attributes=names, types=dict.fromkeys(names, "string"), **others)


def history(table: str, agreed: EntitySchema) -> list[Row]:
    """The timeline after every line has arrived."""
    return timeline(assertions(lines(table), agreed), agreed)


def assertions(said: Iterable[Mapping[str, str]], agreed: EntitySchema) -> list[Row]:
    """The rows on record once each run has reconstructed what it brought."""
    numbered = [{"run": str(number), **cells} for number, cells in enumerate(said, 1)]
    record: list[Row] = []
    for run, arriving in groupby(numbered, key=itemgetter("run")):
        record += reconstruct(record, [row(cells, int(run), agreed) for cells in arriving], agreed)
    return record


def row(cells: Mapping[str, str], run: int, agreed: EntitySchema) -> Row:
    """One arrival as it enters bronze, before anything is inherited."""
    op = None if cells.get("op") == NULL else cells.get("op", "u")
    load, at = cells.get("load", "PARTIAL"), moment(cells["at"])
    key = None if op in {"t", "absent"} else cells.get("key", "C1")
    said = () if op in {"d", "t", "absent"} else tuple(name for name in agreed.attributes if cells.get(name, NOT_SAID) != NOT_SAID)
    values = {name: None if cells[name] == NULL else cells[name] for name in said}
    of = moment(cells["snapshot"]) if "snapshot" in cells else at if op == "absent" or (load, op) == ("FULL", None) else None
    source, sequence, file = cells.get("source", "CRM"), null(cells.get("seq", NULL)), null(cells.get("file", NULL))
    statement = (key, source, op, at, sequence, of, tuple(sorted(values.items())))
    return {
        "customer_id": key,
        **dict.fromkeys(agreed.attributes),
        **values,
        "bk": key,
        "sk": key and digest(key),
        "source_system": source,
        "source_type": "file",
        "source_path": f"data/{file}",
        "source_file": file,
        "source_event_ts": at,
        "source_sequence_id": sequence,
        "ingest_ts": MARCH + timedelta(days=100, hours=run),
        "ingest_run_id": f"run-{run:03}",
        "batch_seq": run,
        "op": op,
        "load_type": load,
        "entity_type": agreed.entity_type,
        "precedence_rank": int(cells.get("rank", "1")),
        "is_deleted": op == "d",
        "asserted_columns": list(said),
        "inherited": {},
        "attr_hash": None,
        "statement_hash": digest(statement),
        "record_hash": digest((statement, file)),
        "hash_version": 1,
        "time_basis": "source",
        "snapshot_ts": of,
        "copies": int(cells.get("copies", "1")),
        "feed": cells.get("feed", source.lower()),
        "extra": None,
    }


def shown(rows: Iterable[Row], columns: str) -> list[str]:
    """One line per row, the named columns side by side."""
    names = [COLUMN.get(name, name) for name in columns.split()]
    return [" ".join(text(row[name]) for name in names) for row in rows]


def lines(table: str) -> list[dict[str, str]]:
    """A literal table: a heading, `|` between cells."""
    heading, *body = ([cell.strip() for cell in line.strip().split("|")] for line in table.strip().splitlines())
    return [dict(zip(heading, cells, strict=True)) for cells in body]


def text(value: object) -> str:
    match value:
        case None:
            return NULL
        case bool():
            return str(value).lower()
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}" if value.hour else str((value - MARCH).days + 1)
        case _:
            return str(value)


def moment(cell: str) -> datetime:
    return MARCH + timedelta(days=int(cell) - 1) if cell.isdigit() else datetime.fromisoformat(cell).replace(tzinfo=UTC)


def null(cell: str) -> str | None:
    return None if cell == NULL else cell


def digest(value: object) -> bytes:
    return hashlib.sha256(repr(value).encode()).digest()
