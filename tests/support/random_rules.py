"""Random rules, and rows of beliefs as both sides can be compared."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from karat.config.rules import Authority, Group, Rule
from tests.support.histories import ARRIVED, Row

RUNS = 4
SOURCES = ("CRM", "CORE", "KYC")


def random_rules(dice: random.Random) -> list[Rule]:
    """One to three versions that differ in everything that can differ."""
    begun = [dice.choice([-1, -1, 1]), *sorted(dice.sample(range(2, RUNS), dice.randint(0, 2)))]
    return [Rule(number, ARRIVED + timedelta(hours=hour), _groups(dice), _authority(dice)) for number, hour in enumerate(begun, start=1)]


def _groups(dice: random.Random) -> dict[str, Group]:
    split = dice.choice([[("name", "amount", "note")], [("name",), ("amount", "note")], [("name",), ("amount",), ("note",)]])
    return {f"g{number}": Group(names, _by(dice), _sources(dice), dice.choice(["skip", "count"])) for number, names in enumerate(split)}  # type: ignore[arg-type]


def _authority(dice: random.Random) -> Authority:
    return Authority(_by(dice), _sources(dice))  # type: ignore[arg-type]


def _by(dice: random.Random) -> str:
    return dice.choice(["precedence", "recency"])


def _sources(dice: random.Random) -> dict[str, int] | None:
    chosen = dice.sample(SOURCES, dice.randint(1, 3))
    return dice.choice([None, {source: dice.randint(1, 2) for source in chosen}])


def by(rows: Any, *identity: str) -> dict[tuple[str, ...], Mapping[str, Any]]:  # noqa: ANN401  (rows of either side)
    """Rows by what identifies them, without what only Spark has."""
    told = [{name: value for name, value in row.items() if name not in {"sk", "because_hash"}} for row in rows]
    return {tuple(str(row[name]) for name in identity): row for row in told}


def hash_of_words(because: Mapping[str, Mapping[str, Any]]) -> bytes:
    """What a history's row must note of its `because`."""
    words = [f"{name}={word['record_hash'].hex().upper()}@{_micros(word['source_event_ts'])}" for name, word in because.items()]
    return sha256("|".join(sorted(words)).encode()).digest()


def _micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def as_text(receipt: Mapping[str, Any]) -> Row:
    """A receipt of the reference as tables keep it: of each reading only what changed, as text."""
    sides = {
        side: None if receipt[side] is None else {name: text(receipt[side].get(name)) for name in receipt["changed"]}
        for side in ("before", "after")
    }
    return {**receipt, **sides}


def text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
