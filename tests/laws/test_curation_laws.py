"""Random histories through a whole project, batch by batch, against the oracle of what curation means.

Every case is a key of its own in one source table. Values repeat, rows are copied, times are equal, rows come late
inside the lookback, on its border and outside it, and some lack key or time. `KARAT_SEED` plays another world.
"""

import json
import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType, Field, Schema, Table
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import SparkSession

from karat import Project
from tests.support.curation_oracle import OPEN_END, By, Row, Rules, Target, by_entity, entity_of, history, is_admitted, run, state_of

SEED = int(os.environ.get("KARAT_SEED", "20240613"))
HISTORIES, BATCHES, HOURS_PER_BATCH = 400, 3, 10
BORN = datetime(2024, 3, 30, tzinfo=UTC)
MOMENT = DataType.timestamp("us", tz="UTC")
TYPES = {
    **dict.fromkeys(("id", "source_system", "name"), DataType.string()),
    **dict.fromkeys(("amount", "rank", "seq"), DataType.int64()),
    **dict.fromkeys(("event_ts", "ingestion_ts"), MOMENT),
}

KEY = ("id", "source_system")
TRACKED = ("name", "amount")
LATEST = (By("ingestion_ts", descending=True), By("seq", descending=True))
BEST = (By("ingestion_ts", descending=True), By("rank", nulls_first=False), By("seq", descending=True))
NARROW, WIDE = timedelta(hours=2), timedelta(days=3650)
STATE = Rules("state", KEY, "ingestion_ts", NARROW, LATEST)
RULES = {
    "state": STATE,
    "ignore": Rules("ignore", KEY, "ingestion_ts", NARROW, BEST, TRACKED),
    "place": Rules("place", KEY, "ingestion_ts", NARROW, LATEST, TRACKED),
    "place_by_event": Rules("place", KEY, "ingestion_ts", WIDE, LATEST, TRACKED, "event_ts"),
}
SHUFFLED = {"shuffled": RULES["place_by_event"]}
"""The same histories, their rows arriving in no order at all."""
SOURCE = {"state": "said", "ignore": "said", "place": "said", "place_by_event": "flawed", "shuffled": "shuffled"}
"""The flawed source holds the rows to refuse as well; one target of it is enough, for refusing costs a table more."""
WITH_HISTORY = [name for name in SOURCE if name != "state"]


