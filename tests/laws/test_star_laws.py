"""Stars over random histories of their sources: what holds after every run, however the histories were cut into runs.

`KARAT_SEED` plays another world.
"""

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.star_worlds import CUSTOMERS, ITEMS, Period, Source, change_customers, change_items, expected_periods
from tests.support.stars import DIM_CUSTOMER, Declared, star_project
from tests.support.tables import Row, table_rows

SEED = int(os.environ.get("KARAT_SEED", "20261119"))
RUNS, COMMITS = 3, 2
KEYS = [f"C{number:03d}" for number in range(60)]
BY_OWN_TIME: Declared = {
    **DIM_CUSTOMER,
    "name": "dim_own_time",
    "sql": "SELECT customer_id, name, updated_at FROM c",
    "track": ["name"],
    "surrogate_key": {"column": "own_sk", "strategy": "sequence"},
    "late_dimension": "repoint",
    "initial": "changes",
}
BY_COMMIT: Declared = {
    **DIM_CUSTOMER,
    "name": "dim_commit",
    "sql": "SELECT customer_id, name FROM c",
    "track": ["name"],
    "surrogate_key": {"column": "commit_sk", "strategy": "hash"},
    "initial": "changes",
}
del BY_COMMIT["effective_at"]
LATEST: Declared = {**BY_COMMIT, "name": "dim_latest", "scd_type": 1, "surrogate_key": {"column": "latest_sk", "strategy": "hash"}}
SALES: Declared = {
    "kind": "fact",
    "name": "fact_sales",
    "grain": ["order_item_id"],
    "sources": [{"table": "silver.items", "alias": "i", "mode": "cdf"}],
    "sql": "SELECT order_item_id, customer_id, ordered_at, amount FROM i",
    "lookups": [
        {"dimension": "dim_own_time", "on": {"customer_id": "customer_id"}, "at": "ordered_at", "into": "own_sk"},
        {"dimension": "dim_latest", "on": {"customer_id": "customer_id"}, "into": "latest_sk"},
        {"dimension": "dim_commit", "on": {"customer_id": "customer_id"}, "at": "ordered_at", "into": "commit_sk", "missing": "member"},
    ],
}
TOTALS: Declared = {
    "kind": "fact",
    "name": "fact_totals",
    "grain": ["customer_id"],
    "sources": [{"table": "silver.items", "alias": "i", "mode": "cdf"}],
    "sql": "SELECT customer_id, count(*) AS items, sum(amount) AS amount FROM i GROUP BY customer_id",
}
STAR = (BY_OWN_TIME, BY_COMMIT, LATEST, SALES, TOTALS)


@dataclass(frozen=True)
class Seen:
    """The tables after a run, and what the sources had said by then."""

    tables: dict[str, list[Row]]
    customers: dict[str, list[Any]]
    items: dict[int, Row]


@pytest.fixture(scope="module")
def played(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Seen]]:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(SEED)  # noqa: S311  (histories, not secrets)
    folder = star_project(tmp_path_factory.mktemp("star") / "project", STAR)
    customers = Source(folder / "lake/silver/customers", CUSTOMERS, "customer_id")
    items = Source(folder / "lake/silver/items", ITEMS, "order_item_id")
    seen = []
    for run in range(RUNS):
        for _ in range(COMMITS):
            change_items(items, dice, KEYS, 10 * (run + 1))
            change_customers(customers, dice, KEYS, 10 * (run + 1))
        report = Project.open(folder, spark).run(now=datetime(2026, 6, 1 + run, tzinfo=UTC))
        assert report.ok, [(stage.name, stage.error) for stage in report.stages if stage.error]
        tables = {str(declared["name"]): table_rows(folder, f"gold.{declared['name']}") for declared in STAR}
        seen.append(Seen(tables, {key: list(events) for key, events in customers.events.items()}, dict(items.rows)))
    return folder, seen


@pytest.mark.parametrize(("name", "by_own_time"), [("dim_own_time", True), ("dim_commit", False)])
def test_versions_are_those_of_the_source(played: tuple[Path, list[Seen]], name: str, by_own_time: bool) -> None:  # noqa: FBT001
    for seen in played[1]:
        expected = {key: expected_periods(events, by_own_time=by_own_time) for key, events in seen.customers.items()}
        held = {key: _periods(rows) for key, rows in _by_member(seen.tables[name]).items()}
        assert {key: periods for key, periods in held.items() if periods} == {key: periods for key, periods in expected.items() if periods}


@pytest.mark.parametrize("name", ["dim_own_time", "dim_commit", "dim_latest"])
def test_periods_do_not_overlap_and_keys_are_unique(played: tuple[Path, list[Seen]], name: str) -> None:
    key = {"dim_own_time": "own_sk", "dim_commit": "commit_sk", "dim_latest": "latest_sk"}[name]
    before: dict[int, str] = {}
    for seen in played[1]:
        rows = seen.tables[name]
        assert max(Counter(row[key] for row in rows).values()) == 1
        assert {row[key] for row in rows if row["customer_id"] is None} == {-1, -2, -3, -4}
        for versions in _by_member(rows).values():
            ordered = sorted(versions, key=lambda row: (row["__valid_from"], row["__valid_to"] or datetime.max.replace(tzinfo=UTC)))
            for earlier, later in pairwise(ordered):
                assert earlier["__valid_to"] is not None
                assert earlier["__valid_to"] <= later["__valid_from"], ordered
            assert sum(row["__is_current"] for row in versions) <= 1
        now = {row[key]: row["customer_id"] for row in rows}
        assert before.items() <= now.items(), "a key was lost, or given to another member"
        before = now


