"""What statements inherit is the same whether all evidence is asked or the held versions tell it where they can.

Batches roughly in turn, as sources mostly send them, or in no order at all. `KARAT_SEED` plays another world.
"""

import os
import random
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.bronze.arrival import leaves_unsaid, reconstructed
from karat.bronze.continuation import Past
from karat.config.names import TableName
from karat.execute.advance import Ground
from karat.execute.beforehand import near_versions, prior_of, told_by, untold_by
from karat.execute.tally import Tally
from karat.reference import EntitySchema as ReferenceTerms
from karat.reference import reconstruct
from karat.reference import timeline as reference_timeline
from karat.temporal.columns import SK
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.sketch import bitmaps, sketched
from tests.support.histories import (
    BORN,
    INSTANTS,
    TYPES,
    Row,
    arrived,
    as_frame,
    as_rows,
    as_versions,
    reference_terms,
    spark_terms,
    statement,
    thing,
)

SEED = int(os.environ.get("KARAT_SEED", "20260307"))
RUNS, ENTITIES, MANY = 4, 150, 40
DAYS = ((0, 1), (1, 2), (2, 3), (3,), (6, 7))
"""When statements about an entity are due, the last of them after a gap: what came late is over by then."""


@dataclass
class Lake:
    """Evidence and timeline as plain frames."""

    session: SparkSession
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def read(self, name: TableName) -> DataFrame:
        return self.frames[str(name)]


WORLDS = ("one source, in turn", "one source, in no order", "one source, delivered again", "two sources, in turn", "two sources, propagate")


@pytest.mark.parametrize("world", WORLDS)
def test_versions_tell_what_the_evidence_would(spark: SparkSession, tmp_path: Path, world: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    terms = reference_terms(propagate="propagate" in world)
    # where sources speak of everything at once, or snapshots show rows of another time, the evidence is always asked
    ours = replace(spark_terms(propagate="propagate" in world), swept=False, shown_apart=False)
    told, untold = _played(spark, tmp_path, _runs(dice, world), (terms, ours))
    print(f"{told} keys told by their versions, {untold} by their evidence")
    assert min(told, untold) > MANY


def test_whoever_came_back_to_the_past_is_heard_from_where_his_words_begin(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(SEED)  # noqa: S311
    everything = {"name": "Ann", "amount": 1, "note": "n"}
    said = [(0, "full", everything), (3, "partial", {"name": "Bea"}), (2, "partial", {"amount": 9}), (6, "partial", {"name": "Cat"})]
    runs = [[arrived(statement("a", ("CRM", day), *rest, dice), run, "f.json")] for run, (day, *rest) in enumerate(said)]
    ours = replace(spark_terms(propagate=False), swept=False, shown_apart=False)
    assert _played(spark, tmp_path, runs, (reference_terms(propagate=False), ours)) == (2, 1)


def _played(spark: SparkSession, folder: Path, runs: list[list[Row]], both: tuple[ReferenceTerms, EntitySchema]) -> tuple[int, int]:
    """Every run after the first, filled in both ways. How many keys the versions told enough about, and how many not."""
    terms, ours = both
    lake, behind = Lake(spark.newSession()), {}
    held: list[Row] = []
    told = asked = 0
    for arriving in runs:
        expected = [dict(row) for row in reconstruct(held, arriving, terms)]
        if held:
            lake.frames["bronze.thing_assertions"] = as_frame(spark, held, ours, folder)
            lake.frames["bronze.thing"] = as_versions(spark, [dict(row) for row in reference_timeline(held, terms)], ours, folder)
            frame, ground = as_frame(spark, arriving, ours, folder), Ground(thing(), ours, lake)  # type: ignore[arg-type]
            tally, past = _tally(frame, arriving, ours), Past(behind=dict(behind))
            near = near_versions(tally, tally.earliest, ground, now=False)
            assert near is not None
            untold = untold_by(near, tally, past, ours)
            prior = prior_of(near, untold, tally, ground) if untold.keys else told_by(near, tally, ours)
            assert prior is not None
            assert _told(as_rows(reconstructed(frame, prior, ours))) == _told(expected)
            asked += len(untold.keys)
            told += len({row["bk"] for row in expected if row["inherited"]} - set(untold.keys))
            behind |= _come_back(arriving, held)
        held += expected
    return told, asked


def _runs(dice: random.Random, world: str) -> list[list[Row]]:
    """Runs about many entities, mostly partial; in turn, only the third looks back."""
    runs: list[list[Row]] = [[] for _ in range(RUNS)]
    sources, in_turn = ["CRM", "CORE"] if "two" in world else ["CRM"], "in turn" in world
    for row in [row for entity in range(ENTITIES) for row in _said_of(f"e{entity}", sources, dice)]:
        due = (row["source_event_ts"] - BORN).days * RUNS // INSTANTS
        run = max(due, 2) if in_turn and dice.random() < 0.3 else due if in_turn else dice.randrange(RUNS)
        runs[run].append(arrived(row, run, f"f{dice.randrange(3)}.json", dice.choice([1] * 9 + [2])))
    return _delivered_again(runs) if "again" in world else runs


def _delivered_again(runs: list[list[Row]]) -> list[list[Row]]:
    """The first run, the others as one, and these once more in another file: their copies are told by the versions they opened."""
    again = [(runs[0], "first"), ([row for run in runs[1:] for row in run], "first")]
    again.append((again[1][0], "second"))
    return [[arrived(row, number, f"{file}-{row['source_file']}") for row in run] for number, (run, file) in enumerate(again)]


def _said_of(entity: str, sources: list[str], dice: random.Random) -> list[Row]:
    said = []
    for number, days in enumerate(DAYS):
        kind = "full" if number == 0 else dice.choices(["full", "partial", "delete", "snapshot"], [1, 9, 0.5, 0.5])[0]
        day = dice.choice(days) if dice.random() < 0.9 else dice.randrange(INSTANTS)
        words = {name: number if name == "amount" else f"{number}" for name in TYPES if kind != "partial" or dice.random() < 0.4}
        if len(sources) > 1 and dice.random() < 0.05:
            words = dict.fromkeys(words)
        row = statement(entity, (dice.choice(sources), day), kind, words, dice)
        said.append({**row, "snapshot_ts": row["snapshot_ts"] and row["source_event_ts"]})
    return said + [row for row in said if dice.random() < 0.05]


def _tally(frame: DataFrame, rows: list[Row], terms: EntitySchema) -> Tally:
    """What a run knows about a batch before it lands."""
    keys, unsaid = frame.agg(sketched(F.col(SK)), sketched(F.when(leaves_unsaid(terms), F.col(SK)))).collect()[0]
    first = min(row["source_event_ts"] for row in rows)
    return Tally(len(rows), 0, 0, 1, {}, frozenset(), {}, first, bitmaps(keys), bitmaps(unsaid))


def _come_back(arriving: list[Row], held: list[Row]) -> dict[str, datetime]:
    """The sources that speak of a time they had reached before, and what had arrived by then."""
    reached: dict[str, datetime] = {}
    for row in held:
        reached[row["source_system"]] = max(row["source_event_ts"], reached.get(row["source_system"], row["source_event_ts"]))
    back = (row for row in arriving if row["source_event_ts"] <= reached.get(row["source_system"], row["source_event_ts"]))
    arrived_before = max(row["ingest_ts"] for row in held)
    return {row["source_system"]: arrived_before for row in back if row["source_system"] in reached}


def _told(rows: list[Row]) -> list[str]:
    return sorted(str([row["record_hash"], sorted((row["inherited"] or {}).items()), *(row[name] for name in TYPES)]) for row in rows)
