"""A belief that follows its evidence batch by batch is what the reference believes, and what is derived anew from all evidence.

Several worlds of evidence, each with beliefs by random rules that change, run through one project: evidence, `Project.run`,
tables. Sometimes several batches arrive between two runs. `KARAT_SEED` plays other worlds.
"""

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from karat import Project
from karat.config.rules import Rule
from karat.reference import belief_history, believed, conflicts, restatements
from tests.support.entities import entity_project
from tests.support.evidence import belief_declared, land, thing_declared
from tests.support.histories import ARRIVED, INSTANTS, Row, as_rows, at, landed, random_runs, reference_terms, spark_terms
from tests.support.random_rules import as_text, hash_of_words, random_rules, text
from tests.support.tables import differences, table_rows

SEED = int(os.environ.get("KARAT_SEED", "20260303"))
WORLDS = {
    "keys": ("only about keys", 70),
    "truncates": ("truncates too", 50),
    "absent": ("complete snapshots too", 50),
    "in_turn": ("absence too, in turn", 90),
    "one": ("one source only", 40),
}
ALIGNED = ("keys", "one")
"""Worlds in which a snapshot's rows are of its own time, as is usual: there the history is asked what was believed."""
BATCHES = 5
RUNS = ((1,), (2,), (3, 4), (5,))
"""The batches that arrive before each run."""
TABLES = ("", "_history", "_conflicts", "_restatements")
OURS = ("sk", "because_hash", "run_id", "restated_at")
"""What only tables have."""


@dataclass(frozen=True)
class Played:
    """A project that has believed its worlds, its evidence and rules, and what its tables held after each run."""

    folder: Path
    evidence: Mapping[str, list[Row]]
    rules: Mapping[str, list[Rule]]
    held: list[dict[str, list[Row]]]

    def known(self, world: str, run: int) -> list[Row]:
        return [row for row in self.evidence[world] if row["batch_seq"] <= RUNS[run][-1]]


def _time_of(run: int) -> datetime:
    """When a run takes place: all that it knows has arrived by then."""
    return ARRIVED + timedelta(hours=RUNS[run][-1])


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Played:
    print(f"KARAT_SEED={SEED}")
    evidence, rules = {}, {}
    folder = entity_project(tmp_path_factory.mktemp("beliefs"), *(thing_declared(world) for world in WORLDS))
    for world, (kind, entities) in WORLDS.items():
        dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
        evidence[world] = _evidence(dice, world, kind, entities)
        rules[world] = random_rules(dice)
        declared = belief_declared(world, world, rules[world])
        (folder / f"belief-{world}.yml").write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")
    held = []
    for run, batches in enumerate(RUNS):
        for world in WORLDS:
            for batch in batches:
                land(spark, folder, world, [row for row in evidence[world] if row["batch_seq"] == batch], spark_terms(propagate=False))
        report = Project.open(folder, spark).run([f"silver.{world}" for world in WORLDS], now=_time_of(run))
        assert report.ok, [stage.error for stage in report.stages]
        held.append({f"{world}{table}": table_rows(folder, f"silver.{world}{table}") for world in WORLDS for table in TABLES})
    return Played(folder, evidence, rules, held)


def _evidence(dice: random.Random, world: str, kind: str, entities: int) -> list[Row]:
    """All evidence of a world, its batches numbered from 1."""
    runs = random_runs(dice, entities=entities, runs=BATCHES, world=kind)
    said = landed(runs, reference_terms(propagate=False))
    for row in said:
        row["batch_seq"] += 1
        row["ingest_ts"] += timedelta(hours=1)
        if world in ALIGNED and row["snapshot_ts"] is not None:
            row["snapshot_ts"] = row["source_event_ts"]
    return said


@pytest.mark.parametrize("world", WORLDS)
def test_after_every_run_the_history_is_what_the_reference_believes(played: Played, world: str) -> None:
    for run in range(len(RUNS)):
        found = played.held[run][f"{world}_history"]
        expected = belief_history(played.known(world, run), _terms(), played.rules[world], known_at=_time_of(run))
        assert differences(found, expected, OURS) == [], f"run {run}"
        assert all(row["because_hash"] == hash_of_words(row["because"]) for row in found)


@pytest.mark.parametrize("world", WORLDS)
def test_the_current_table_has_the_live_periods_of_the_history(played: Played, world: str) -> None:
    period = ("valid_from", "valid_to", "is_current", "because_hash")
    for run in range(len(RUNS)):
        live = [row for row in played.held[run][f"{world}_history"] if row["is_current"]]
        assert differences(played.held[run][world], live, period) == [], f"run {run}"


@pytest.mark.parametrize("world", WORLDS)
def test_conflicts_are_those_that_the_reference_finds(played: Played, world: str) -> None:
    for run in range(len(RUNS)):
        expected = conflicts(played.known(world, run), _terms(), played.rules[world], known_at=_time_of(run))
        assert differences(played.held[run][f"{world}_conflicts"], map(_as_table_has_it, expected), OURS) == [], f"run {run}"


@pytest.mark.parametrize("world", WORLDS)
def test_every_restatement_leaves_the_receipt_that_the_reference_writes(played: Played, world: str) -> None:
    for run in range(1, len(RUNS)):
        found = [row for row in played.held[run][f"{world}_restatements"] if row["restated_at"] == _time_of(run)]
        moments = {"before": _time_of(run - 1), "after": _time_of(run)}
        expected = restatements(played.known(world, run), _terms(), played.rules[world], **moments)
        assert differences(map(_readable, found), map(as_text, expected), OURS) == [], f"run {run}"


@pytest.mark.parametrize("world", WORLDS)
def test_derived_anew_from_all_evidence_the_belief_is_the_same(played: Played, spark: SparkSession, world: str) -> None:
    found = Project.open(played.folder, spark).verify(f"silver.{world}")
    assert found.equal, (found.counts, found.differences)


@pytest.mark.parametrize("world", WORLDS)
def test_any_pair_of_times_is_answered_as_the_reference_does(played: Played, spark: SparkSession, world: str) -> None:
    dice = random.Random(f"{SEED} as of {world}")  # noqa: S311
    project, last = Project.open(played.folder, spark), len(RUNS) - 1
    for _ in range(4):
        known_at = ARRIVED + timedelta(hours=dice.randrange(1, BATCHES + 1))
        valid_at = dice.choice([None, at(dice.randrange(-1, INSTANTS + 1)), at(dice.randrange(INSTANTS) + 0.5)])
        expected = believed(played.known(world, last), _terms(), played.rules[world], known_at=known_at, valid_at=valid_at)
        found = as_rows(project.as_of(world, valid_at, known_at))
        assert differences(found, expected, OURS) == [], (known_at, valid_at)


def _terms() -> Any:  # noqa: ANN401  (the reference's own)
    return reference_terms(propagate=False)


def _as_table_has_it(row: Mapping[str, Any]) -> Row:
    """A conflict of the reference as tables keep it: values as text, the winner first and the others by name."""
    says = [
        {
            "source_system": word["source_system"],
            "value": text(word["value"]),
            "source_event_ts": word["at"],
            "record_hash": word["record_hash"],
            "won": word["won"],
        }
        for word in sorted(row["candidates"], key=lambda word: (not word["won"], word["source_system"]))
    ]
    told = {name: value for name, value in row.items() if name != "candidates"}
    return {**told, "value": text(row["value"]), "says": says}


def _readable(row: Row) -> Row:
    """Maps of texts as mappings: they come as lists of pairs."""
    return {name: dict(value) if name in {"before", "after"} and isinstance(value, list) else value for name, value in row.items()}
