"""Random histories of statements as rows of an assertions table: late, partial, doubled, contradicting, deleted, truncated, absent.

A world has many small entities, two or three sources, and runs that hand the statements over in some order. Times are few, so
that many are equal. Values are filled in on arrival by the reference, run by run, as landing would.
"""

import base64
import hashlib
import json
import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from karat.bronze.schema import assertions_schema, timeline_schema
from karat.config.declared.entity import EntityDeclaration
from karat.config.names import TableName
from karat.config.resolved import Entity
from karat.reference import EntitySchema as ReferenceTerms
from karat.reference import reconstruct
from karat.temporal.entity_schema import EntitySchema, types_of

Row = dict[str, Any]

KEY = ("id",)
TYPES = {"name": "string", "amount": "int", "note": "string"}
UNTRACKED = frozenset({"note"})
RANKS = {"CRM": 1, "CORE": 2, "KYC": 1}
FEEDS = {"CRM": "crm", "CORE": "core", "KYC": "kyc"}
BORN = datetime(2026, 3, 1, tzinfo=UTC)
ARRIVED = datetime(2026, 4, 1, tzinfo=UTC)
INSTANTS = 8
_SPEAK_OF_ALL = ("CRM", "CORE", "CORE")


def speaking(world: str) -> tuple[str, ...]:
    """Who speaks in a world, by its name."""
    return ("CRM",) if "one source" in world else tuple(RANKS)


def at(day: float) -> datetime:
    return BORN + timedelta(days=day)


def spark_terms(*, propagate: bool, transaction: bool = False, sources: Sequence[str] = tuple(RANKS)) -> EntitySchema:
    return EntitySchema(types_of({"id": "string"}), types_of(TYPES), tuple(sources), UNTRACKED, transaction, propagate)


def reference_terms(*, propagate: bool, transaction: bool = False) -> ReferenceTerms:
    return ReferenceTerms(
        KEY,
        tuple(TYPES),
        TYPES,
        UNTRACKED,
        "transaction" if transaction else "state",
        "propagate" if propagate else "pinned",
    )


def thing(sightings: str = "exact") -> Entity:
    """The entity that histories are about, as far as tables and sightings go."""
    feed = {"name": "crm", "source_system": "CRM", "from": {"kind": "files", "path": "x", "format": "json"}}
    declared = {"kind": "entity", "name": "thing", "key": ["id"], "attributes": {"name": "string"}, "sightings": sightings, "feeds": [feed]}
    return Entity(EntityDeclaration.model_validate(declared), TableName("bronze", "thing"), ())


def random_statements(dice: random.Random, entity: str, sources: Sequence[str], repeats: float = 0) -> list[Row]:
    """What is said about one entity, before it arrives anywhere; some of it again and again."""
    said = []
    usual = _words(dice) if repeats else {}
    for _ in range(dice.randint(1, 7)):
        source = dice.choice(sources)
        day = dice.randrange(INSTANTS)
        kind = dice.choices(["full", "partial", "delete", "snapshot"], [2, 4, 2, 3])[0]
        spoken = usual if repeats and dice.random() < repeats else _words(dice)
        words = {name: value for name, value in spoken.items() if kind != "partial" or dice.random() < 0.5}
        said.append(statement(entity, (source, day), kind, words, dice))
    return said


def random_source_statements(dice: random.Random, world: str) -> list[Row]:
    """Truncates or complete snapshots, by the name of the world."""
    kind = "truncate" if "truncate" in world else "absent"
    return (
        []
        if "only" in world
        else [statement(None, (source, dice.randrange(INSTANTS)), kind, {}, dice) for source in _SPEAK_OF_ALL if source in speaking(world)]
    )


def _words(dice: random.Random) -> dict[str, Any]:
    return {
        "name": dice.choice(["Ann", "Bea", None]),
        "amount": dice.choice([1, 2, None]),
        "note": dice.choice(["x", "y", None]),
    }


def statement(entity: str | None, spoken: tuple[str, float], kind: str, words: Mapping[str, Any], dice: random.Random) -> Row:
    """One statement of a source for a day, not yet arrived."""
    source, day = spoken
    snapshot = kind in {"snapshot", "absent"}
    shown_on = day if kind == "absent" or dice.random() < 0.5 else dice.randrange(INSTANTS)
    ops = {"full": "c", "partial": "u", "delete": "d", "truncate": "t", "absent": "absent", "snapshot": None}
    everything = kind in {"full", "snapshot"}
    asserted = [name for name in TYPES if name in words] if kind == "partial" else list(TYPES) if everything else []
    return {
        "id": entity,
        **{name: words.get(name) if name in asserted else None for name in TYPES},
        "bk": entity,
        "sk": None if entity is None else hashlib.sha256(entity.encode()).digest(),
        "source_system": source,
        "source_type": "file",
        "source_event_ts": at(day),
        "source_sequence_id": dice.choice([None, None, "9", "10", "a2", "a10"]) if not snapshot else None,
        "op": ops[kind],
        "load_type": "FULL" if kind in {"full", "snapshot", "absent"} else "PARTIAL",
        "entity_type": "state",
        "precedence_rank": RANKS[source],
        "is_deleted": kind == "delete",
        "asserted_columns": asserted,
        "inherited": {},
        "hash_version": 1,
        "time_basis": "source",
        "snapshot_ts": at(shown_on) if snapshot else None,
        "copies": 1,
        "extra": None,
        "payload": None,
        "extraction_version": None,
        "feed": FEEDS[source],
    }