@dataclass(frozen=True)
class Played:
    """What landed and what was seen: per batch and target the rows held; then what running once more did to the tables."""

    batches: Sequence[Sequence[Row]]
    held: Sequence[Mapping[str, Sequence[Row]]]
    refused: Sequence[Row]
    versions: tuple[Mapping[str, int], Mapping[str, int]]
    """The version of every target before and after running again."""
    ends: Mapping[str, str]
    """How the stages of that last run ended."""

    @cached_property
    def everything(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]

    def expected(self, target: str) -> list[Target]:
        """The oracle's target after each batch."""
        states, source = [Target()], list[Row]()
        for batch in self.batches:
            source += batch if SOURCE[target] == "flawed" else _flawless(batch)
            states.append(run(states[-1], source, RULES[target]))
        return states[1:]


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The whole play: each batch lands and the project runs; at the end it runs once more."""
    dice = random.Random(SEED)  # noqa: S311 - histories, not secrets
    folder = _project(tmp_path_factory.mktemp("laws"))
    batches = _batches(dice)
    shuffled = [row for batch in batches for row in _flawless(batch)]
    dice.shuffle(shuffled)
    project = Project.open(folder, spark=spark)
    held: list[dict[str, list[Row]]] = []
    for number, batch in enumerate(batches):
        landed = {"flawed": batch, "said": _flawless(batch), "shuffled": shuffled[number::BATCHES]}
        for source, rows in landed.items():
            _land(rows, folder / "lake/bronze" / source)
        report = project.run(now=BORN + timedelta(days=number))
        assert report.ok, [(stage.name, stage.error) for stage in report.stages if stage.error]
        held.append({name: _rows(folder / "lake/silver" / name) for name in SOURCE})
    before, report = _versions(folder), project.run(now=BORN + timedelta(days=BATCHES))
    refused = _rows(folder / "lake/silver/place_by_event_quarantine")
    return Played(batches, held, refused, (before, _versions(folder)), {stage.name: stage.status for stage in report.stages})


@pytest.mark.parametrize("target", RULES)
def test_a_target_holds_what_the_requirements_say_after_every_batch(played: Played, target: str) -> None:
    for number, (expected, held) in enumerate(zip(played.expected(target), played.held, strict=True)):
        _assert_same(_shown(held[target], target), _expected(expected, target), f"{target}, batch {number}")


def test_placing_equals_the_history_of_all_rows_by_time_whatever_their_arrival(played: Played) -> None:
    rules = RULES["place_by_event"]
    stories = {entity: history(said, rules) for entity, said in by_entity(played.everything, rules).items()}
    for target in ("place_by_event", "shuffled"):
        _assert_same(_shown(played.held[-1][target], target), _expected(Target(held=stories), target), target)


def test_ties_that_no_order_breaks_are_broken_the_same_way_whatever_the_arrival(played: Played) -> None:
    one, other = (
        [_tuple(row, name) for row in played.held[-1][name] if row["id"].startswith("tied")] for name in ("place_by_event", "shuffled")
    )
    assert len(one) > 20, "the play has no ties"
    _assert_same(one, other, "ties")


def test_running_again_makes_no_commit_and_says_so(played: Played) -> None:
    before, after = played.versions
    assert after == before, f"KARAT_SEED={SEED}"
    assert set(played.ends.values()) == {"unchanged"}, f"{played.ends}; KARAT_SEED={SEED}"


@pytest.mark.parametrize("target", WITH_HISTORY)
def test_periods_of_an_entity_follow_each_other_without_gap_or_overlap(played: Played, target: str) -> None:
    for held in played.held:
        for entity, versions in _stories(held[target]).items():
            assert all(before["end"] == after["start"] for before, after in pairwise(versions)), f"{entity} {versions}; KARAT_SEED={SEED}"
            assert all(version["start"] <= version["end"] for version in versions), f"{entity} {versions}; KARAT_SEED={SEED}"


@pytest.mark.parametrize("target", WITH_HISTORY)
def test_an_entity_has_one_current_version_and_it_is_the_last_and_open(played: Played, target: str) -> None:
    for held in played.held:
        for entity, versions in _stories(held[target]).items():
            currency = [(version["is_current"], version["end"] == OPEN_END) for version in versions]
            assert currency == [(False, False)] * (len(versions) - 1) + [(True, True)], f"{entity} {versions}; KARAT_SEED={SEED}"


def test_a_refused_row_is_kept_once_however_often_it_is_read(played: Played) -> None:
    expected = {row["seq"] for row in played.expected("place_by_event")[-1].refused}
    seen = [json.loads(row["original"])["seq"] for row in played.refused]
    assert len(expected) > 50, "the play refuses nothing"
    assert sorted(seen) == sorted(expected), f"KARAT_SEED={SEED}"


def _batches(dice: random.Random) -> list[list[Row]]:
    """Histories of up to eight statements; a copy of a row may arrive with it or in a later batch."""
    batches: list[list[Row]] = [[] for _ in range(BATCHES)]
    for number in range(HISTORIES):
        kind = dice.choice(["case", "case", "crowded case", "tied"])
        for _ in range(dice.randint(1, 8)):
            batch = dice.randrange(BATCHES)
            row = _statement(dice, f"{kind} {number:03}", batch) | {"seq": 0 if kind == "tied" else sum(map(len, batches))}
            batches[batch].append(row)
            while dice.random() < 0.15:
                batches[dice.randrange(batch, BATCHES)].append(row)
    for batch in batches:
        dice.shuffle(batch)
    return batches


def _statement(dice: random.Random, key: str, batch: int) -> dict[str, Any]:
    """Mostly in time; else late by up to a batch: the lookback's border is where a third of the late ones fall.

    In a crowded case much is said at the same moment, and taken back.
    """
    crowded = key.startswith("crowded")
    late = batch > 0 and dice.random() < 0.4
    hour = batch * HOURS_PER_BATCH + dice.choice([-1, -2, -3, -3, -4, -9] if late else [8] if crowded else range(HOURS_PER_BATCH))
    row = {
        "id": key + dice.choice(["", "", " "]),
        "source_system": "CRM" if crowded else dice.choice(["CRM", "CRM", "Admin"]),
        "name": dice.choice(["Ann", "Ann ", "ann"] if crowded else ["Ann", "Ann", "Ann ", "ann", "", None, "__NULL__"]),
        "amount": 150 if crowded else dice.choice([None, 150, 150, 2000]),
        "rank": dice.choice([None, 1, 2, 3]),
        "event_ts": BORN + timedelta(hours=dice.randrange(2 if crowded else 8), microseconds=dice.choice([0, 0, 0, 1])),
        "ingestion_ts": BORN + timedelta(hours=hour, microseconds=dice.choice([0, 0, 0, 1])),
    }
    flaw = dice.choice(["id", "source_system", "event_ts", "ingestion_ts"])
    return row | {flaw: None} if "case" in key and dice.random() < 0.12 else row


def _flawless(rows: Iterable[Row]) -> list[Row]:
    """Rows nobody refuses."""
    return [row for row in rows if is_admitted(row, RULES["place_by_event"])]


def _project(folder: Path) -> Path:
    tables = [_declared(name, rules) for name, rules in (RULES | SHUFFLED).items()]
    (folder / "curation.json").write_text(json.dumps({"kind": "curation", "tables": tables}), encoding="utf-8")
    (folder / "karat.yml").write_text("project: laws\nspark: {profile: small}\n", encoding="utf-8")
    return folder


def _declared(name: str, rules: Rules) -> dict[str, Any]:
    """The rules in the words of seed 000 §5.1."""
    common = {
        "source_table": f"bronze.{SOURCE[name]}",
        "target_table": f"silver.{name}",
        "scd_type": 1 if rules.manner == "state" else 2,
        "business_key_columns": ["id"],
        "source_system_column": "source_system",
        "watermark_column": rules.watermark,
        "lookback_interval": f"{rules.lookback // timedelta(hours=1)} HOURS",
        "dedup_order_columns": [_order_text(by) for by in rules.order],
    }
    if rules.manner != "state":
        common |= {"track_columns": list(rules.tracked), "out_of_order": rules.manner}
    if rules.effective_from:
        common["effective_from_column"] = rules.effective_from
    return common


def _order_text(by: By) -> str:
    nulls = "" if by.nulls_first is None else " NULLS FIRST" if by.nulls_first else " NULLS LAST"
    return f"{by.column} {'DESC' if by.descending else 'ASC'}{nulls}"


def _land(rows: Sequence[Row], table: Path) -> None:
    """One commit without Spark, so that the seconds go to what is tested."""
    columns = {name: [row[name] for row in rows] for name in TYPES}
    arrays = [_moments(columns[name]) if kind == MOMENT else Array(columns[name], type=kind) for name, kind in TYPES.items()]
    schema = Schema([Field(name, kind, nullable=True) for name, kind in TYPES.items()])
    write_deltalake(str(table), Table.from_arrays(arrays, schema=schema), mode="append")


def _moments(moments: Sequence[datetime | None]) -> Array:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = [None if moment is None else (moment - epoch) // timedelta(microseconds=1) for moment in moments]
    return Array(micros, type=DataType.int64()).cast(MOMENT)


def _versions(folder: Path) -> dict[str, int]:
    return {name: DeltaTable(str(folder / "lake/silver" / name)).version() for name in SOURCE}


def _rows(table: Path) -> list[Row]:
    """A table's rows, read by another engine than wrote them."""
    found = QueryBuilder().register("held", DeltaTable(str(table))).execute("SELECT * FROM held").read_all()
    columns = [found.column(name).to_pylist() for name in found.schema.names]
    return [dict(zip(found.schema.names, values, strict=True)) for values in zip(*columns, strict=True)]


