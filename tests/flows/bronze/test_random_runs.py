"""Random histories through the front door: files, gate, landing, timeline, run after run, against the reference over the same evidence.

Events of two sources, partial, late, doubled and out of order, with deletes and truncates; extracts of a third, with or without rows
that are gone. One world, told to entities that take it differently. `KARAT_SEED` plays another.
"""

import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.bronze.difference import SIGHTINGS
from karat.reference import EntitySchema, reconstruct
from karat.reference import timeline as reference_timeline
from tests.support.entities import drop, entity_project
from tests.support.histories import Row, as_rows, differences
from tests.support.projects import lake_path

SEED = int(os.environ.get("KARAT_SEED", "20260306"))
RUNS, KEYS, DAYS = 3, 60, 8
TYPES = {"name": "string", "amount": "int", "note": "string"}
EVENTS = {"load_type": "PARTIAL", "event_time": "at", "op": "op", "sequence": "seq"}
EXTRACT = {"load_type": "FULL", "event_time": "data_date"}


def _feed(name: str, rank: int, **more: object) -> dict[str, Any]:
    source = {"kind": "files", "path": f"data/{name}/*.ndjson", "format": "json"}
    return {"name": name, "source_system": name.upper(), "precedence_rank": rank, "from": source, **more}


def _entity(name: str, *feeds: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"kind": "entity", "name": name, "key": ["id"], "attributes": TYPES, "untracked": ["note"], "feeds": list(feeds), **more}


CRM, CORE, KYC = _feed("crm", 1, **EVENTS), _feed("core", 2, **EVENTS), _feed("kyc", 1, **EXTRACT)
TRUSTED = {**KYC, "absence_means": "deleted"}
ENTITIES = {
    "pinned": _entity("pinned", CRM, CORE, TRUSTED),
    "lazy": _entity("lazy", CRM, CORE, KYC, sightings="lazy", late_partials="propagate"),
}


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, list[Row]]]]:
    """Entity to what its two tables held after each run."""
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(SEED)  # noqa: S311  (histories, not secrets)
    folder = entity_project(tmp_path_factory.mktemp("random"), *ENTITIES.values())
    found: dict[str, list[dict[str, list[Row]]]] = {name: [] for name in ENTITIES}
    delivered: list[tuple[str, Row]] = []
    for run in range(RUNS):
        _deliver(folder, run, dice, delivered)
        report = Project.open(folder, spark=spark).run(now=datetime(2026, 4, 1 + run, tzinfo=UTC))
        assert report.ok, report.stages
        assert sum(stage.rows.quarantined for stage in report.stages) == 0
        for name, after in found.items():
            tables = {"evidence": f"bronze.{name}_assertions", "timeline": f"bronze.{name}"}
            after.append({what: as_rows(spark.read.format("delta").load(lake_path(folder, table))) for what, table in tables.items()})
    return found


@pytest.mark.parametrize("name", ENTITIES)
def test_what_statements_leave_unsaid_lands_as_the_reference_fills_it_in(runs: dict[str, list[dict[str, list[Row]]]], name: str) -> None:
    terms, filled = _terms(name), 0
    evidence = runs[name][-1]["evidence"]
    for run in range(1, RUNS + 1):
        prior = [row for row in evidence if row["batch_seq"] < run]
        landed = [row for row in evidence if row["batch_seq"] == run]
        expected = reconstruct(prior, [_as_said(row) for row in landed], terms)
        for row, wanted in zip(landed, expected, strict=True):
            told = ("attr_hash", "inherited", *TYPES)
            assert [row[column] for column in told] == [wanted[column] for column in told] or row["bk"] is None, (run, row, wanted)
            filled += bool(row["inherited"])
    assert filled


@pytest.mark.parametrize("name", ENTITIES)
def test_after_every_run_the_timeline_is_what_the_reference_says(runs: dict[str, list[dict[str, list[Row]]]], name: str) -> None:
    unseen = SIGHTINGS if name == "lazy" else frozenset()
    for run, after in enumerate(runs[name]):
        sides = [
            [{column: value for column, value in row.items() if column not in unseen} for row in rows]
            for rows in (after["timeline"], reference_timeline(after["evidence"], _terms(name)))
        ]
        assert differences(*sides) == [], f"run {run}"


def _deliver(folder: Path, run: int, dice: random.Random, delivered: list[tuple[str, Row]]) -> None:
    """The next files: new events, some that were delivered before, and extracts of some days."""
    keys = [f"k{number}" for number in range(KEYS)]
    for source in ("crm", "core"):
        rows = [_event(dice, key) for key in keys for _ in range(dice.choice([0, 0, 1, 1, 2]))]
        rows += [row for feed, row in delivered if feed == source and dice.random() < 0.1]
        if source == "core" and run == 1:
            rows.append({"op": "t", "at": _day(dice)})
        dice.shuffle(rows)
        delivered += [(source, row) for row in rows]
        drop(folder, f"{source}/{run}.ndjson", rows)
    for day in dice.sample(range(DAYS), 2):
        taken = [key for key in keys if dice.random() < 0.7]
        drop(folder, f"kyc/{run}-{day}.ndjson", [{"id": key, **_words(dice), "data_date": _iso(day)} for key in taken])


def _event(dice: random.Random, key: str) -> Row:
    kind = dice.choices(["whole", "part", "gone"], [2, 4, 1])[0]
    words = {} if kind == "gone" else {name: value for name, value in _words(dice).items() if kind == "whole" or dice.random() < 0.5}
    sequence = {"seq": dice.choice(["9", "10", "a2"])} if dice.random() < 0.3 else {}
    return {"id": key, "op": "d" if kind == "gone" else dice.choice("cu"), "at": _day(dice), **sequence, **words}


def _words(dice: random.Random) -> Row:
    return {"name": dice.choice(["Ann", "Ann", "Bea", None]), "amount": dice.choice([1, 1, 2, None]), "note": dice.choice(["x", "x", None])}


def _day(dice: random.Random) -> str:
    return _iso(dice.randrange(DAYS))


def _iso(day: int) -> str:
    return (datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=day)).isoformat()


def _as_said(row: Row) -> Row:
    """A landed row as it came: without what was filled in."""
    return {**row, **{name: row[name] if name in row["asserted_columns"] else None for name in TYPES}, "inherited": {}}


def _terms(name: str) -> EntitySchema:
    return EntitySchema(("id",), tuple(TYPES), TYPES, frozenset({"note"}), "state", ENTITIES[name].get("late_partials", "pinned"))
