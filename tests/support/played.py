"""Random histories through a whole project, batch by batch: what landed, what was held after each, what a last run did.

Every case is a key of its own in one source table. Values repeat, rows are copied, times are equal, rows come late
inside the lookback, on its border and outside it, and some lack key or time. `KARAT_SEED` plays another world.
"""

import json
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Field, Schema, Table
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import SparkSession

from karat import Project
from tests.support.curation_oracle import By, Row, Rules, Target, is_admitted, run

SEED = int(os.environ.get("KARAT_SEED", "20240613"))
HISTORIES, BATCHES, HOURS_PER_BATCH = 400, 3, 10
BORN = datetime(2024, 3, 30, tzinfo=UTC)
MOMENT = DataType.timestamp("us", tz="UTC")
TYPES = {
    **dict.fromkeys(("id", "source_system", "name"), DataType.string()),
    **dict.fromkeys(("amount", "rank", "seq"), DataType.int64()),
    **dict.fromkeys(("event_ts", "ingestion_ts"), MOMENT),
}

KEY = ("id", "source_system")
TRACKED = ("name", "amount")
LATEST = (By("ingestion_ts", descending=True), By("seq", descending=True))
BEST = (By("ingestion_ts", descending=True), By("rank", nulls_first=False), By("seq", descending=True))
NARROW, WIDE = timedelta(hours=2), timedelta(days=3650)
STATE = Rules("state", KEY, "ingestion_ts", NARROW, LATEST)
RULES = {
    "state": STATE,
    "ignore": Rules("ignore", KEY, "ingestion_ts", NARROW, BEST, TRACKED),
    "ignore_by_event": Rules("ignore", KEY, "ingestion_ts", NARROW, (By("event_ts", descending=True), *LATEST), TRACKED, "event_ts"),
    "place": Rules("place", KEY, "ingestion_ts", NARROW, LATEST, TRACKED),
    "place_by_event": Rules("place", KEY, "ingestion_ts", WIDE, LATEST, TRACKED, "event_ts"),
}
SHUFFLED = {"shuffled": RULES["place_by_event"]}
"""The same histories, their rows arriving in no order at all."""
SOURCE = {
    **dict.fromkeys(("state", "ignore", "place"), "said"),
    "ignore_by_event": "at_rest",
    "place_by_event": "flawed",
    "shuffled": "shuffled",
}
"""The flawed source holds the rows to refuse as well; one target of it is enough, for refusing costs a table more.

Before the last run every source but the one at rest moves without new rows, so that its lookback is really read again.
Where the order does not begin with the watermark that may well change something: then only a source at rest changes nothing.
"""
WITH_HISTORY = [name for name in SOURCE if name != "state"]


@dataclass(frozen=True)
class Played:
    """What landed and what was seen: per batch and target the rows held; then what running once more did to the tables."""

    batches: Sequence[Sequence[Row]]
    held: Sequence[Mapping[str, Sequence[Row]]]
    refused: Sequence[Row]
    versions: tuple[Mapping[str, int], Mapping[str, int]]
    """The version of every target before and after running again."""
    ends: Mapping[str, str]
    """How the stages of that last run ended."""

    @cached_property
    def everything(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]

    def expected(self, target: str) -> list[Target]:
        """The oracle's target after each batch."""
        states, source = [Target()], list[Row]()
        for batch in self.batches:
            source += batch if SOURCE[target] == "flawed" else _flawless(batch)
            states.append(run(states[-1], source, RULES[target]))
        return states[1:]


def play(spark: SparkSession, folder: Path) -> Played:
    """The whole play: each batch lands and the project runs; at the end it runs once more."""
    dice = random.Random(SEED)  # noqa: S311 - histories, not secrets
    _project(folder)
    batches = _batches(dice)
    shuffled = [row for batch in batches for row in _flawless(batch)]
    dice.shuffle(shuffled)
    project = Project.open(folder, spark=spark)
    held: list[dict[str, list[Row]]] = []
    for number, batch in enumerate(batches):
        landed = {"flawed": batch, "said": _flawless(batch), "at_rest": _flawless(batch), "shuffled": shuffled[number::BATCHES]}
        for source, rows in landed.items():
            _land(rows, folder / "lake/bronze" / source)
        report = project.run(now=BORN + timedelta(days=number))
        assert report.ok, [(stage.name, stage.error) for stage in report.stages if stage.error]
        held.append({name: _rows(folder / "lake/silver" / name) for name in SOURCE})
    for source in set(SOURCE.values()) - {"at_rest"}:
        _land([], folder / "lake/bronze" / source)
    before, report = _versions(folder), project.run(now=BORN + timedelta(days=BATCHES))
    refused = _rows(folder / "lake/silver/place_by_event_quarantine")
    return Played(batches, held, refused, (before, _versions(folder)), {stage.name: stage.status for stage in report.stages})


