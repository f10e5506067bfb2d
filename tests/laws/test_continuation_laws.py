"""A timeline carried on batch by batch equals one made anew from all evidence, whatever the order and split of arrival.

Arrivals go through the same door a run uses; the lake is two frames. `KARAT_SEED` plays another world.
"""

import os
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.bronze.continuation import Past
from karat.bronze.difference import SIGHTINGS
from karat.bronze.timeline import timeline
from karat.config.names import TableName
from karat.execute import advance
from karat.execute.advance import Arrivals, Ground, InOrder, carried_on, changes_of, settled_changes, versions_near, with_news
from karat.execute.picked import picked
from karat.reference import reconstruct
from karat.reference import timeline as reference_timeline
from karat.temporal.columns import ACTION, EVENT_TS, SK, SNAPSHOT_TS, col
from karat.temporal.moments import from_micros
from karat.temporal.sketch import bitmaps, sketched
from karat.temporal.source_level import is_snapshot
from tests.support.histories import (
    Row,
    arrived,
    as_frame,
    as_rows,
    as_versions,
    differences,
    landed,
    random_runs,
    reference_terms,
    spark_terms,
    statement,
    thing,
)

SEED = int(os.environ.get("KARAT_SEED", "20260302"))
BATCHES = 4


@dataclass
class TwoFrames:
    """A lake of two tables, evidence and timeline, as plain frames."""

    frames: dict[str, DataFrame] = field(default_factory=dict)

    def read(self, name: TableName) -> DataFrame:
        return self.frames[str(name)]

    def local_path(self, _: TableName) -> None:
        """Nothing can be picked out of them without Spark."""


def _picked(tables: TwoFrames, name: TableName, where: str, schema: T.StructType) -> DataFrame:
    """What would be picked out, by Spark."""
    return tables.read(name).where(where).select(*map(col, schema.names))


@pytest.mark.parametrize("kind", ["pinned", "lazy", "propagate", "lazy propagate", "transaction"])
def test_carried_on_or_made_anew_it_is_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {kind}")  # noqa: S311  (histories, not secrets)
    terms = reference_terms(propagate="propagate" in kind, transaction=kind == "transaction")
    ours = spark_terms(propagate="propagate" in kind, transaction=kind == "transaction")
    lazy = "lazy" in kind
    held: list[Row] = []
    lake = TwoFrames()
    ground = Ground(thing("lazy" if lazy else "exact"), ours, lake)  # type: ignore[arg-type]
    previous: list[Row] = []
    until = None
    for number, run in enumerate(random_runs(dice, entities=150, runs=BATCHES, repeats=0.7 if lazy else 0)):
        fresh = [dict(row) for row in reconstruct(held, run, terms)]
        held += fresh
        lake.frames["bronze.thing_assertions"] = as_frame(spark, held, ours, tmp_path)
        if number == 0:
            found = as_rows(timeline(lake.frames["bronze.thing_assertions"], ours))
        else:
            past = Past(shows_apart=frozenset({"CRM", "CORE", "KYC"}), unseen=until if lazy else None)
            arrivals = Arrivals(as_frame(spark, fresh, ours, tmp_path), (), past, len(fresh))
            looked_up = _looked_up(arrivals, ground) if number % 2 else arrivals
            monkeypatch.setattr(advance, "picked", _picked if number % 2 else picked)
            found = _applied(previous, as_rows(changes_of(with_news(looked_up, ground), ground)))
        until = max(row["source_event_ts"] for row in held)
        expected = [dict(row) for row in reference_timeline(held, terms)]
        sides = [_unsighted(rows) if lazy else rows for rows in (found, expected)]
        assert differences(*sides) == [], f"batch {number}"
        previous = found
        lake.frames["bronze.thing"] = as_versions(spark, found, ours, tmp_path)


