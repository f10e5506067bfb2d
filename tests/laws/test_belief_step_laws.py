"""A belief carried on batch by batch equals one made anew from all evidence, under rules that change; and no receipt is missing.

What the history shows after each run is what the reference says was believed then, so it is what as-of says of that moment ever
after. Batches go through the same door a run uses; the lake is a few frames. `KARAT_SEED` plays another world.
"""

import os
import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.config.rules import in_force
from karat.execute.belief_step import Judged, judge
from karat.execute.concerned import Ground, Step
from karat.execute.world import RunStamp
from karat.reference import belief_history, conflicts, restatements
from karat.silver.belief_shape import belief_schema, conflicts_schema, history_schema
from karat.temporal.columns import ACT
from tests.support.histories import ARRIVED, Row, as_frame, as_rows, as_table, landed, random_runs, reference_terms, spark_terms, thing
from tests.support.random_rules import RUNS, as_text, by, random_rules, text

SEED = int(os.environ.get("KARAT_SEED", "20260304"))
ENTITIES, IN_TURN = 80, 200
"""Fewer of them tell anything where what is said comes roughly in turn."""
WORLDS = ("only about keys", "truncates too", "complete snapshots too", "truncates too, in turn", "absence too, in turn")
TABLE = TableName("silver", "thing")


@dataclass
class Frames:
    """A lake of plain frames."""

    session: SparkSession
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def read(self, name: TableName) -> DataFrame:
        return self.frames[str(name)]

    def version(self, _name: TableName) -> int:
        return 1

    def apart(self) -> "Frames":
        return replace(self, session=self.session.newSession())


@pytest.mark.parametrize(
    "world", ["only about keys", "truncates too", "complete snapshots too", "truncates too, in turn", "absence too, in turn"]
)
def test_carried_on_or_made_anew_the_belief_is_the_same(spark: SparkSession, tmp_path: Path, world: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    terms, rules = reference_terms(propagate=False), random_rules(dice)
    said = random_runs(dice, entities=IN_TURN if "in turn" in world else ENTITIES, runs=RUNS, world=world)
    evidence = landed(said, terms)
    ground = Ground(Belief("thing", thing(), TABLE, tuple(rules)), spark_terms(propagate=False), Frames(spark.newSession()))  # type: ignore[arg-type]
    held: dict[str, list[Row]] = {"history": [], "current": [], "conflicts": []}
    before: tuple[int, datetime] | None = None
    for run in range(RUNS):
        now = ARRIVED + timedelta(hours=run)
        rule = in_force(rules, now)
        if rule is None:
            continue
        _laid_out(ground, evidence, held, tmp_path)
        former = None if before is None else in_force(rules, before[1])
        judged = judge(Step(None if before is None else before[0], run, former, rule), ground)
        assert judged is not None
        held = _applied(held, judged, ground)
        assert by(held["history"], "bk", "valid_from") == by(belief_history(evidence, terms, rules, known_at=now), "bk", "valid_from"), run
        assert _present(held["current"]) == _present([row for row in held["history"] if row["is_current"]]), run
        assert _who_differs(held["conflicts"]) == {
            (row["bk"], row["attribute"]): text(row["value"]) for row in conflicts(evidence, terms, rules, known_at=now)
        }
        expected = [] if before is None else restatements(evidence, terms, rules, before=before[1], after=now)
        assert by(_receipts(judged), "bk", "valid_from", "cause") == by(map(as_text, expected), "bk", "valid_from", "cause"), run
        before = (run, now)
    assert before is not None


def _laid_out(ground: Ground, evidence: list[Row], held: dict[str, list[Row]], folder: Path) -> None:
    """The frames a run would find."""
    lake: Any = ground.tables
    key = dict(ground.terms.key)
    lake.frames["bronze.thing_assertions"] = as_frame(lake.session, evidence, ground.terms, folder)
    schemas = {
        "silver.thing_history": (held["history"], history_schema(key, ground.subject)),
        "silver.thing": (held["current"], belief_schema(key, ground.subject)),
        "silver.thing_conflicts": (held["conflicts"], conflicts_schema(key)),
    }
    for name, (rows, schema) in schemas.items():
        lake.frames[name] = as_table(lake.session, rows, schema, folder)


def _applied(held: dict[str, list[Row]], judged: Judged, ground: Ground) -> dict[str, list[Row]]:
    """The tables after the acts, as their commits would leave them; a replacement has no acts, all its rows are put."""
    puts = judged.puts(ground.subject)
    current = {row["sk"]: row for row in held["current"]}
    for row in as_rows(puts.rows) if puts else []:
        if row.pop(ACT, "put") == "delete":
            del current[row["sk"]]
        else:
            current[row["sk"]] = row
    return {
        "history": _merged(held["history"], as_rows(judged.history.rows), ("sk", "valid_from")),
        "current": list(current.values()),
        "conflicts": _merged(held["conflicts"], as_rows(judged.conflicts.rows), ("sk", "attribute")),
    }


def _merged(held: list[Row], acts: list[Row], identity: tuple[str, ...]) -> list[Row]:
    rows = {tuple(row[name] for name in identity): row for row in held}
    for act in acts:
        which = tuple(act[name] for name in identity)
        assert (act[ACT] != "insert") == (which in rows)
        if act[ACT] == "delete":
            del rows[which]
        else:
            rows[which] = {name: value for name, value in act.items() if not name.startswith("__karat")}
    return list(rows.values())


def _present(rows: list[Row]) -> dict[tuple[str, ...], Any]:
    period = {"valid_from", "valid_to", "is_current"}
    return by([{name: value for name, value in row.items() if name not in period} for row in rows], "bk")


def _who_differs(rows: list[Row]) -> dict[tuple[str, str], str | None]:
    return {(row["bk"], row["attribute"]): row["value"] for row in rows}


def _receipts(judged: Judged) -> list[Row]:
    receipts = judged.receipts_of(RunStamp("run", ARRIVED))
    stamped = [] if receipts is None else as_rows(receipts)
    return [{name: value for name, value in row.items() if name not in {"run_id", "restated_at"}} for row in stamped]
