"""A timeline that follows its evidence batch by batch equals one made from all of it, and both are what the reference says.

Several worlds, each told to entities that take it differently, run through one project: files, `Project.run`, tables.
`KARAT_SEED` plays other worlds.
"""

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.reference import EntitySchema, reconstruct, timeline
from tests.support.entities import drop, entity_project
from tests.support.tables import Row, differences, table_rows
from tests.support.worlds import (
    TYPES,
    UNTRACKED,
    Batch,
    about_keys,
    batches,
    delivered,
    entity,
    facts,
    feed,
    mixed,
    on_record,
    shared,
    snapshots,
)

SEED = int(os.environ.get("KARAT_SEED", "20261119"))
RUNS = 5
WORLDS = {"mixed": (mixed, 60), "keys": (about_keys, 60), "shared": (shared, 120), "facts": (facts, 60)}
HOURS = (1, 2, 5, 4, 6)
"""The clocks of the runs; one of them is behind the one before it."""
SIGHTINGS = ("first_seen_ts", "last_seen_ts", "seen_count", "last_event_ts")
"""What may follow later where sightings are lazy."""
FIRST_ARRIVAL = ("ingest_ts", "ingest_run_id", "source_path", "source_file", "record_hash", "first_seen_ts", "last_seen_ts", "inherited")
"""What names the run or the arrival."""


def _trusted(name: str, world: str) -> dict[str, Any]:
    return feed(name, world, absence_means="deleted")


def _changes(world: str) -> list[dict[str, Any]]:
    return [feed("crm", world), feed("core", world)]


ENTITIES = {
    "mixed_pinned": entity("mixed_pinned", [*_changes("mixed"), _trusted("kyc", "mixed")]),
    "mixed_lazy": entity("mixed_lazy", [*_changes("mixed"), _trusted("kyc", "mixed")], late_partials="propagate", sightings="lazy"),
    "keys_pinned": entity("keys_pinned", [*_changes("keys"), feed("kyc", "keys")], sightings="lazy"),
    "keys_propagate": entity("keys_propagate", [*_changes("keys"), feed("kyc", "keys")], late_partials="propagate"),
    "shared_pinned": entity("shared_pinned", [*_changes("shared"), _trusted("kyc", "shared"), _trusted("list", "shared")]),
    "shared_propagate": entity(
        "shared_propagate", [*_changes("shared"), _trusted("kyc", "shared"), _trusted("list", "shared")], late_partials="propagate"
    ),
    "facts": entity("facts", _changes("facts"), type="transaction"),
}
PROPAGATING = [name for name, declared in ENTITIES.items() if declared.get("late_partials") == "propagate"]
LAZY = [name for name, declared in ENTITIES.items() if declared.get("sightings") == "lazy"]


@dataclass(frozen=True)
class Played:
    """A project that has heard its worlds, and what its tables held after each run."""

    folder: Path
    told: Mapping[str, list[Batch]]
    held: list[dict[str, list[Row]]]

    def evidence(self, name: str, run: int) -> list[Row]:
        return self.held[run][f"{name}_assertions"]


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Played:
    print(f"KARAT_SEED={SEED}")
    folder = entity_project(tmp_path_factory.mktemp("worlds"), *ENTITIES.values())
    told = {}
    for world, (tell, keys) in WORLDS.items():
        dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
        told[world] = batches(dice, tell(dice, keys), RUNS, world)
    held = []
    for run in range(RUNS):
        _deliver(folder, told, run)
        report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, HOURS[run], tzinfo=UTC))
        assert report.ok, [stage.error for stage in report.stages]
        assert sum(stage.rows.quarantined + stage.rows.ignored for stage in report.stages) == 0
        held.append({f"{name}{which}": table_rows(folder, f"bronze.{name}{which}") for name in ENTITIES for which in ("", "_assertions")})
    return Played(folder, told, held)


def _deliver(folder: Path, told: Mapping[str, list[Batch]], run: int) -> None:
    for batch_of in told.values():
        for file, messages in batch_of[run].items():
            drop(folder, file, messages)


@pytest.mark.parametrize("name", ENTITIES)
def test_every_statement_is_on_record_as_often_as_it_was_delivered(played: Played, name: str) -> None:
    told, evidence = played.told[_world(name)], played.evidence(name, RUNS - 1)
    assert on_record(evidence) == delivered(told)
    complete = {(row["feed"], row["snapshot_ts"]) for row in evidence if row["op"] == "absent"}
    assert complete == (set() if _world(name) == "keys" else snapshots(told))


@pytest.mark.parametrize("name", ENTITIES)
def test_what_statements_leave_unsaid_lands_as_the_reference_fills_it_in(played: Played, name: str) -> None:
    evidence, filled = played.evidence(name, RUNS - 1), 0
    for run in sorted({row["batch_seq"] for row in evidence}):
        prior = [row for row in evidence if row["batch_seq"] < run]
        landed = [row for row in evidence if row["batch_seq"] == run]
        expected = reconstruct(prior, [_as_said(row) for row in landed], _schema(name))
        columns = ("bk", "statement_hash", "attr_hash", "inherited", *TYPES)
        sides = [[{column: row.get(column) for column in columns} for row in rows if row["bk"] is not None] for rows in (landed, expected)]
        assert differences(*sides) == [], f"batch {run}"
        filled += sum(bool(row["inherited"]) for row in landed)
    assert filled


@pytest.mark.parametrize("name", ENTITIES)
def test_after_every_run_the_timeline_is_what_the_reference_says(played: Played, name: str) -> None:
    without = {"sk", *(SIGHTINGS if name in LAZY else ())}
    for run in range(RUNS):
        found, expected = played.held[run][name], timeline(played.evidence(name, run), _schema(name))
        assert differences(found, expected, without) == [], f"run {run}"


@pytest.mark.parametrize("name", ENTITIES)
def test_after_maintenance_a_rebuild_finds_nothing_to_mend(played: Played, spark: SparkSession, name: str) -> None:
    project = Project.open(played.folder, spark)
    if name in LAZY:
        assert all(chore.done for chore in project.maintain("apply", [name]))
        expected = timeline(played.evidence(name, RUNS - 1), _schema(name))
        assert differences(table_rows(played.folder, f"bronze.{name}"), expected, {"sk"}) == []
    found = project.verify(name)
    assert found.equal, (found.counts, found.differences)


def test_where_late_words_propagate_one_batch_gives_what_many_give(
    played: Played, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = entity_project(tmp_path_factory.mktemp("at-once"), *(ENTITIES[name] for name in PROPAGATING))
    for run in range(RUNS):
        _deliver(folder, played.told, run)
    report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, tzinfo=UTC))
    assert report.ok, [stage.error for stage in report.stages]
    for name in PROPAGATING:
        many, once = (table_rows(where, f"bronze.{name}") for where in (played.folder, folder))
        assert differences(many, once, {"sk", *FIRST_ARRIVAL, *(SIGHTINGS if name in LAZY else ())}) == [], name


def _world(name: str) -> str:
    return name.partition("_")[0]


def _as_said(row: Row) -> Row:
    """A landed row as it came: without what was filled in."""
    return {**row, **{name: row[name] if name in row["asserted_columns"] else None for name in TYPES}, "inherited": {}}


def _schema(name: str) -> EntitySchema:
    declared = ENTITIES[name]
    kind, late = declared.get("type", "state"), declared.get("late_partials", "pinned")
    return EntitySchema(("id",), tuple(TYPES), TYPES, frozenset(UNTRACKED), kind, late)
