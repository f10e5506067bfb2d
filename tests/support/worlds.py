"""Random worlds told to the entities of a project: what each feed delivers, batch by batch, as files.

Times are whole days and few, so that many keys share every instant. What is said arrives roughly in turn, a part of it
late, some of it twice, and the batches are cut at random places.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

Message = dict[str, Any]
Batch = Mapping[str, Sequence[Message]]
"""File below `data/` to its messages, one a line."""

DAYS = 8
BORN = datetime(2026, 3, 1, tzinfo=UTC)
TYPES = {"name": "string", "amount": "int", "note": "string"}
UNTRACKED = ("note",)
SOURCES = {"crm": "CRM", "core": "CORE", "kyc": "KYC", "list": "CORE"}
"""Feed to the source that speaks in it; one source has two feeds, its changes and its daily list."""
RANKS = {"CRM": 1, "CORE": 2, "KYC": 1}
LATE, TWICE = 0.25, 0.15
"""How much of what is said comes late, and comes twice."""


@dataclass(frozen=True)
class Delivery:
    """Messages of one feed that arrive together, and when."""

    due: float
    feed: str
    messages: tuple[Message, ...]
    own_file: bool = False
    """An extract is a file; events share theirs with others."""


def day_of(number: int) -> datetime:
    return BORN + timedelta(days=number)


def iso(number: int) -> str:
    return day_of(number).isoformat()


def feed(name: str, world: str, **more: object) -> dict[str, Any]:
    """The declaration of a feed that reads the files of a world: changes, or complete extracts with a row time of their own."""
    said: dict[str, Any] = {"load_type": "PARTIAL", "event_time": "at", "op": "op", "sequence": "seq"}
    if name in {"kyc", "list"}:
        said = {"load_type": "FULL", "event_time": "at", "snapshot_of": "taken_at"}
    source = {"kind": "files", "path": f"data/{world}/{name}/*.ndjson", "format": "json"}
    return {"name": name, "source_system": SOURCES[name], "precedence_rank": RANKS[SOURCES[name]], "from": source, **said, **more}


def entity(name: str, feeds: Iterable[Mapping[str, Any]], **more: object) -> dict[str, Any]:
    """The declaration of an entity that hears a world."""
    said = {"key": ["id"], "attributes": TYPES, "untracked": list(UNTRACKED), "feeds": [dict(each) for each in feeds]}
    return {"kind": "entity", "name": name, **said, **more}


def mixed(dice: random.Random, keys: int) -> list[Delivery]:
    """Events of two sources about each key, deletes among them; truncates of both; extracts of a third."""
    names = [f"k{number}" for number in range(keys)]
    said = [
        _event(dice, source, key, dice.randrange(DAYS)) for key in names for source in ("crm", "core") for _ in range(dice.randint(0, 4))
    ]
    said += [_event(dice, source, None, dice.randrange(1, DAYS), "t") for source in ("crm", "core", "core")]
    said += [part for day in dice.sample(range(DAYS), 5) for part in _extract(dice, "kyc", names, day)]
    return said


def about_keys(dice: random.Random, keys: int) -> list[Delivery]:
    """Events of two sources and extracts whose silence means nothing: nothing concerns more than one key."""
    return [each for each in mixed(dice, keys) if each.own_file or each.messages[0]["id"] is not None]


def shared(dice: random.Random, keys: int) -> list[Delivery]:
    """Every day each source speaks of many keys at once: all changes, deletes, a truncate and complete lists share the instant."""
    names = [f"k{number}" for number in range(keys)]
    said = []
    for day in range(DAYS):
        for source in ("crm", "core"):
            kinds = dice.choices([("c", 0.5), ("u", 0.5), ("d", 0.4), ("t", 0)], [3, 4, 3, 2], k=2)
            for op, share in kinds:
                about = [key for key in names if dice.random() < share] if op != "t" else [None]
                is_late = dice.random() < LATE
                volley = [_event(dice, source, key, day, op) for key in about]
                # a late volley comes as a whole, or every message when it may
                due = dice.uniform(day, DAYS)
                said += [Delivery(due, each.feed, each.messages) if is_late else each for each in volley]
        if dice.random() < 0.6:
            said += _extract(dice, dice.choice(["list", "kyc"]), names, day)
    return said


def facts(dice: random.Random, keys: int) -> list[Delivery]:
    """What two sources say of transactions: some again with other content."""
    names = [f"k{number}" for number in range(keys) for _ in range(dice.randint(1, 4))]
    return [_event(dice, dice.choice(["crm", "core"]), key, dice.randrange(DAYS), dice.choice("cu")) for key in names]


def batches(dice: random.Random, said: Sequence[Delivery], number: int, world: str) -> list[Batch]:
    """All that is said, and some of it twice, in the order of arrival, cut into batches of any size."""
    again = [
        Delivery(dice.uniform(each.due, DAYS), each.feed, each.messages) for each in said if dice.random() < TWICE and not each.own_file
    ]
    arriving = sorted([*said, *again], key=lambda each: each.due)
    cuts = sorted(dice.sample(range(1, len(arriving)), number - 1))
    parts = [arriving[start:end] for start, end in zip([0, *cuts], [*cuts, len(arriving)], strict=True)]
    return [_files(dice, part, f"{world}", run) for run, part in enumerate(parts)]


def delivered(told: Iterable[Batch]) -> Counter[tuple[Any, ...]]:
    """How often each statement was delivered."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for batch in told:
        for path, messages in batch.items():
            counts.update(_said(path.split("/")[1], message) for message in messages)
    return counts