@pytest.mark.parametrize("kind", ["pinned", "propagate"])
def test_a_batch_later_than_anything_on_record_needs_the_live_versions_alone(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {kind}")  # noqa: S311
    terms, ours = reference_terms(propagate=kind == "propagate"), spark_terms(propagate=kind == "propagate")
    ours = replace(ours, swept=False, shown_apart=False)
    held: list[Row] = []
    previous: list[Row] = []
    lake = TwoFrames()
    ground = Ground(thing(), ours, lake)  # type: ignore[arg-type]
    for number in range(BATCHES):
        fresh = [dict(row) for row in reconstruct(held, _in_turn(dice, number), terms)]
        held += fresh
        if number:
            arrivals = _looked_up(Arrivals(as_frame(spark, fresh, ours, tmp_path), (), Past(behind={}), len(fresh)), ground)
            arrivals = replace(arrivals, in_order=InOrder(0, len(fresh)))
            found = _applied(previous, as_rows(changes_of(arrivals, ground)))
            live, asked = carried_on(arrivals, ground), carried_on(replace(arrivals, in_order=None), ground)
            assert not asked.survey.some_tangled, "the way round by the survey finds nobody tangled either"
            assert live.survey.heard_from() == asked.survey.heard_from()
        else:
            found = as_rows(timeline(as_frame(spark, held, ours, tmp_path), ours))
        assert differences(found, [dict(row) for row in reference_timeline(held, terms)]) == [], f"batch {number}"
        previous = found
        lake.frames["bronze.thing"] = as_versions(spark, found, ours, tmp_path)


def test_a_first_load_is_closed_by_what_its_source_said_of_everything_before(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(SEED)  # noqa: S311
    gone = arrived(statement(None, ("CRM", 5), "truncate", {}, dice), 0, "f0.json")
    said = [arrived(statement("a", ("CRM", day), "full", {"name": "Ann"}, dice), 1, "f1.json") for day in (3, 6)]
    held = landed([[gone], said], reference_terms(propagate=False))
    ours = spark_terms(propagate=False)
    lake = TwoFrames(
        {"bronze.thing_assertions": as_frame(spark, held, ours, tmp_path), "bronze.thing": as_versions(spark, [], ours, tmp_path)}
    )
    acts = settled_changes(Arrivals(as_frame(spark, held[1:], ours, tmp_path), ()), Ground(thing(), ours, lake))  # type: ignore[arg-type]
    found = _applied([], as_rows(acts.rows))
    assert [row["is_deleted"] for row in sorted(found, key=lambda row: row["effective_from"])] == [False, True, False]
    assert differences(found, reference_timeline(held, reference_terms(propagate=False))) == []


def _in_turn(dice: random.Random, number: int) -> list[Row]:
    """A batch that speaks of days no batch before it had reached; of some entities more than once, in no order, and twice over."""
    run = []
    for entity in (f"e{which}" for which in range(80) if dice.random() < 0.6):
        for source in dice.sample(["CRM", "CORE", "KYC"], dice.choice([1, 1, 2])):
            for _ in range(dice.choice([1, 1, 2])):
                what = dice.choice(["full", "full", "partial", "partial", "delete", "snapshot"])
                words = {"name": dice.choice(["Ann", "Bea", None]), "amount": dice.randrange(3), "note": dice.choice(["x", "y"])}
                if what == "partial":
                    words = {name: value for name, value in words.items() if dice.random() < 0.5}
                said = statement(entity, (source, 10 * number + dice.randrange(1, 5)), what, words, dice)
                said["snapshot_ts"] = said["snapshot_ts"] and said["source_event_ts"]  # shown at its own time
                run += [arrived(said, number, file) for file in dice.sample(["f1.json", "f2.json"], dice.choice([1, 1, 1, 2]))]
    return dice.sample(run, len(run))


def _looked_up(arrivals: Arrivals, ground: Ground) -> Arrivals:
    """The versions near the arrivals looked up beforehand, as a run does it: by a sketch of their keys and their first time."""
    shown_apart = is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS))
    first = F.min(F.unix_micros(F.least(EVENT_TS, F.when(shown_apart, F.col(SNAPSHOT_TS)))))
    earliest, keys = arrivals.rows.agg(first, sketched(F.col(SK))).collect()[0]
    since = from_micros(earliest)
    return replace(arrivals, since=since, near=versions_near(ground, bitmaps(keys), since))


def _unsighted(versions: list[Row]) -> list[Row]:
    """The versions without what lazy sightings let fall behind."""
    return [{name: value for name, value in row.items() if name not in SIGHTINGS} for row in versions]


def _applied(held: list[Row], acts: list[Row]) -> list[Row]:
    """The held versions after the acts, as a MERGE would leave them."""
    versions = {_identity(row): row for row in held}
    for act in acts:
        row = {name: value for name, value in act.items() if not name.startswith("__karat")}
        if act[ACTION] == "delete":
            del versions[_identity(row)]
        else:
            assert (act[ACTION] == "update") == (_identity(row) in versions)
            versions[_identity(row)] = row
    return list(versions.values())


def _identity(row: Row) -> tuple[Any, ...]:
    return row["sk"], row["statement_hash"], row["effective_from"]