def arrived(row: Row, run: int, file: str, copies: int = 1) -> Row:
    """The statement as a row that a run brought in a file."""
    identity = ("bk", "source_system", "op", "load_type", "source_event_ts", "source_sequence_id", "snapshot_ts")
    words = {name: row[name] for name in row["asserted_columns"]}
    said = json.dumps([[str(row[name]) for name in identity], words], sort_keys=True)
    stated = hashlib.sha256(said.encode()).digest()
    return {
        **row,
        "source_path": f"/data/{file}",
        "source_file": file,
        "ingest_ts": ARRIVED + timedelta(hours=run),
        "ingest_run_id": f"run-{run:04d}",
        "batch_seq": run,
        "statement_hash": stated,
        "record_hash": hashlib.sha256(stated + file.encode()).digest(),
        "copies": copies,
    }


def landed(runs: Iterable[Sequence[Row]], terms: ReferenceTerms) -> list[Row]:
    """The runs one after the other, unsaid values filled in on arrival."""
    held: list[Row] = []
    for rows in runs:
        held += [dict(row) for row in reconstruct(held, rows, terms)]
    return held


def random_runs(dice: random.Random, *, entities: int, runs: int, world: str = "only about keys", repeats: float = 0) -> list[list[Row]]:
    """Runs that hand over what is said about many entities, some of it twice, in no order; in some worlds roughly in turn, and again."""
    in_turn = "in turn" in world
    repeats = repeats or 0.5 * in_turn
    statements = [row for number in range(entities) for row in random_statements(dice, f"e{number}", speaking(world), repeats)]
    statements += [row for row in statements if dice.random() < 0.2]
    statements += random_source_statements(dice, world)
    dice.shuffle(statements)
    if in_turn:
        statements.sort(key=lambda row: min(row["source_event_ts"], row["snapshot_ts"] or row["source_event_ts"]))
    handed: list[list[Row]] = [[] for _ in range(runs)]
    for number, row in enumerate(statements):
        due = int(runs * number / len(statements) + dice.uniform(-0.2, 0.2))
        run = min(max(due, 0), runs - 1) if in_turn else dice.randrange(runs)
        handed[run].append(arrived(row, run, f"f{dice.randrange(3)}.json", dice.choice([1, 1, 3])))
    return handed


def as_frame(spark: SparkSession, rows: Sequence[Row], terms: EntitySchema, folder: Path) -> DataFrame:
    """Assertions as Spark reads them from a file: no Python worker has to start."""
    return as_table(spark, rows, assertions_schema(terms), folder)


def as_versions(spark: SparkSession, rows: Sequence[Row], terms: EntitySchema, folder: Path) -> DataFrame:
    """Versions likewise."""
    return as_table(spark, rows, timeline_schema(terms), folder)


def as_table(spark: SparkSession, rows: Sequence[Row], schema: T.StructType, folder: Path) -> DataFrame:
    """Rows of any shape likewise."""
    file = folder / f"{uuid.uuid4().hex}.json"
    file.write_text("\n".join(json.dumps(_plain(row)) for row in rows))
    return spark.read.schema(schema).json(str(file))


def as_rows(frame: DataFrame) -> list[Row]:
    """Spark's rows as the reference has them: times aware, bytes plain."""
    times = [field.name for field in frame.schema if isinstance(field.dataType, T.TimestampType)]
    return [_python(row.asDict(recursive=True), times) for row in frame.collect()]


def differences(found: Iterable[Mapping[str, Any]], expected: Iterable[Mapping[str, Any]]) -> list[str]:
    """What differs, version by version and column by column, as short lines."""
    ours, theirs = _by_identity(found), _by_identity(expected)
    lines = [f"not expected: {identity}" for identity in sorted(ours.keys() - theirs.keys())]
    lines += [f"missing: {identity}" for identity in sorted(theirs.keys() - ours.keys())]
    for identity in sorted(ours.keys() & theirs.keys()):
        one, other = ours[identity], theirs[identity]
        lines += [
            f"{identity} {name}: {one.get(name)!r} != {other.get(name)!r}"
            for name in sorted(one.keys() | other.keys())
            if one.get(name) != other.get(name)
        ]
    return lines


def _by_identity(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], Mapping[str, Any]]:
    return {(str(row["bk"]), str(row["effective_from"]), row["statement_hash"].hex()[:12]): row for row in rows}


def _python(row: Row, times: Sequence[str]) -> Row:
    for name, value in row.items():
        if isinstance(value, bytearray):
            row[name] = bytes(value)
        elif name in times and value is not None:
            row[name] = value.astimezone(UTC)
        elif name in {"inherited", "because"} and value is not None:
            row[name] = {attribute: _python(whose, ["source_event_ts"]) for attribute, whose in value.items()}
    return row


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a row holds)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.isoformat()
    return value
