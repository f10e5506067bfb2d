"""A process killed between any two commits of a belief loses nothing and repeats nothing, receipts least of all.

The run that is killed and the one that catches up are processes of their own, as users start them.
"""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.beliefs import RULES, declare, table_rows
from tests.support.entities import CUSTOMER, drop, entity_project
from tests.support.killing import killed_before
from tests.support.processes import succeeds

COMMITS = ("receipts written", "conflicts written", "history written", "current written")
FIRST = {2: "the second table made", 5: "conflicts written", 6: "history written", 7: "current written"}
"""Commits of a first run, which begins by making four tables."""
HISTORY_WRITTEN = 7
"""A run killed here has published its history: what comes later restates it."""
TABLES = ("customer", "customer_history", "customer_conflicts", "customer_restatements")
DAY_1 = [
    ("crm", {"customer_id": "a", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "status": "Active"}),
    ("core", {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-05", "status": "Closed"}),
    ("crm", {"customer_id": "b", "op": "c", "source_event_ts": "2026-03-03", "name": "Bob", "status": "Active"}),
]
DAY_2 = [
    ("core", {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-02", "status": "Restricted"}),
    ("core", {"customer_id": "b", "op": "u", "source_event_ts": "2026-03-06", "status": "Closed"}),
]
DAY_3 = [("crm", {"customer_id": "b", "op": "u", "source_event_ts": "2026-03-02", "name": "Rob"})]


@pytest.fixture(scope="module")
def starts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The project with two days on record and one of them believed; and after it has believed the second and a third."""
    begun = entity_project(tmp_path_factory.mktemp("crash") / "begun", CUSTOMER)
    declare(begun, RULES)
    project = Project.open(begun, spark)
    _delivered(begun, 1, DAY_1)
    assert project.run(now=_hour(1)).ok
    _delivered(begun, 2, DAY_2)
    assert project.run(["bronze.*"], now=_hour(2)).ok
    done = Path(shutil.copytree(begun, begun.parent / "done"))
    undisturbed = Project.open(done, spark)
    assert undisturbed.run(now=_hour(3)).ok
    _delivered(done, 3, DAY_3)
    assert undisturbed.run(now=_hour(4)).ok
    return begun, done


def _hour(number: int) -> datetime:
    return datetime(2026, 4, 1, number, tzinfo=UTC)


def _delivered(folder: Path, day: int, events: list[tuple[str, dict[str, Any]]]) -> None:
    for number, (system, event) in enumerate(events):
        drop(folder, f"{system}/{day}-{number}.ndjson", [event])


def _view(folder: Path, table: str) -> list[str]:
    """All that a belief leaves behind, without what names the run, its hour or its folder."""
    return sorted(str(_loose(row)) for row in table_rows(folder, table))


def _loose(value: Any) -> Any:  # noqa: ANN401  (whatever a cell holds)
    if isinstance(value, dict):
        return {name: _loose(item) for name, item in value.items() if name not in {"run_id", "restated_at", "record_hash"}}
    return [_loose(item) for item in value] if isinstance(value, list) else value


def _recovers(spark: SparkSession, begun: Path, done: Path, fate: tuple[int, int, list[tuple[str, dict[str, Any]]]]) -> None:
    """Killed before a commit, and with a day's events delivered meanwhile, the next run leaves what an undisturbed one has."""
    commit, day, events = fate
    folder = Path(shutil.copytree(begun, begun.parent / f"killed {commit}"))
    killed_before(commit, folder)
    # between two commits the tables are at different steps, and none is wrong
    assert Project.open(folder, spark).verify("silver.customer").equal
    _delivered(folder, day, events)
    succeeds(folder, "run")
    for table in TABLES:
        assert _view(folder, table) == _view(done, table), table


@pytest.mark.parametrize("commit", range(1, len(COMMITS) + 1), ids=[f"before {name}" for name in COMMITS])
def test_a_kill_is_recovered_although_more_has_arrived(starts: tuple[Path, Path], spark: SparkSession, commit: int) -> None:
    begun, done = starts
    _recovers(spark, begun, done, (commit, 3, DAY_3))
    assert len(_view(done, "customer_restatements")) == 2


@pytest.fixture(scope="module")
def unbelieved(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The project with one day on record and nothing believed; after it has believed two days at once; and one after the other."""
    begun = entity_project(tmp_path_factory.mktemp("first") / "begun", CUSTOMER)
    declare(begun, RULES)
    _delivered(begun, 1, DAY_1)
    assert Project.open(begun, spark).run(["bronze.*"], now=_hour(1)).ok
    at_once = Path(shutil.copytree(begun, begun.parent / "at once"))
    by_day = Path(shutil.copytree(begun, begun.parent / "by day"))
    assert Project.open(by_day, spark).run(now=_hour(2)).ok
    for folder in (at_once, by_day):
        _delivered(folder, 2, DAY_2)
        assert Project.open(folder, spark).run(now=_hour(3)).ok
    return begun, at_once, by_day


@pytest.mark.parametrize("commit", FIRST, ids=[f"before {name}" for name in FIRST.values()])
def test_a_kill_in_the_very_first_run_is_recovered(unbelieved: tuple[Path, Path, Path], spark: SparkSession, commit: int) -> None:
    begun, at_once, by_day = unbelieved
    _recovers(spark, begun, by_day if commit == HISTORY_WRITTEN else at_once, (commit, 2, DAY_2))
    assert len(_view(by_day, "customer_restatements")) == 1
    assert not _view(at_once, "customer_restatements")