def test_a_dimension_without_history_has_the_latest_row_of_each_member(played: tuple[Path, list[Seen]]) -> None:
    for seen in played[1]:
        rows = {row["customer_id"]: row for row in seen.tables["dim_latest"] if row["customer_id"] is not None and not row["__is_skeleton"]}
        for key, events in seen.customers.items():
            said = [event.row["name"] for event in events if event.row is not None]
            if said:
                assert (rows[key]["name"], rows[key]["__is_deleted"]) == (said[-1], events[-1].row is None), (key, events)


def test_there_is_a_fact_for_each_row_and_lookups_change_nothing_of_that(played: tuple[Path, list[Seen]]) -> None:
    for seen in played[1]:
        facts = {row["order_item_id"]: row for row in seen.tables["fact_sales"]}
        assert len(facts) == len(seen.tables["fact_sales"])
        assert {number: {name: row[name] for name in ITEMS} for number, row in facts.items()} == seen.items


def test_every_key_of_a_fact_is_one_member_whose_period_holds_its_time(played: tuple[Path, list[Seen]]) -> None:
    for seen in played[1]:
        members = {row["own_sk"]: row for row in seen.tables["dim_own_time"]}
        latest = {row["latest_sk"]: row for row in seen.tables["dim_latest"]}
        for fact in seen.tables["fact_sales"]:
            member = members[fact["own_sk"]]
            assert latest[fact["latest_sk"]]["customer_id"] == fact["customer_id"]
            if fact["customer_id"] is None:
                assert (fact["own_sk"], fact["latest_sk"]) == (-1, -1)
                continue
            assert member["customer_id"] == fact["customer_id"]
            assert member["__valid_from"] <= fact["ordered_at"], (fact, member)
            assert member["__valid_to"] is None or fact["ordered_at"] < member["__valid_to"], (fact, member)


def test_aggregated_facts_are_those_of_the_rows_that_are_there(played: tuple[Path, list[Seen]]) -> None:
    for seen in played[1]:
        expected: dict[str, list[int]] = {}
        for item in seen.items.values():
            if item["customer_id"] is not None:
                expected.setdefault(item["customer_id"], []).append(item["amount"])
        found = {row["customer_id"]: (row["items"], row["amount"]) for row in seen.tables["fact_totals"]}
        assert found == {key: (len(amounts), sum(amounts)) for key, amounts in expected.items()}


def test_all_of_it_is_what_a_rebuild_gives_and_a_second_run_writes_nothing(played: tuple[Path, list[Seen]], spark: SparkSession) -> None:
    folder, seen = played
    project = Project.open(folder, spark)
    assert {stage.status for stage in project.run().stages} == {"unchanged"}
    assert {name: table_rows(folder, f"gold.{name}") for name in seen[-1].tables}.keys() == seen[-1].tables.keys()
    for declared in STAR:
        found = project.verify(f"gold.{declared['name']}")
        assert found.equal, (declared["name"], found.counts, found.differences)


def test_read_again_from_the_start_history_and_keys_stay(played: tuple[Path, list[Seen]], spark: SparkSession) -> None:
    folder, seen = played
    assert Project.open(folder, spark).run(reload=True).ok
    for name, key in (("dim_commit", "commit_sk"), ("dim_latest", "latest_sk"), ("fact_sales", "order_item_id")):
        before, after = ({row[key]: row for row in rows} for rows in (seen[-1].tables[name], table_rows(folder, f"gold.{name}")))
        assert before.keys() == after.keys()
    assert all(Project.open(folder, spark).verify(f"gold.{name}").equal for name in ("dim_commit", "dim_latest", "fact_sales"))


def _by_member(rows: Sequence[Row]) -> dict[str, list[Row]]:
    members: dict[str, list[Row]] = {}
    for row in rows:
        if row["customer_id"] is not None:
            members.setdefault(row["customer_id"], []).append(row)
    return members


def _periods(rows: Sequence[Row]) -> list[Period]:
    """Versions by the source's own times, those of one state that follow each other as one; skeletons are no source's."""
    found: list[Period] = []
    for row in sorted((row for row in rows if not row["__is_skeleton"]), key=lambda row: (row["__effective_at"], row["__valid_from"])):
        period = Period(row["__effective_at"], row["__valid_to"], row["name"], deleted=row["__is_deleted"])
        if found and not found[-1].deleted and (found[-1].end, found[-1].name) == (period.start, period.name):
            found[-1] = Period(found[-1].start, period.end, period.name, deleted=period.deleted)
        else:
            found.append(period)
    return found
