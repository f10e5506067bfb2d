"""Spark's beliefs against the reference, on random histories, random rules and random pairs of times. `KARAT_SEED` plays another world."""

import os
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.belief.candidates import Subject
from karat.belief.conflicts import conflicts
from karat.belief.resolution import as_of
from karat.bronze.overtaken import not_overtaken
from karat.bronze.timeline import statements
from karat.config.rules import in_force
from karat.reference import believed
from karat.reference import conflicts as reference_conflicts
from karat.temporal.moments import moment
from tests.support.histories import (
    ARRIVED,
    INSTANTS,
    as_frame,
    as_rows,
    at,
    landed,
    random_runs,
    reference_terms,
    spark_terms,
)
from tests.support.random_rules import RUNS, by, random_rules, text

if TYPE_CHECKING:
    from karat.temporal.entity_schema import EntitySchema

SEED = int(os.environ.get("KARAT_SEED", "20260303"))
ENTITIES = 110
WORLDS = ("only about keys", "truncates too", "complete snapshots too")


@pytest.mark.parametrize("world", WORLDS)
def test_spark_and_the_reference_believe_the_same(spark: SparkSession, tmp_path: Path, world: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    held = landed(random_runs(dice, entities=ENTITIES, runs=RUNS, world=world), reference_terms(propagate=False))
    rules = random_rules(dice)
    lake = Lake(as_frame(spark, held, spark_terms(propagate=False), tmp_path).cache())
    for _ in range(4):
        known_at = ARRIVED + timedelta(hours=dice.randrange(RUNS))
        valid_at = dice.choice([None, at(dice.randrange(-1, INSTANTS + 1))])
        rule = in_force(rules, known_at)
        expected = believed(held, reference_terms(propagate=False), rules, known_at=known_at, valid_at=valid_at)
        if rule is None:
            assert expected == []
            continue
        found = as_rows(as_of(lake.asked(known_at, valid_at), lake.subject, rule, valid_at))
        assert by(found, "bk") == by(expected, "bk"), (known_at, valid_at)


@pytest.mark.parametrize("world", WORLDS[:1])
def test_spark_and_the_reference_see_the_same_conflicts(spark: SparkSession, tmp_path: Path, world: str) -> None:
    dice = random.Random(f"{SEED} conflicts {world}")  # noqa: S311
    held = landed(random_runs(dice, entities=ENTITIES, runs=RUNS, world=world), reference_terms(propagate=False))
    rules = random_rules(dice)
    lake = Lake(as_frame(spark, held, spark_terms(propagate=False), tmp_path))
    now = ARRIVED + timedelta(hours=RUNS)
    found = as_rows(conflicts(lake.known(now), lake.subject, rules[-1]))
    expected = reference_conflicts(held, reference_terms(propagate=False), rules, known_at=now)
    ours = {
        (row["bk"], row["attribute"]): (row["value"], {(word["source_system"], word["value"], word["won"]) for word in row["says"]})
        for row in found
    }
    assert ours == {
        (row["bk"], row["attribute"]): (
            text(row["value"]),
            {(word["source_system"], text(word["value"]), word["won"]) for word in row["candidates"]},
        )
        for row in expected
    }
    assert ours


class Lake:
    """The evidence, and what was known of it."""

    def __init__(self, evidence: DataFrame) -> None:
        self.evidence = evidence
        self.terms: EntitySchema = spark_terms(propagate=False)
        self.subject = Subject(tuple(self.terms.key), self.terms.attributes, self.terms.sources)

    def asked(self, known_at: datetime, valid_at: datetime | None) -> DataFrame:
        """As a question reads it: without what can be nobody's last word at that time."""
        known = self.evidence.where(F.col("ingest_ts") <= moment(known_at))
        return statements(not_overtaken(known, self.terms, valid_at), self.terms)

    def known(self, known_at: datetime) -> DataFrame:
        return statements(self.evidence.where(F.col("ingest_ts") <= moment(known_at)), self.terms)
