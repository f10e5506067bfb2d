"""Curation over plain rows, from the requirements alone (seed 000, DESIGN §3.1): what a target must hold after each run.

A run reads the rows above watermark less lookback (the first one reads all), refuses those without key or time, and then

    state    one row per entity, the latest by the order; it replaces the held row unless it is older
    ignore   the same row opens a version when it says something else than the current one; older rows change nothing
    place    everything said about the entities just read, in order of time: each statement that differs from the
             one before it opens a version, whenever it arrived

Told twice is told once: of rows that say the same of the same entity at the same time, the last in order speaks.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, Literal

Row = Mapping[str, Any]
Entity = tuple[Any, ...]
State = tuple[Any, ...]

OPEN_END = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


@dataclass(frozen=True)
class By:
    """One column of an order; nulls where Spark has them unless said: first when ascending, last when descending."""

    column: str
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Rules:
    """How one target is curated."""

    manner: Literal["state", "ignore", "place"]
    key: tuple[str, ...]
    """Business key and source system."""
    watermark: str
    lookback: timedelta
    order: tuple[By, ...]
    """Latest first."""
    tracked: tuple[str, ...] = ()
    effective_from: str = ""
    """Where a version starts; default: the watermark."""

    @property
    def time(self) -> str:
        return self.effective_from or self.watermark


@dataclass(frozen=True)
class Version:
    """A row and the period in which it holds; for `state`, the row that stands."""

    row: Row
    start: datetime
    end: datetime = OPEN_END
    current: bool = True


@dataclass(frozen=True)
class Target:
    """What a target holds and how far it has read."""

    watermark: datetime | None = None
    held: Mapping[Entity, tuple[Version, ...]] = field(default_factory=dict)
    refused: tuple[Row, ...] = ()

    @property
    def versions(self) -> Iterator[tuple[Entity, Version]]:
        return ((entity, version) for entity, versions in self.held.items() for version in versions)


def run(target: Target, source: Sequence[Row], rules: Rules) -> Target:
    """The target after one run over the source as it is now."""
    read = [row for row in source if _is_above(row, target.watermark, rules)]
    everything = by_entity(source, rules)
    held = dict(target.held)
    for entity, rows in by_entity(read, rules).items():
        held[entity] = _curated(held.get(entity, ()), everything[entity] if rules.manner == "place" else rows, rules)
    marks = [mark for mark in (target.watermark, *(row[rules.watermark] for row in read)) if mark is not None]
    refused = [row for row in read if not is_admitted(row, rules)]
    return Target(max(marks, default=None), held, (*target.refused, *(row for row in refused if row not in target.refused)))


def is_admitted(row: Row, rules: Rules) -> bool:
    """A row needs its whole key, its watermark and, where versions start by it, its time."""
    needed = (*rules.key, rules.watermark, *(() if rules.manner == "state" else (rules.time,)))
    return all(row[name] is not None for name in needed)


def by_entity(rows: Iterable[Row], rules: Rules) -> dict[Entity, list[Row]]:
    """The admitted rows, entity by entity."""
    found: dict[Entity, list[Row]] = {}
    for row in rows:
        if is_admitted(row, rules):
            found.setdefault(entity_of(row, rules), []).append(row)
    return found


def entity_of(row: Row, rules: Rules) -> Entity:
    """Whom the row is about; blanks around a text mean nothing, its letters' case does."""
    return tuple(_meaning(row[name]) for name in rules.key)


def state_of(row: Row, rules: Rules) -> State:
    """What the row says."""
    return tuple(_meaning(row[name]) for name in rules.tracked)


def history(said: Iterable[Row], rules: Rules) -> tuple[Version, ...]:
    """The versions of one entity as if everything had arrived in order of time."""
    last_at_the_end = list(reversed(_last_first(said, rules.order)))
    sequence = sorted(last_at_the_end, key=lambda row: row[rules.time])
    last_words = {(row[rules.time], state_of(row, rules)): number for number, row in enumerate(sequence)}
    spoken = [row for number, row in enumerate(sequence) if last_words[row[rules.time], state_of(row, rules)] == number]
    opening = [next(same) for _, same in groupby(spoken, lambda row: state_of(row, rules))]
    closed = [Version(row, row[rules.time], following[rules.time], current=False) for row, following in pairwise(opening)]
    return (*closed, Version(opening[-1], opening[-1][rules.time]))


def _curated(held: tuple[Version, ...], rows: Sequence[Row], rules: Rules) -> tuple[Version, ...]:
    if rules.manner == "place":
        return history(rows, rules)
    row = _last_first(rows, rules.order)[0]
    if not held:
        return (Version(row, row[rules.time]),)
    *closed, current = held
    if _is_older(row, current.row, rules):
        return held
    if rules.manner == "state":
        return (Version(row, row[rules.time]),)
    if state_of(row, rules) == state_of(current.row, rules):
        return held
    return (*closed, replace(current, end=row[rules.time], current=False), Version(row, row[rules.time]))


def _is_older(row: Row, held: Row, rules: Rules) -> bool:
    """By time; at the same time by the order."""
    if row[rules.time] != held[rules.time]:
        return bool(row[rules.time] < held[rules.time])
    return _last_first([row, held], rules.order)[0] is held


def _is_above(row: Row, watermark: datetime | None, rules: Rules) -> bool:
    """A row without a watermark is above nothing and below nothing: it is always read, and refused."""
    mark = row[rules.watermark]
    return mark is None or watermark is None or mark > watermark - rules.lookback


def _last_first(rows: Iterable[Row], order: Sequence[By]) -> list[Row]:
    """The rows in the configured order: the one to keep first."""
    result = list(rows)
    for by in reversed(order):
        known = sorted((row for row in result if row[by.column] is not None), key=lambda row: row[by.column], reverse=by.descending)
        unknown = [row for row in result if row[by.column] is None]
        nulls_first = by.nulls_first if by.nulls_first is not None else not by.descending
        result = [*unknown, *known] if nulls_first else [*known, *unknown]
    return result


def _meaning(value: object) -> object:
    return value.strip(" ") if isinstance(value, str) else value