def on_record(evidence: Iterable[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """The same by the evidence: how often each statement arrived, those that follow from complete snapshots left out."""
    counts: Counter[tuple[Any, ...]] = Counter()
    for row in evidence:
        if row["op"] != "absent":
            words = tuple((name, row[name]) for name in TYPES if name in row["asserted_columns"])
            statement = (row["feed"], row["id"], row["op"], row["source_event_ts"], row["source_sequence_id"], row["snapshot_ts"], words)
            counts[statement] += row["copies"]
    return counts


def snapshots(told: Iterable[Batch]) -> set[tuple[str, datetime]]:
    """Every complete snapshot that was delivered: its feed, and the time it speaks of."""
    return {
        (path.split("/")[1], datetime.fromisoformat(message["taken_at"]))
        for batch in told
        for path, messages in batch.items()
        for message in messages
        if "taken_at" in message
    }


def _event(dice: random.Random, source: str, key: str | None, day: int, op: str | None = None) -> Delivery:
    """One change: complete, partial or a delete, and a truncate when it has no key."""
    kind = op or dice.choices(["c", "u", "d"], [2, 5, 1])[0]
    words = {} if kind in {"d", "t"} else {name: value for name, value in _words(dice).items() if kind == "c" or dice.random() < 0.5}
    sequence = {"seq": dice.choice(["9", "10", "a2", "a10"])} if dice.random() < 0.3 else {}
    return Delivery(_due(dice, day), source, ({"id": key, "op": kind, "at": iso(day), **sequence, **words},))


def _extract(dice: random.Random, source: str, keys: Sequence[str], day: int) -> Iterator[Delivery]:
    """A list of most keys as of a day; some rows are of another time, and sometimes it comes in two files, the second much later."""
    taken = [key for key in keys if dice.random() < 0.75]
    rows = [
        {"id": key, "at": iso(day if dice.random() < 0.7 else dice.randrange(DAYS)), "taken_at": iso(day), **_words(dice)} for key in taken
    ]
    half = len(rows) // 2 if dice.random() < 0.3 else len(rows)
    for part in (rows[:half], rows[half:]):
        if part:
            yield Delivery(_due(dice, day), source, tuple(part), own_file=True)


def _due(dice: random.Random, day: int) -> float:
    return dice.uniform(day, DAYS) if dice.random() < LATE else day + dice.random()


def _words(dice: random.Random) -> dict[str, Any]:
    return {
        "name": dice.choice(["Ann", "Ann", "Bea", None]),
        "amount": dice.choice([1, 1, 2, None]),
        "note": dice.choice(["x", "x", None]),
    }


def _files(dice: random.Random, arriving: Sequence[Delivery], world: str, run: int) -> Batch:
    files: dict[str, list[Message]] = {}
    for number, each in enumerate(arriving):
        name = f"{run}-list{number}" if each.own_file else f"{run}-{dice.randrange(2)}"
        files.setdefault(f"{world}/{each.feed}/{name}.ndjson", []).extend(each.messages)
    for messages in files.values():
        dice.shuffle(messages)
    return files


def _said(name: str, message: Message) -> tuple[Any, ...]:
    taken_at = message.get("taken_at")
    words = tuple((attribute, message[attribute]) for attribute in TYPES if attribute in message)
    at = datetime.fromisoformat(message["at"])
    return name, message["id"], message.get("op"), at, message.get("seq"), taken_at and datetime.fromisoformat(taken_at), words
