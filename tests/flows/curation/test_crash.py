"""A process killed between any two of its commits loses nothing and repeats nothing: the next run ends where it would have ended."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support import killed_run
from tests.support.projects import Row, curated, held, land, project_folder, versions

Starts = tuple[Path, Path, Path]
ROOT = Path(killed_run.__file__).parents[2]

FIRST = """
    id:string | source_system:string | name:string | ingestion_ts:timestamp
    1         | CRM                  | Ann         | 2026-01-01 10:00:00
    2         | CRM                  | Bob         | 2026-01-01 11:00:00
    -         | CRM                  | nobody      | 2026-01-01 11:00:00
"""
SECOND = """
    id:string | source_system:string | name:string | ingestion_ts:timestamp | city:string
    1         | CRM                  | Anna        | 2026-01-02 10:00:00    | Rome
    3         | CRM                  | Cleo        | 2026-01-02 11:00:00    | Oslo
    -         | CRM                  | no one      | 2026-01-02 11:00:00    | Bern
"""

FIRST_RUN = (
    "quarantine created",
    "quarantine written",
    "target created",
    "target written",
    "audit created",
    "audit written",
    "control created",
    "control written",
)
SECOND_RUN = ("quarantine written", "columns added", "target written", "audit written", "control written")
"""The commits of each run in their order; a kill after each of them, which is the kill before the next."""


WRITTEN = ("silver.people", "silver.people_quarantine", "silver.curation_audit_log", "silver.curation_control")
PERIOD = ("id", "name", "effective_start_date", "effective_end_date", "is_current")
AUDITED = ("status", "records_read", "records_inserted", "records_updated", "watermark_before", "watermark_after", "error_message")


def view(folder: Path, *more: str) -> dict[str, list[Row]]:
    """All that a run leaves behind, without what names the run or its hour."""
    return {
        "target": held(folder, "silver.people", *PERIOD, *more),
        "quarantine": held(folder, "silver.people_quarantine", "reason", "original"),
        "control": held(folder, "silver.curation_control", "table_name", "watermark_value"),
        "audit": [row for row in held(folder, "silver.curation_audit_log", *AUDITED) if row[0] != "unchanged"],
    }


def kill_after(commit: int, folder: Path, environment: Mapping[str, str]) -> None:
    """Run the project in a process that is killed after this many commits."""
    command = [sys.executable, "-m", "tests.support.killed_run", str(folder), str(commit + 1)]
    ended = subprocess.run(command, cwd=ROOT, env=environment, start_new_session=True, capture_output=True, check=False, timeout=300)  # noqa: S603
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def copy(start: Path, name: str) -> Path:
    return Path(shutil.copytree(start, start.parent / name))


@pytest.fixture(scope="module")
def starts(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Starts:
    """The project before its first run, before its second and after it, undisturbed."""
    first = project_folder(tmp_path_factory.mktemp("crash") / "first", [curated("silver.people", "bronze.people", schema_evolution="add")])
    land(first, "bronze.people", FIRST)
    second = copy(first, "second")
    assert Project.open(second, spark).run().ok
    land(second, "bronze.people", SECOND)
    done = copy(second, "done")
    assert Project.open(done, spark).run().ok
    assert sum(versions(second, name) for name in WRITTEN) == len(FIRST_RUN)
    assert sum(versions(done, name) for name in WRITTEN) == len(FIRST_RUN) + len(SECOND_RUN)
    return first, second, done


@pytest.fixture(scope="module")
def here(spark: SparkSession) -> dict[str, str]:
    """The environment of a process that works in this JVM."""
    parameters = spark.sparkContext._gateway.gateway_parameters
    return {**os.environ, "PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}


def recovered(spark: SparkSession, folder: Path, *more: str) -> dict[str, list[Row]]:
    """What a rerun leaves behind; every run that is on record is there once."""
    report = Project.open(folder, spark).run()
    assert report.ok, [stage.error for stage in report.stages]
    runs = held(folder, "silver.curation_audit_log", "run_id", "table_name")
    return {**view(folder, *more), "recorded twice": [run for run in runs if runs.count(run) > 1]}


def test_a_kill_after_any_commit_of_a_first_run_is_recovered(spark: SparkSession, starts: Starts, here: dict[str, str]) -> None:
    first, second, _ = starts

    def killed_and_run_again(number: int) -> dict[str, list[Row]]:
        folder = copy(first, f"first {number}")
        kill_after(number, folder, here)
        return recovered(spark, folder)

    with ThreadPoolExecutor(2) as pool:
        ended = dict(zip(FIRST_RUN, pool.map(killed_and_run_again, range(1, len(FIRST_RUN) + 1)), strict=True))
    expected = {**view(second), "recorded twice": []}
    assert {commit: left for commit, left in ended.items() if left != expected} == {}


def test_a_kill_after_any_commit_of_a_later_run_is_recovered(spark: SparkSession, starts: Starts, here: dict[str, str]) -> None:
    _, second, done = starts

    def killed_and_run_again(number: int) -> dict[str, list[Row]]:
        folder = copy(second, f"second {number}")
        kill_after(number, folder, here)
        return recovered(spark, folder, "city")

    with ThreadPoolExecutor(2) as pool:
        ended = dict(zip(SECOND_RUN, pool.map(killed_and_run_again, range(1, len(SECOND_RUN) + 1)), strict=True))
    expected = {**view(done, "city"), "recorded twice": []}
    assert {commit: left for commit, left in ended.items() if left != expected} == {}


def test_a_kill_that_takes_the_jvm_with_it_is_recovered(spark: SparkSession, starts: Starts) -> None:
    first, second, _ = starts
    folder = copy(first, "with the JVM")
    kill_after(FIRST_RUN.index("target written") + 1, folder, os.environ)
    assert recovered(spark, folder) == {**view(second), "recorded twice": []}
