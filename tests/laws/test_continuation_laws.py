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
from karat.bronze.loads import is_snapshot
from karat.bronze.timeline import timeline
from karat.config.names import TableName
from karat.execute import advance
from karat.execute.advance import Arrivals, Ground, changes_of, settled_changes, versions_near, with_news
from karat.execute.picked import picked
from karat.reference import reconstruct
from karat.reference import timeline as reference_timeline
from karat.temporal.columns import ACT, EVENT_TS, SK, SNAPSHOT_TS, col
from karat.temporal.moments import from_micros
from karat.temporal.sketch import bitmaps, sketched
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
        if act[ACT] == "delete":
            del versions[_identity(row)]
        else:
            assert (act[ACT] == "update") == (_identity(row) in versions)
            versions[_identity(row)] = row
    return list(versions.values())


def _identity(row: Row) -> tuple[Any, ...]:
    return row["sk"], row["statement_hash"], row["effective_from"]
