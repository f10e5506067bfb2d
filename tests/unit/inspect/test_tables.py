"""The list of tables says how each was last worked on, also when that run was killed."""

import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karat.config.load import load
from karat.inspect.tables import lake_tables
from karat.state.address import state_url
from karat.state.writer import StateWriter
from karat.telemetry.events import RunStarted, StageFinished, StageStarted
from karat.telemetry.log import JsonLog
from tests.support.projects import curated, land, project_folder

AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("lake", ["./lake", "file://{folder}/lake"])
def test_a_run_that_was_killed_is_not_shown_as_running(tmp_path: Path, lake: str) -> None:
    karat = {"lake": lake.format(folder=tmp_path)}
    folder = project_folder(tmp_path, [curated("silver.a", "bronze.a"), curated("silver.b", "bronze.a")], karat=karat)
    for name in ("silver.a", "silver.b"):
        land(folder, name, "id:int\n1")
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    config = load(folder)
    sinks = (JsonLog(folder / ".karat" / "logs"), StateWriter.open(state_url(config.settings.state, folder)))
    events = (
        RunStarted("r1", AT, "test", ("silver.a", "silver.b"), "abc", process.pid, socket.gethostname()),
        StageStarted("r1", AT, "silver.a"),
        StageFinished("r1", AT, "silver.a", "succeeded", 1.0),
        StageStarted("r1", AT, "silver.b"),
    )
    for event in events:
        sinks[0].emit(event)
        sinks[1].record(event)
    for sink in sinks:
        sink.close()
    assert [(table.name, table.rows, table.status) for table in lake_tables(config)] == [
        ("silver.a", 1, "succeeded"),
        ("silver.b", 1, "interrupted"),
    ]
