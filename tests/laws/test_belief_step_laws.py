"""A belief carried on batch by batch equals one made anew from all evidence, under rules that change; and no receipt is missing.

What the history shows after each run is what the reference says was believed then, so it is what as-of says of that moment ever
after. Batches go through the same door a run uses; the lake is a few frames. `KARAT_SEED` plays another world.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.belief.concerned import Ground, Step
from karat.belief.schema import belief_schema, conflicts_schema, history_schema
from karat.belief.step import Judged, judge
from karat.bronze.continuation import Past
from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.config.rules import Rule, in_force
from karat.execute.advance import Arrivals, carried_on, versions_near
from karat.execute.advance import Ground as BronzeGround
from karat.execute.spoken import Spoken
from karat.lake.context import RunStamp
from karat.reference import EntitySchema as ReferenceTerms
from karat.reference import belief_history, conflicts, restatements
from karat.reference import timeline as reference_timeline
from karat.temporal.columns import ACTION, EVENT_TS, SK
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros
from karat.temporal.sketch import bitmaps, sketched
from tests.support.histories import (
    ARRIVED,
    Row,
    arrived,
    as_frame,
    as_rows,
    as_table,
    as_versions,
    at,
    landed,
    random_runs,
    reference_terms,
    spark_terms,
    speaking,
    statement,
    thing,
)
from tests.support.random_rules import RUNS, as_text, by, hash_of_words, random_rules, text

SEED = int(os.environ.get("KARAT_SEED", "20260304"))
ENTITIES, IN_TURN = 80, 200
"""Fewer of them tell anything where what is said comes roughly in turn."""
WORLDS = ("only about keys", "truncates too", "complete snapshots too", "truncates too, in turn", "absence too, in turn", "one source only")
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


@pytest.mark.parametrize("world", WORLDS)
def test_carried_on_or_made_anew_the_belief_is_the_same(spark: SparkSession, tmp_path: Path, world: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    terms, rules = reference_terms(propagate=False), random_rules(dice)
    said = random_runs(dice, entities=IN_TURN if "in turn" in world else ENTITIES, runs=RUNS, world=world)
    evidence = landed(said, terms)
    ground = _ground(spark, rules, spark_terms(propagate=False, sources=speaking(world)))
    _played(evidence, (terms, rules), ground, tmp_path, lambda _run, _before: None)


@pytest.mark.parametrize("number", range(2))
def test_told_by_the_batch_that_has_just_landed_the_belief_is_the_same(spark: SparkSession, tmp_path: Path, number: int) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} told {number}")  # noqa: S311
    terms, rules = reference_terms(propagate=False), [replace(random_rules(dice)[0], in_force_from=ARRIVED - timedelta(hours=1))]
    evidence = landed(_renewed(dice), terms)
    ground = _ground(spark, rules, replace(spark_terms(propagate=False), swept=False, shown_apart=False))
    bounds: dict[int, datetime | None] = {}

    def just_spoken(run: int, before: int | None) -> Spoken | None:
        held = [row for row in evidence if row["batch_seq"] < run]
        if before is None:
            return None
        versions = [dict(row) for row in reference_timeline(held, terms)]
        lake: Any = ground.tables
        lake.frames["bronze.thing"] = as_versions(lake.session, versions, ground.terms, tmp_path)
        arriving = as_frame(lake.session, [row for row in evidence if row["batch_seq"] == run], ground.terms, tmp_path)
        spoken = _spoken(arriving, BronzeGround(thing(), ground.terms, lake), (before, run))
        bounds[run] = spoken.heard_from()
        return spoken

    _played(evidence, (terms, rules), ground, tmp_path, just_spoken)
    # all were renewed on the second day, so that nothing before is heard by what comes in turn; then somebody looks back
    assert bounds[2] is not None
    assert at(1) < bounds[2] <= at(2)
    assert bounds[3] is not None
    assert bounds[3] <= at(1)


def _renewed(dice: random.Random) -> list[list[Row]]:
    """Everybody says everything and, in the second run, everything anew; then a few words in turn, then whatever at whatever time."""
    runs: list[list[Row]] = [[] for _ in range(RUNS)]
    for entity in (f"e{number}" for number in range(60)):
        for source in ("CRM", "CORE"):
            said = [(0, dice.choice([0, 1]), "full"), (1, 2, "full"), (2, dice.choice([4, 5]), dice.choice(["partial", "partial", "full"]))]
            said += [(1, 3, "delete")] if dice.random() < 0.1 else []
            said += [(3, dice.choice([1, 4, 6]), dice.choice(["partial", "full", "delete"]))]
            for run, day, kind in said:
                words = {"name": dice.choice(["Ann", "Bea"]), "amount": 10 * run + dice.randrange(9), "note": dice.choice(["x", "y"])}
                if kind == "partial":
                    words = {name: value for name, value in words.items() if dice.random() < 0.4}
                is_back = any(what == "delete" for *_, what in said[:-1]) and run > 1
                runs[run].append(arrived(statement(entity, (source, day), "full" if is_back else kind, words, dice), run, "f.json"))
    return runs


def _spoken(arriving: DataFrame, ground: BronzeGround, batch: tuple[int, int]) -> Spoken:
    """What a run hands on of a batch it has landed."""
    first, keys, count = arriving.agg(F.min(F.unix_micros(EVENT_TS)), sketched(F.col(SK)), F.count(F.lit(1))).collect()[0]
    since = from_micros(first)
    arrivals = Arrivals(arriving, (), Past(behind={}), count, since, versions_near(ground, bitmaps(keys), since))
    carried = carried_on(arrivals, ground)
    looks_back = batch[1] == RUNS - 1  # the last run alone does
    return Spoken(*batch, carried.keys, bitmaps(keys), None, carried.survey.count, since, carried.survey.heard_from, looks_back)


def _ground(spark: SparkSession, rules: list[Rule], terms: EntitySchema) -> Ground:
    return Ground(Belief("thing", thing(), TABLE, tuple(rules)), terms, Frames(spark.newSession()))  # type: ignore[arg-type]


def _played(
    evidence: list[Row],
    both: tuple[ReferenceTerms, list[Rule]],
    ground: Ground,
    folder: Path,
    spoken: Callable[[int, int | None], Spoken | None],
) -> None:
    """Run after run, every table as the reference has it."""
    terms, rules = both
    held: dict[str, list[Row]] = {"history": [], "current": [], "conflicts": []}
    before: tuple[int, datetime] | None = None
    for run in range(RUNS):
        now = ARRIVED + timedelta(hours=run)
        rule = in_force(rules, now)
        if rule is None:
            continue
        _laid_out(ground, evidence, held, folder)
        former = None if before is None else in_force(rules, before[1])
        since = None if before is None else before[0]
        judged = judge(Step(since, run, former, rule, spoken(run, since)), ground)
        assert judged is not None
        held = _applied(held, judged, ground)
        assert by(held["history"], "bk", "valid_from") == by(belief_history(evidence, terms, rules, known_at=now), "bk", "valid_from"), run
        assert all(row["because_hash"] == hash_of_words(row["because"]) for row in held["history"]), run
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
        if row.pop(ACTION, "put") == "delete":
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
        assert (act[ACTION] != "insert") == (which in rows)
        if act[ACTION] == "delete":
            del rows[which]
        else:
            rows[which] = {name: value for name, value in act.items() if not name.startswith("__karat")}
    return list(rows.values())


def _present(rows: list[Row]) -> dict[tuple[str, ...], Any]:
    period = {"valid_from", "valid_to", "is_current", "because_hash"}
    return by([{name: value for name, value in row.items() if name not in period} for row in rows], "bk")


def _who_differs(rows: list[Row]) -> dict[tuple[str, str], str | None]:
    return {(row["bk"], row["attribute"]): row["value"] for row in rows}


def _receipts(judged: Judged) -> list[Row]:
    receipts = judged.receipts_of(RunStamp("run", ARRIVED))
    stamped = [] if receipts is None else as_rows(receipts)
    return [{name: value for name, value in row.items() if name not in {"run_id", "restated_at"}} for row in stamped]