def _shown(rows: Iterable[Row], target: str) -> list[tuple[object, ...]]:
    """Held rows as comparable tuples, without the cases whose ties have no one answer."""
    return [_tuple(row, target) for row in rows if not row["id"].startswith("tied")]


def _expected(state: Target, target: str) -> list[tuple[object, ...]]:
    period = ("effective_start_date", "effective_end_date", "is_current")
    rows = [
        {**version.row, **dict(zip(period, (version.start, version.end, version.current), strict=True))} for _, version in state.versions
    ]
    return _shown(rows, target)


def _tuple(row: Row, target: str) -> tuple[object, ...]:
    """The whole row; of a placed version only whom, what and when: which of two rows that say the same is kept, is open."""
    if target == "state":
        return tuple(row[name] for name in (*KEY, *TRACKED, "rank", "event_ts", "ingestion_ts", "seq"))
    period = tuple(row[name] for name in ("effective_start_date", "effective_end_date", "is_current"))
    if target in {"place", "place_by_event", "shuffled"}:
        return (*entity_of(row, STATE), *period, *_meaning(row))
    return (*(row[name] for name in KEY), *period, *(row[name] for name in (*TRACKED, "rank", "event_ts", "ingestion_ts", "seq")))


def _meaning(row: Row) -> tuple[object, ...]:
    return state_of(row, replace(STATE, tracked=TRACKED))


def _stories(rows: Iterable[Row]) -> dict[tuple[object, ...], list[Row]]:
    """Versions entity by entity; an empty period comes before the one that starts at its end."""
    stories: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        stories.setdefault(entity_of(row, STATE), []).append(
            {**row, "start": row["effective_start_date"], "end": row["effective_end_date"]}
        )
    return {entity: sorted(versions, key=lambda version: (version["start"], version["end"])) for entity, versions in stories.items()}


def _assert_same(seen: Sequence[tuple[object, ...]], expected: Sequence[tuple[object, ...]], where: str) -> None:
    """The same rows as often; a difference names the seed and shows a few cases."""
    surplus = sorted(map(str, set(seen) - set(expected)))
    missing = sorted(map(str, set(expected) - set(seen)))
    story = "\n".join([f"{where}; KARAT_SEED={SEED}", "held but not expected:", *surplus[:6], "expected but not held:", *missing[:6]])
    assert not surplus, story
    assert not missing, story
    assert len(seen) == len(expected), f"{where}: a row is held twice; KARAT_SEED={SEED}"
