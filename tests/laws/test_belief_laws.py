"""Spark's beliefs against the reference, on random histories, random rules and random pairs of times. `KARAT_SEED` plays another world."""

import os
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.bronze.timeline import statements
from karat.config.rules import Authority, Group, Rule, in_force
from karat.reference import belief_history, believed
from karat.reference import conflicts as reference_conflicts
from karat.reference import restatements as reference_restatements
from karat.silver.belief import as_of, believed_moments, history
from karat.silver.conflicts import conflicts
from karat.silver.restatement import frontiers, receipts_of_rule, receipts_of_statements
from karat.silver.words import Subject
from karat.temporal.moments import moment
from tests.support.histories import (
    ARRIVED,
    INSTANTS,
    Row,
    as_frame,
    as_rows,
    at,
    landed,
    random_runs,
    reference_terms,
    spark_terms,
)

if TYPE_CHECKING:
    from karat.bronze.terms import Terms

SEED = int(os.environ.get("KARAT_SEED", "20260303"))
ENTITIES = 110
RUNS = 4
WORLDS = ("only about keys", "truncates too", "complete snapshots too")
SOURCES = ("CRM", "CORE", "KYC")


@pytest.mark.parametrize("world", WORLDS)
def test_spark_and_the_reference_believe_the_same(spark: SparkSession, tmp_path: Path, world: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    held = landed(random_runs(dice, entities=ENTITIES, runs=RUNS, world=world), reference_terms(propagate=False))
    rules = random_rules(dice)
    lake = Lake(as_frame(spark, held, spark_terms(propagate=False), tmp_path).cache())
    for _ in range(3):
        known_at = ARRIVED + timedelta(hours=dice.randrange(RUNS))
        valid_at = dice.choice([None, at(dice.randrange(-1, INSTANTS + 1))])
        rule = in_force(rules, known_at)
        expected = believed(held, reference_terms(propagate=False), rules, known_at=known_at, valid_at=valid_at)
        if rule is None:
            assert expected == []
            continue
        found = as_rows(as_of(lake.known(known_at), lake.subject, rule, valid_at))
        assert by(found, "bk") == by(expected, "bk"), (known_at, valid_at)
        periods = as_rows(history(lake.known(known_at), lake.subject, rule))
        assert by(periods, "bk", "valid_from") == by(
            belief_history(held, reference_terms(propagate=False), rules, known_at=known_at), "bk", "valid_from"
        )


@pytest.mark.parametrize("world", WORLDS)
def test_spark_and_the_reference_write_the_same_receipts(spark: SparkSession, tmp_path: Path, world: str) -> None:
    dice = random.Random(f"{SEED} receipts {world}")  # noqa: S311
    held = landed(random_runs(dice, entities=ENTITIES, runs=RUNS, world=world), reference_terms(propagate=False))
    rules = random_rules(dice)
    lake = Lake(as_frame(spark, held, spark_terms(propagate=False), tmp_path).cache())
    for run in range(1, RUNS):
        before, after = (ARRIVED + timedelta(hours=number) for number in (run - 1, run))
        expected = reference_restatements(held, reference_terms(propagate=False), rules, before=before, after=after)
        found = lake.restated(rules, before, after, run - 1)
        assert by(found, "bk", "valid_from", "cause") == by(map(as_text, expected), "bk", "valid_from", "cause"), run


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
        self.terms: Terms = spark_terms(propagate=False)
        self.subject = Subject(tuple(self.terms.key), self.terms.attributes, self.terms.sources)

    def known(self, known_at: datetime) -> DataFrame:
        return statements(self.evidence.where(F.col("ingest_ts") <= moment(known_at)), self.terms)

    def restated(self, rules: list[Rule], before: datetime, after: datetime, batch: int) -> list[Row]:
        """Receipts, as a run writes them."""
        former, rule = in_force(rules, before), in_force(rules, after)
        if rule is None or former is None:
            return []
        earlier, later = self.known(before), self.known(after)
        middle = believed_moments(earlier, self.subject, rule)
        found = receipts_of_statements(middle, believed_moments(later, self.subject, rule, batch), frontiers(earlier), self.subject, rule)
        if former != rule:
            found = found.unionByName(receipts_of_rule(believed_moments(earlier, self.subject, former), middle, self.subject))
        versions = {"rule_version": rule.version, "rule_version_before": former.version}
        return [{**row, **versions} for row in as_rows(found)]


def random_rules(dice: random.Random) -> list[Rule]:
    """One to three versions that differ in everything that can differ."""
    begun = [dice.choice([-1, -1, 1]), *sorted(dice.sample(range(2, RUNS), dice.randint(0, 2)))]
    return [Rule(number, ARRIVED + timedelta(hours=hour), _groups(dice), _authority(dice)) for number, hour in enumerate(begun, start=1)]


def _groups(dice: random.Random) -> dict[str, Group]:
    split = dice.choice([[("name", "amount", "note")], [("name",), ("amount", "note")], [("name",), ("amount",), ("note",)]])
    return {f"g{number}": Group(names, _by(dice), _sources(dice), dice.choice(["skip", "count"])) for number, names in enumerate(split)}  # type: ignore[arg-type]


def _authority(dice: random.Random) -> Authority:
    return Authority(_by(dice), _sources(dice))  # type: ignore[arg-type]


def _by(dice: random.Random) -> str:
    return dice.choice(["precedence", "recency"])


def _sources(dice: random.Random) -> dict[str, int] | None:
    chosen = dice.sample(SOURCES, dice.randint(1, 3))
    return dice.choice([None, {source: dice.randint(1, 2) for source in chosen}])


def by(rows: Any, *identity: str) -> dict[tuple[str, ...], Mapping[str, Any]]:  # noqa: ANN401  (rows of either side)
    """Rows by what identifies them, without what only Spark has."""
    return {tuple(str(row[name]) for name in identity): {name: value for name, value in row.items() if name != "sk"} for row in rows}


def as_text(receipt: Mapping[str, Any]) -> Row:
    """A receipt of the reference as tables keep it: of each reading only what changed, as text."""
    sides = {
        side: None if receipt[side] is None else {name: text(receipt[side].get(name)) for name in receipt["changed"]}
        for side in ("before", "after")
    }
    return {**receipt, **sides}


def text(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
