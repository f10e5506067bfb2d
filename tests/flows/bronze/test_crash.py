"""A process killed between any two commits of a bronze run loses nothing and repeats nothing.

The run that is killed and the one that catches up are processes of their own, as users start them.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CUSTOMER, drop, entity_project, held
from tests.support.killing import killed_before
from tests.support.processes import succeeds
from tests.support.projects import versions

TABLES = ("bronze.customer_assertions", "bronze.customer", "bronze.customer_quarantine")
FIRST_RUN = ("assertions created", "timeline created", "quarantine created", "quarantine written", "assertions written", "timeline written")
SECOND_RUN = ("quarantine written", "assertions written", "timeline written")
"""The commits of each run in their order."""
FIRST_KILLS = (2, 5, 6)
"""The commits of the first run before which it is killed: the first of all, and those that carry rows of the entity."""
DAY_1 = [
    {"customer_id": "a", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "status": "Active"},
    {"customer_id": "a", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "status": "Active"},
    {"customer_id": "b", "op": "c", "source_event_ts": "2026-03-03", "name": "Bob", "status": "Active"},
    {"customer_id": None, "op": "c", "source_event_ts": "2026-03-03", "name": "nobody"},
]
DAY_2 = [
    {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-05", "status": "Closed"},
    {"customer_id": "b", "op": "u", "source_event_ts": "2026-03-02", "status": "Late"},
    "{broken",
]


@pytest.fixture(scope="module")
def starts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The project before its first run, before its second and after it, undisturbed."""
    first = entity_project(tmp_path_factory.mktemp("crash") / "first", CUSTOMER)
    drop(first, "crm/1.ndjson", DAY_1)
    second = _copy(first, "second")
    assert Project.open(second, spark).run().ok
    assert sum(versions(second, name) for name in TABLES) == len(FIRST_RUN)
    drop(second, "crm/2.ndjson", DAY_2)
    done = _copy(second, "done")
    assert Project.open(done, spark).run().ok
    assert sum(versions(done, name) for name in TABLES) == len(FIRST_RUN) + len(SECOND_RUN)
    return first, second, done


def _copy(start: Path, name: str) -> Path:
    # with their times: a file that was read is known by them
    return Path(shutil.copytree(start, start.parent / name))


def _view(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a run leaves behind, without what names the run or its hour."""
    shown = (
        "bk",
        "name",
        "address",
        "status",
        "effective_from",
        "effective_to",
        "is_current",
        "is_source_current",
        "is_deleted",
        "seen_count",
    )
    return {
        "timeline": held(folder, "bronze.customer", *shown),
        "evidence": held(folder, "bronze.customer_assertions", "bk", "source_event_ts", "name", "status", "copies", "source_file"),
        "quarantine": held(folder, "bronze.customer_quarantine", "reason", "original", "source_file"),
    }


def _recovered(start: Path, commit: int, spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
    folder = _copy(start, f"{start.name} {commit}")
    killed_before(commit, folder)
    succeeds(folder, "run")
    project = Project.open(folder, spark)
    assert project.run().stages[0].status == "unchanged"
    found = project.verify("customer")
    assert found.equal, found.differences
    return _view(folder)


@pytest.mark.parametrize("commit", FIRST_KILLS, ids=[f"before {FIRST_RUN[number - 1]}" for number in FIRST_KILLS])
def test_a_kill_in_a_first_run_is_recovered(spark: SparkSession, starts: tuple[Path, Path, Path], commit: int) -> None:
    first, second, _ = starts
    assert _recovered(first, commit, spark) == _view(second)


@pytest.mark.parametrize("commit", range(1, len(SECOND_RUN) + 1), ids=[f"before {name}" for name in SECOND_RUN])
def test_a_kill_in_a_later_run_is_recovered(spark: SparkSession, starts: tuple[Path, Path, Path], commit: int) -> None:
    _, second, done = starts
    assert _recovered(second, commit, spark) == _view(done)
