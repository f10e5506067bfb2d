"""Statements from rows: each one once, however often it arrived, in one total order per entity.

A *source-level statement* has no key: a truncate, or "the snapshot of T was complete". It is a delete of each entity that its
source holds live at that time. A *presence* is a snapshot row at its snapshot's time: it brings back an entity that its source
holds deleted at that time. For all other entities neither has an effect.

    CRM says A@1, truncates @3, and its snapshot of 5 has the row A@2      A@1  A@2  delete@3  A@5
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from karat.reference.schema import EntitySchema, Row

_DELETES: Final = frozenset({"d", "t", "absent"})
_NUMBER: Final = re.compile(r"(-?[0-9]{1,38})(?:\.([0-9]+))?")


@dataclass(frozen=True)
class Statement:
    """One statement about one entity."""

    source: str
    at: datetime
    """Its valid time; for a presence the snapshot's, not the row's own."""
    row: Row
    """Its first arrival: values, provenance and run."""
    arrivals: tuple[Row, ...]
    order: tuple[Any, ...]
    only_if_live: bool | None = None
    """How its source must hold the entity for it to count: True live, False deleted; None: it always counts."""

    @property
    def is_snapshot(self) -> bool:
        """Whether it is a row of a full extract, not a change event."""
        return self.row["load_type"] == "FULL" and self.row["op"] is None


def is_delete(row: Row) -> bool:
    """Whether the row is a delete: explicit, by absence from a snapshot or by a truncate."""
    return row["op"] in _DELETES


def order_key(row: Row) -> tuple[Any, ...]:
    """The sort key of a row among all rows about its entity; total, ascending."""
    return (
        row["source_event_ts"],
        -row["precedence_rank"],
        _sequence_key(row["source_sequence_id"]),
        is_delete(row),  # a delete comes after an upsert of the same instant
        _nulls_last(row["source_file"]),
        _nulls_last(row["ingest_run_id"]),  # among contradicting rows of one file, the later run is the correction
        row["ingest_ts"],
        row["statement_hash"],
    )


def by_entity(rows: Iterable[Row], schema: EntitySchema) -> dict[str, list[Statement]]:
    """Per business key, in order of the keys: every statement that counts, in order."""
    arrived = list(rows)
    said = sorted((row for row in arrived if row["bk"] is not None), key=itemgetter("bk"))
    source_level = _once(row for row in arrived if row["bk"] is None)
    return {bk: _of_entity(list(about), source_level, schema) for bk, about in groupby(said, key=itemgetter("bk"))}


def _of_entity(rows: Sequence[Row], source_level: Sequence[Statement], schema: EntitySchema) -> list[Statement]:
    """The statements about an entity, with the source-level deletes and the presences that have an effect, in order."""
    said = _once(rows)
    if schema.entity_type == "transaction":  # facts are neither deleted by a source-level statement nor brought back
        return sorted(said, key=lambda statement: statement.order)
    live: dict[str, bool] = {}
    counting = []
    possible = [*said, *_presences(said), *_source_level_deletes(rows, source_level, schema)]
    for statement in sorted(possible, key=lambda statement: statement.order):
        if statement.only_if_live is None or live.get(statement.source) is statement.only_if_live:
            live[statement.source] = not is_delete(statement.row)
            counting.append(statement)
    return counting


def _once(rows: Iterable[Row]) -> list[Statement]:
    """One statement per distinct one. It is ordered by the lowest file name that brought it, so that arrival order has no effect."""
    copies: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(rows, key=_arrival):
        copies.setdefault((row["bk"], row["source_system"], row["statement_hash"]), []).append(row)
    found = []
    for first, *others in copies.values():
        file = min((row["source_file"] for row in (first, *others)), key=_nulls_last)
        order = order_key({**first, "source_file": file})
        found.append(Statement(first["source_system"], first["source_event_ts"], first, (first, *others), order))
    return found


def _presences(said: Iterable[Statement]) -> list[Statement]:
    """Each snapshot row once more at the time of its snapshot, where that differs from its own."""
    return [
        replace(each, at=as_of, order=(as_of, *each.order[1:]), only_if_live=False)
        for each in said
        if each.is_snapshot and (as_of := each.row["snapshot_ts"]) not in {None, each.at}
    ]


def _source_level_deletes(rows: Sequence[Row], source_level: Iterable[Statement], schema: EntitySchema) -> list[Statement]:
    """Each source-level statement as a delete of this entity, except snapshots that have a row of the entity."""
    snapshot = itemgetter("source_system", "feed", "snapshot_ts")
    present = {snapshot(row) for row in rows}
    entity = {name: rows[0][name] for name in (*schema.key, "bk", "sk") if name in rows[0]}
    return [
        replace(each, row={**each.row, **entity, "asserted_columns": ()}, only_if_live=True)
        for each in source_level
        if each.row["op"] == "t" or snapshot(each.row) not in present
    ]


def _arrival(row: Row) -> tuple[Any, ...]:
    return row["ingest_ts"], _nulls_last(row["ingest_run_id"]), _nulls_last(row["source_file"]), row["record_hash"]


def _sequence_key(sequence: str | None) -> tuple[int, int, str]:
    """The sort key of a sequence: numbers, then texts with their digits as numbers, then none."""
    if sequence is None:
        return 2, 0, ""
    if number := _NUMBER.fullmatch(sequence):
        return 0, int(number[1]), (number[2] or "").rstrip("0")
    return 1, 0, re.sub(r"[0-9]+", lambda digits: digits[0].zfill(40), sequence)


def _nulls_last(text: str | None) -> tuple[bool, str]:
    return text is None, text or ""
