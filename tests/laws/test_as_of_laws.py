"""What the history tells, and what only the evidence can, together answer as the reference does: at any time, however far behind it is.

`KARAT_SEED` plays another world.
"""

import os
import random
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from karat.belief.as_of import Question, answered
from karat.belief.schema import history_schema
from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.reference import belief_history, believed
from karat.state.commits import Checkpoint
from tests.support.histories import (
    ARRIVED,
    INSTANTS,
    as_frame,
    as_rows,
    as_table,
    at,
    landed,
    random_runs,
    reference_terms,
    spark_terms,
    thing,
)
from tests.support.random_rules import RUNS, by, random_rules

SEED = int(os.environ.get("KARAT_SEED", "20260305"))
ENTITIES = 120


@dataclass
class Frames:
    """A lake of two tables: the evidence, and a history written from its first batches."""

    evidence: DataFrame
    history: DataFrame
    until: int
    rule: int

    def read(self, name: TableName) -> DataFrame:
        return self.evidence if str(name).endswith("assertions") else self.history

    def checkpoint(self, _name: TableName, _stage: str) -> Checkpoint:
        return Checkpoint(position={"batch": self.until, "rule": self.rule, "evidence": "this one"}, trusted=True)

    def made_at(self, _name: TableName) -> str:
        return "this one"


def test_history_and_evidence_answer_together_as_the_reference_does(spark: SparkSession, tmp_path: Path) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(SEED)  # noqa: S311  (histories, not secrets)
    theirs, ours = reference_terms(propagate=False), replace(spark_terms(propagate=False), swept=False, shown_apart=False)
    evidence = landed(random_runs(dice, entities=ENTITIES, runs=RUNS, repeats=0.5), theirs)
    for row in evidence:  # a snapshot's rows are of its own time, as is usual; where they are not, the history is not asked
        row["snapshot_ts"] = row["snapshot_ts"] and row["source_event_ts"]
    rule = replace(random_rules(dice)[-1], in_force_from=ARRIVED - timedelta(hours=1))
    now = ARRIVED + timedelta(hours=RUNS)
    question = Question(Belief("thing", thing(), TableName("silver", "thing"), (rule,)), ours, rule, now, None)
    schema = history_schema(dict(ours.key), question.subject)
    known = as_frame(spark, evidence, ours, tmp_path).cache()
    early, middle, late = at(1), at(INSTANTS / 2), at(INSTANTS - 0.5)
    up_to_date, behind = RUNS - 1, RUNS - 2
    earlier = ARRIVED + timedelta(hours=RUNS - 2)
    for until, known_at, valid_at in (
        *((up_to_date, now, day) for day in (early, middle, late)),
        *((up_to_date, earlier, day) for day in (middle, None)),
        *((behind, now, day) for day in (early, late, None)),
    ):
        batches = [row for row in evidence if row["batch_seq"] <= until]
        history = as_table(spark, _with_keys(belief_history(batches, theirs, [rule], known_at=now), evidence), schema, tmp_path)
        lake = Frames(known, history, until, rule.version)
        found = as_rows(answered(replace(question, known_at=known_at, valid_at=valid_at), lake))  # type: ignore[arg-type]
        expected = believed(evidence, theirs, [rule], known_at=known_at, valid_at=valid_at)
        assert len(found) == len(expected)
        assert by(found, "bk") == by(expected, "bk"), (until, known_at, valid_at)


def _with_keys(periods: list[dict[str, object]], evidence: list[dict[str, object]]) -> list[dict[str, object]]:
    """The reference's periods with the keys that tables have."""
    keys = {row["bk"]: row["sk"] for row in evidence}
    return [{**row, "sk": keys[row["bk"]]} for row in periods]
