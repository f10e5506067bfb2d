"""Random histories of a shop's source tables, written without Spark; and what a dimension of them should hold, in plain Python.

Customers change, come late (a change with an older `updated_at` than the one before), are deleted and come back. Order items name
customers that may not be there yet, and times that may lie before anything is known of them.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Field, Schema, Table
from deltalake import DeltaTable, write_deltalake

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = DataType.timestamp("us", tz="UTC")
CUSTOMERS = {"customer_id": DataType.string(), "name": DataType.string(), "updated_at": MOMENT}
ITEMS = {"order_item_id": DataType.int64(), "customer_id": DataType.string(), "ordered_at": MOMENT, "amount": DataType.int64()}
FEED = {"delta.enableChangeDataFeed": "true"}
Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """What one commit said of one customer: a state, or that it is gone."""

    at: datetime
    """When the commit was made."""
    row: Row | None


@dataclass(frozen=True)
class Period:
    """A stretch during which a customer was in one state; `deleted`: whether it ended by a delete."""

    start: datetime
    end: datetime | None
    name: str
    deleted: bool


class Source:
    """A table that its system writes: rows by key, one commit a change set."""

    def __init__(self, path: Path, columns: Mapping[str, DataType], key: str) -> None:
        self.path, self.columns, self.key = path, dict(columns), key
        self.rows: dict[Any, Row] = {}
        self.events: dict[Any, list[Event]] = {}
        write_deltalake(str(path), self._table([]), configuration=FEED)

    def put(self, rows: Iterable[Row]) -> None:
        """Rows inserted, or put in the place of those of the same key."""
        new = list(rows)
        changed = {name: f"new.{name}" for name in self.columns}
        merge = DeltaTable(str(self.path)).merge(
            self._table(new), f"held.{self.key} = new.{self.key}", source_alias="new", target_alias="held"
        )
        merge.when_matched_update(changed).when_not_matched_insert(changed).execute()
        self.rows |= {row[self.key]: row for row in new}
        self._note({row[self.key]: row for row in new})

    def delete(self, keys: Sequence[Any]) -> None:
        """Rows of these keys removed."""
        there = [key for key in keys if key in self.rows]
        if not there:
            return
        listed = ", ".join(f"'{key}'" if isinstance(key, str) else str(key) for key in there)
        DeltaTable(str(self.path)).delete(f"{self.key} IN ({listed})")
        for key in there:
            del self.rows[key]
        self._note(dict.fromkeys(there))

    def _note(self, said: Mapping[Any, Row | None]) -> None:
        version = DeltaTable(str(self.path)).version()
        made = (self.path / "_delta_log" / f"{version:020d}.json").stat().st_mtime_ns // 1_000_000
        for key, row in said.items():
            self.events.setdefault(key, []).append(Event(datetime.fromtimestamp(made / 1000, UTC), row))

    def _table(self, rows: Sequence[Row]) -> Table:
        arrays = [_array([row[name] for row in rows], kind) for name, kind in self.columns.items()]
        return Table.from_arrays(arrays, schema=Schema([Field(name, kind, nullable=True) for name, kind in self.columns.items()]))


def change_customers(source: Source, dice: random.Random, keys: Sequence[str], latest: int) -> None:
    """A commit of changes, and perhaps one of deletes: most customers are heard of in the last days, some late."""
    chosen = dice.sample(keys, len(keys) // 3)
    source.put({"customer_id": key, "name": dice.choice("ABC"), "updated_at": _day(dice, latest)} for key in chosen)
    if dice.random() < 0.7:
        source.delete(dice.sample(keys, len(keys) // 10))


def change_items(source: Source, dice: random.Random, keys: Sequence[str], latest: int) -> None:
    """New items, some changed ones, some that are gone."""
    first = max(source.rows, default=0) + 1
    there = dice.sample(sorted(source.rows), len(source.rows) // 6)
    source.put(
        {
            "order_item_id": number,
            "customer_id": dice.choice([*keys, "unknown", None]),
            "ordered_at": FIRST + timedelta(days=dice.randint(-5, latest), hours=dice.randrange(24)),
            "amount": dice.randrange(5),
        }
        for number in (*range(first, first + len(keys)), *there)
    )
    source.delete(dice.sample(sorted(source.rows), len(source.rows) // 12))


def expected_periods(events: Sequence[Event], *, by_own_time: bool) -> list[Period]:
    """The versions that a dimension with history should have of one customer, states that follow each other once."""
    states: dict[tuple[datetime, int], tuple[int, str | None]] = {}
    begun = ended = None
    for number, event in enumerate(events):
        if event.row is None:
            at = event.at if begun is None else max(event.at, begun)
            ended = at if ended is None else max(ended, at)
            states[at, 1] = (number, None)
            continue
        at = event.row["updated_at"] if by_own_time else event.at
        at = at if ended is None else max(at, ended)
        begun = at if begun is None else max(begun, at)
        states[at, 0] = (number, event.row["name"])
    periods: list[Period] = []
    is_open = False
    for (at, _), (_, name) in sorted(states.items(), key=lambda item: (item[0][0], item[1][0])):
        if is_open and name is None:
            periods[-1] = Period(periods[-1].start, at, periods[-1].name, deleted=True)
            is_open = False
        elif name is not None and not (is_open and periods[-1].name == name):
            if is_open:
                periods[-1] = Period(periods[-1].start, at, periods[-1].name, deleted=False)
            periods.append(Period(at, None, name, deleted=False))
            is_open = True
    return periods


def _day(dice: random.Random, latest: int) -> datetime:
    day = dice.randint(0, latest) if dice.random() < 0.4 else latest
    return FIRST + timedelta(days=day, hours=dice.randrange(3))


def _array(values: Sequence[Any], kind: DataType) -> Array:
    if kind != MOMENT:
        return Array(list(values), type=kind)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [None if value is None else (value - epoch) // timedelta(microseconds=1) for value in values]
    return Array(micros, type=DataType.int64()).cast(MOMENT)
