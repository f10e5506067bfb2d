"""Versions from statements: a version is one state of an entity in one source, until the next version opens.

statements, in order              versions
CRM A@1, CRM A@2, CRM B@3         A [1, 3) last said @2, B [3, open)
CRM A@1, CORE A@2, CRM A@3        three: a change event is a statement of its own, even if another source said the same before
the same, from daily extracts     CRM A [1, 2) last said @3, CORE A [2, open): CRM's second extract only repeats its first
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from karat.reference.inheritance import resolved
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

_SAID_BY: Final = ("bk", "sk", "source_system", "source_type", "source_path", "source_file", "source_event_ts", "source_sequence_id")
_CHAINS: Final = ("effective_to", "is_current", "source_effective_to", "is_source_current")
_KIND: Final = ("is_deleted", "op", "load_type", "entity_type", "precedence_rank")
_HASHES: Final = ("inherited", "attr_hash", "statement_hash", "record_hash", "hash_version", "time_basis")
_SEEN: Final = ("ingest_ts", "ingest_run_id", "first_seen_ts", "last_seen_ts", "seen_count", "last_event_ts", "corrects")
COLUMNS: Final = (*_SAID_BY, "effective_from", *_CHAINS, *_KIND, *_HASHES, *_SEEN)
"""The timeline's columns after the key and the attributes."""

Version = list[Statement]
"""Statements of one source and one state: the first opened the version, which absorbed the others."""


def timeline(assertions: Iterable[Row], schema: EntitySchema) -> list[Row]:
    """One row per version of each entity, or per content of each transaction; by business key, then in order."""
    found: list[Row] = []
    for statements in by_entity(assertions, schema).values():
        states = resolved(statements, schema)
        rows = _facts(states, schema) if schema.entity_type == "transaction" else _periods(states, schema)
        found += [{name: row[name] for name in (*schema.key, *schema.attributes, *COLUMNS) if name in row} for row in rows]
    return found


def _periods(statements: Iterable[Statement], schema: EntitySchema) -> list[Row]:
    """The versions of one entity with the ends of their periods in the entity chain and in the source chain."""
    rows: list[Row] = []
    versions = _versions(statements)
    for number, version in enumerate(versions):
        later = [following[0] for following in versions[number + 1 :]]
        end = next((opening.at for opening in later), None)
        source_end = next((opening.at for opening in later if opening.source == version[0].source), None)
        chains = dict(zip(_CHAINS, (end, end is None, source_end, source_end is None), strict=True))
        rows.append({**_row(version, schema), **chains, "corrects": None})
    return rows


def _versions(statements: Iterable[Statement]) -> list[Version]:
    """The statements grouped by version; the versions in order of their start."""
    versions: list[Version] = []
    of_source: dict[str, Version] = {}
    for statement in statements:
        own = of_source.get(statement.source, [])
        repeats = bool(own) and own[0].row["attr_hash"] == statement.row["attr_hash"]
        # an extract that repeats itself is a re-observation, whatever others said in between; a change event is a statement of its own
        if not (repeats and (statement.is_snapshot or own is versions[-1])):
            own = of_source[statement.source] = []
            versions.append(own)
        own.append(statement)
    return versions


def _facts(statements: Iterable[Statement], schema: EntitySchema) -> list[Row]:
    """One row per distinct content of one transaction: the first is the fact, every other corrects it."""
    contents: dict[bytes, Version] = {}
    for statement in statements:
        contents.setdefault(statement.row["attr_hash"], []).append(statement)
    rows = [{**_row(version, schema), **dict.fromkeys(_CHAINS)} for version in contents.values()]
    return [{**row, "corrects": rows[0]["record_hash"] if number else None} for number, row in enumerate(rows)]


def _row(version: Sequence[Statement], schema: EntitySchema) -> dict[str, Any]:
    """The opening statement with its sightings and the last untracked values; a repeated delete adds no values."""
    opening, last = version[0], version[-1]
    latest = opening if is_delete(opening.row) else last
    arrivals = [arrival for statement in version for arrival in statement.arrivals]
    return {
        **opening.row,
        **{name: (latest if name in schema.untracked else opening).row.get(name) for name in schema.attributes},
        "inherited": latest.row.get("inherited"),
        "is_deleted": is_delete(opening.row),
        "effective_from": opening.at,
        "first_seen_ts": min(arrival["ingest_ts"] for arrival in arrivals),
        "last_seen_ts": max(arrival["ingest_ts"] for arrival in arrivals),
        "seen_count": sum(arrival["copies"] for arrival in arrivals),
        "last_event_ts": last.at,
    }
