"""What a signal ends: nothing new is started, running jobs are cancelled, and the run is on record as what it was."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from karat.inspect.progress import read_run
from tests.support.processes import Started, karat, succeeds, wait_until
from tests.support.projects import curated, exists, held, land, project_folder

ENDLESS = """
SELECT s.* FROM source_incremental s
JOIN (SELECT count(*) AS hits FROM range(0, 500000000000, 1, 2) WHERE id % 3 = 5) AS endless ON endless.hits = 0
"""
LONG_ENOUGH = 12
AT_ONCE = "SELECT * FROM source_incremental"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two tables, one after the other: the first is never done, the second would take a moment."""
    tables = [
        curated("silver.a_endless", "bronze.a", transformation_sql_path="${workspace.file_path}/sql/endless.sql"),
        curated("silver.b_queued", "bronze.a"),
    ]
    karat_yml = {"runtime": {"max_parallel_tables": 1, "heartbeat_seconds": 1}}
    made = project_folder(tmp_path / "project", tables, karat=karat_yml, sql={"endless.sql": ENDLESS})
    land(made, "bronze.a", "id:int | source_system:string | name:string | ingestion_ts:timestamp\n1 | CRM | Ann | 2026-01-01")
    return made


def begun(folder: Path) -> Started:
    """A run whose first table has been at work long enough for its endless job to have begun."""
    started = karat(folder, "run", "--heartbeat-seconds", "1")
    wait_until(lambda: max(running_seconds(folder), default=0) > LONG_ENOUGH, started)
    return started


def running_seconds(folder: Path) -> list[float]:
    return [seconds for event in events(folder) if event["event"] == "Heartbeat" for seconds in event["running"].values()]


def events(folder: Path) -> list[dict[str, Any]]:
    logs = sorted((folder / ".karat" / "logs").glob("*.jsonl"))
    return [json.loads(line) for line in logs[-1].read_text(encoding="utf-8").splitlines()] if logs else []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_cancels_what_runs_and_starts_nothing(folder: Path, number: signal.Signals, code: int) -> None:
    started = begun(folder)
    os.kill(started.process.pid, number)
    sent = time.monotonic()
    assert started.ended() == code, started.said()
    assert time.monotonic() - sent < 60
    assert "Traceback" not in started.said()
    assert not exists(folder, "silver.b_queued")
    told = {event["stage"]: event["status"] for event in events(folder) if event["event"] == "StageFinished"}
    assert told == {"silver.a_endless": "interrupted", "silver.b_queued": "skipped"}
    run = read_run(folder / ".karat" / "logs")
    assert (run.state, run.note) == ("interrupted", f"by {number.name}")
    assert f"interrupted (by {number.name})" in succeeds(folder, "progress")
    if number is signal.SIGTERM:
        (folder / "sql" / "endless.sql").write_text(AT_ONCE, encoding="utf-8")
        succeeds(folder, "run")
        assert held(folder, "silver.a_endless", "name") == held(folder, "silver.b_queued", "name") == [("Ann",)]


def test_a_run_that_was_killed_is_not_shown_as_running(folder: Path) -> None:
    started = begun(folder)
    assert read_run(folder / ".karat" / "logs").state == "running"
    started.kill()
    assert started.ended() == -signal.SIGKILL
    assert "interrupted (no sign of life since 20" in succeeds(folder, "progress")
