"""Rows to statements: what counts about an entity, once however often it arrived, in one total order.

A *sweep* is a statement of the source without a key: a truncate, or "the snapshot of T was complete". For each entity that its source
holds live just then it is a delete. A *presence* is a snapshot row seen from its snapshot's time: for an entity that its source
holds deleted just then it is a return. Elsewhere both are void.

    CRM says A@1, sweeps @3, and its snapshot of 5 holds the row A@2      A@1  A@2  delete@3  A@5
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
    """One thing said about one entity."""

    source: str
    at: datetime
    """The time it speaks of; a presence's is the snapshot's, not the row's own."""
    row: Row
    """Its first arrival: values, provenance and run."""
    arrivals: tuple[Row, ...]
    order: tuple[Any, ...]
    only_if_live: bool | None = None
    """How its source must hold the entity for it to count: live for a sweep, deleted for a presence; what was said always counts."""

    @property
    def is_snapshot(self) -> bool:
        """A row of an extract, not a change somebody reported."""
        return self.row["load_type"] == "FULL" and self.row["op"] is None


def is_delete(row: Row) -> bool:
    """The row says that the thing is gone: explicitly, by its absence or by a truncate."""
    return row["op"] in _DELETES


def order_key(row: Row) -> tuple[Any, ...]:
    """Where a row stands among all rows about its entity; total, ascending."""
    return (
        row["source_event_ts"],
        -row["precedence_rank"],
        _sequence_key(row["source_sequence_id"]),
        is_delete(row),  # of two words of one moment, gone is the last
        _nulls_last(row["source_file"]),
        _nulls_last(row["ingest_run_id"]),  # of contradicting rows of one file, the later run is the correction
        row["ingest_ts"],
        row["statement_hash"],
    )


def by_entity(rows: Iterable[Row], terms: EntitySchema) -> dict[str, list[Statement]]:
    """Per business key, in order of the keys: every statement that counts, in order."""
    arrived = list(rows)
    said = sorted((row for row in arrived if row["bk"] is not None), key=itemgetter("bk"))
    sweeps = _once(row for row in arrived if row["bk"] is None)
    return {bk: _of_entity(list(about), sweeps, terms) for bk, about in groupby(said, key=itemgetter("bk"))}


def _of_entity(rows: Sequence[Row], sweeps: Sequence[Statement], terms: EntitySchema) -> list[Statement]:
    """What was said, with the sweeps and presences that are not void, in order."""
    said = _once(rows)
    if terms.entity_type == "transaction":  # a fact is neither swept away nor brought back
        return sorted(said, key=lambda statement: statement.order)
    live: dict[str, bool] = {}
    counting = []
    for statement in sorted([*said, *_presences(said), *_swept(rows, sweeps, terms)], key=lambda statement: statement.order):
        if statement.only_if_live is None or live.get(statement.source) is statement.only_if_live:
            live[statement.source] = not is_delete(statement.row)
            counting.append(statement)
    return counting


def _once(rows: Iterable[Row]) -> list[Statement]:
    """One statement per thing said. Its place goes by the smallest file that brought it, not by the one that happened to come first."""
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
    """Each snapshot row once more, at the time of its snapshot where that is another than its own."""
    return [
        replace(told, at=as_of, order=(as_of, *told.order[1:]), only_if_live=False)
        for told in said
        if told.is_snapshot and (as_of := told.row["snapshot_ts"]) not in {None, told.at}
    ]


def _swept(rows: Sequence[Row], sweeps: Iterable[Statement], terms: EntitySchema) -> list[Statement]:
    """Each sweep as a delete of this entity; but none by a snapshot the entity has a row of."""
    snapshot = itemgetter("source_system", "feed", "snapshot_ts")
    present = {snapshot(row) for row in rows}
    entity = {name: rows[0][name] for name in (*terms.key, "bk", "sk") if name in rows[0]}
    return [
        replace(sweep, row={**sweep.row, **entity, "asserted_columns": ()}, only_if_live=True)
        for sweep in sweeps
        if sweep.row["op"] == "t" or snapshot(sweep.row) not in present
    ]


def _arrival(row: Row) -> tuple[Any, ...]:
    return row["ingest_ts"], _nulls_last(row["ingest_run_id"]), _nulls_last(row["source_file"]), row["record_hash"]


def _sequence_key(sequence: str | None) -> tuple[int, int, str]:
    """Numbers as numbers, then texts with the numbers in them as numbers, none last."""
    if sequence is None:
        return 2, 0, ""
    if number := _NUMBER.fullmatch(sequence):
        return 0, int(number[1]), (number[2] or "").rstrip("0")
    return 1, 0, re.sub(r"[0-9]+", lambda digits: digits[0].zfill(40), sequence)


def _nulls_last(text: str | None) -> tuple[bool, str]:
    return text is None, text or ""