def _batches(dice: random.Random) -> list[list[Row]]:
    """Histories of up to eight statements; a copy of a row may arrive with it or in a later batch."""
    batches: list[list[Row]] = [[] for _ in range(BATCHES)]
    for number in range(HISTORIES):
        kind = dice.choice(["case", "case", "crowded case", "tied"])
        for _ in range(dice.randint(1, 8)):
            batch = dice.randrange(BATCHES)
            row = _statement(dice, f"{kind} {number:03}", batch) | {"seq": 0 if kind == "tied" else sum(map(len, batches))}
            batches[batch].append(row)
            while dice.random() < 0.15:
                batches[dice.randrange(batch, BATCHES)].append(row)
    for batch in batches:
        dice.shuffle(batch)
    return batches


def _statement(dice: random.Random, key: str, batch: int) -> dict[str, Any]:
    """Mostly in time; else late by up to a batch: the lookback's border is where a third of the late ones fall.

    In a crowded case much is said at the same moment, and taken back.
    """
    crowded = key.startswith("crowded")
    late = batch > 0 and dice.random() < 0.4
    hour = batch * HOURS_PER_BATCH + dice.choice([-1, -2, -3, -3, -4, -9] if late else [8] if crowded else range(HOURS_PER_BATCH))
    row = {
        "id": key + dice.choice(["", "", " "]),
        "source_system": "CRM" if crowded else dice.choice(["CRM", "CRM", "Admin"]),
        "name": dice.choice(["Ann", "Ann ", "ann"] if crowded else ["Ann", "Ann", "Ann ", "ann", "", None, "__NULL__"]),
        "amount": 150 if crowded else dice.choice([None, 150, 150, 2000]),
        "rank": dice.choice([None, 1, 2, 3]),
        "event_ts": BORN + timedelta(hours=dice.randrange(2 if crowded else 8), microseconds=dice.choice([0, 0, 0, 1])),
        "ingestion_ts": BORN + timedelta(hours=hour, microseconds=dice.choice([0, 0, 0, 1])),
    }
    flaw = dice.choice(["id", "source_system", "event_ts", "ingestion_ts"])
    return row | {flaw: None} if "case" in key and dice.random() < 0.12 else row


def _flawless(rows: Iterable[Row]) -> list[Row]:
    """Rows nobody refuses."""
    return [row for row in rows if is_admitted(row, RULES["place_by_event"])]


def _project(folder: Path) -> None:
    tables = [_declared(name, rules) for name, rules in (RULES | SHUFFLED).items()]
    (folder / "curation.json").write_text(json.dumps({"kind": "curation", "tables": tables}), encoding="utf-8")
    (folder / "karat.yml").write_text("project: laws\nspark: {profile: small}\n", encoding="utf-8")


def _declared(name: str, rules: Rules) -> dict[str, Any]:
    """The rules in the words of seed 000 §5.1."""
    common = {
        "source_table": f"bronze.{SOURCE[name]}",
        "target_table": f"silver.{name}",
        "scd_type": 1 if rules.manner == "state" else 2,
        "business_key_columns": ["id"],
        "source_system_column": "source_system",
        "watermark_column": rules.watermark,
        "lookback_interval": f"{rules.lookback // timedelta(hours=1)} HOURS",
        "dedup_order_columns": [_order_text(by) for by in rules.order],
    }
    if rules.manner != "state":
        common |= {"track_columns": list(rules.tracked), "out_of_order": rules.manner}
    if rules.effective_from:
        common["effective_from_column"] = rules.effective_from
    return common


def _order_text(by: By) -> str:
    nulls = "" if by.nulls_first is None else " NULLS FIRST" if by.nulls_first else " NULLS LAST"
    return f"{by.column} {'DESC' if by.descending else 'ASC'}{nulls}"


def _land(rows: Sequence[Row], table: Path) -> None:
    """One commit without Spark, so that the seconds go to what is tested."""
    columns = {name: [row[name] for row in rows] for name in TYPES}
    arrays = [_moments(columns[name]) if kind == MOMENT else Array(columns[name], type=kind) for name, kind in TYPES.items()]
    schema = Schema([Field(name, kind, nullable=True) for name, kind in TYPES.items()])
    write_deltalake(str(table), Table.from_arrays(arrays, schema=schema), mode="append")


def _moments(moments: Sequence[datetime | None]) -> Array:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [None if moment is None else (moment - epoch) // timedelta(microseconds=1) for moment in moments]
    return Array(micros, type=DataType.int64()).cast(MOMENT)


def _versions(folder: Path) -> dict[str, int]:
    return {name: DeltaTable(str(folder / "lake/silver" / name)).version() for name in SOURCE}


def _rows(table: Path) -> list[Row]:
    """A table's rows, read by another engine than wrote them."""
    found = QueryBuilder().register("held", DeltaTable(str(table))).execute("SELECT * FROM held").read_all()
    columns = [found.column(name).to_pylist() for name in found.schema.names]
    return [dict(zip(found.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]
