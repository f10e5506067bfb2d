"""Runs read back from their logs, finished, at work, interrupted or damaged."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from karat.errors import ConfigError
from karat.inspect.progress import Failure, failures, follow, list_runs, read_run
from karat.telemetry.events import Event, Heartbeat, Rows, RunFinished, RunStarted, StageFinished, StageStarted, as_record
from karat.telemetry.log import JsonLog

AT = datetime(2026, 1, 2, tzinfo=UTC)


def story(run_id: str, *, ok: bool = True) -> list[Event]:
    end = (
        StageFinished(run_id, AT, "bronze.a", "succeeded", 2.0, Rows(read=5), notes=("late",))
        if ok
        else StageFinished(run_id, AT, "bronze.a", "failed", 2.0, error="bad")
    )
    return [
        RunStarted(run_id, AT, "bank", ("bronze.a", "silver.b"), "abc"),
        StageStarted(run_id, AT, "bronze.a"),
        end,
        StageFinished(run_id, AT, "silver.b", "unchanged" if ok else "skipped", 0.0),
        RunFinished(run_id, AT, ok=ok, seconds=3.0, counts={"succeeded": 1}, failed=() if ok else ("bronze.a",)),
    ]


def logged(folder: Path, events: list[Event], *, age: float = 0.0) -> Path:
    log = JsonLog(folder)
    for event in events:
        log.emit(event)
    log.close()
    path = folder / f"{events[0].run_id}.jsonl"
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_a_finished_run_tells_its_stages_in_planned_order(tmp_path: Path) -> None:
    logged(tmp_path, story("r1"))
    run = read_run(tmp_path, "r1")
    assert (run.project, run.state, run.started_at, run.finished_at, run.seconds) == ("bank", "succeeded", AT, AT, 3.0)
    assert [(stage.stage, stage.state) for stage in run.stages] == [("bronze.a", "succeeded"), ("silver.b", "unchanged")]
    assert (run.stages[0].rows, run.stages[0].notes, run.stages[0].started_at) == (Rows(read=5), ("late",), AT)


def test_runs_come_latest_first_and_the_latest_is_the_default(tmp_path: Path) -> None:
    logged(tmp_path, story("r2"), age=100)
    logged(tmp_path, story("r1"), age=50)
    logged(tmp_path, story("r3", ok=False), age=200)
    assert [run.run_id for run in list_runs(tmp_path)] == ["r1", "r2", "r3"]
    assert read_run(tmp_path).run_id == "r1"


def test_a_run_without_an_end_is_running_while_it_speaks_and_interrupted_after(tmp_path: Path) -> None:
    path = logged(tmp_path, story("r1")[:2], age=60)
    run = read_run(tmp_path)
    assert (run.state, [stage.state for stage in run.stages]) == ("running", ["running", "waiting"])
    os.utime(path, (time.time() - 100, time.time() - 100))
    run = read_run(tmp_path)
    assert (run.state, [stage.state for stage in run.stages]) == ("interrupted", ["interrupted", "waiting"])
    assert read_run(tmp_path, silence=200).state == "running"


def test_a_run_whose_process_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    begun, *others = story("r1")[:2]
    logged(tmp_path, [replace(begun, pid=process.pid, host=socket.gethostname()), *others], age=5)
    run = read_run(tmp_path)
    assert (run.state, [stage.state for stage in run.stages]) == ("interrupted", ["interrupted", "waiting"])
    assert (run.note or "").startswith("no sign of life since 20")
    logged(tmp_path, [replace(begun, run_id="r2", pid=os.getpid(), host=socket.gethostname())], age=5)
    assert read_run(tmp_path, "r2").state == "running"
    logged(tmp_path, [replace(begun, run_id="r3", pid=process.pid, host="elsewhere")], age=5)
    assert read_run(tmp_path, "r3").state == "running"


def test_a_run_that_a_signal_ended_says_so(tmp_path: Path) -> None:
    begun, started, *_ = story("r1")
    stopped = StageFinished("r1", AT, "bronze.a", "interrupted", 1.0)
    logged(tmp_path, [begun, started, stopped, RunFinished("r1", AT, ok=False, seconds=1.0, counts={}, interrupted="SIGTERM")])
    run = read_run(tmp_path)
    assert (run.state, run.note, run.stages[0].state) == ("interrupted", "by SIGTERM", "interrupted")


def test_a_run_whose_heart_beats_slowly_is_given_more_time(tmp_path: Path) -> None:
    beats: list[Event] = [Heartbeat("r1", AT + timedelta(minutes=5 * number), {"bronze.a": 1.0}) for number in range(3)]
    logged(tmp_path, [*story("r1")[:2], *beats], age=600)
    assert read_run(tmp_path).state == "running"


def test_failures_of_all_runs_are_listed(tmp_path: Path) -> None:
    logged(tmp_path, story("r1", ok=False), age=10)
    logged(tmp_path, story("r2"))
    assert failures(tmp_path) == [Failure("r1", "bronze.a", AT, "bad")]


def test_lines_nobody_can_read_are_counted_and_passed_over(tmp_path: Path) -> None:
    path = logged(tmp_path, story("r1"))
    first, *others = path.read_bytes().splitlines(keepends=True)
    odd = [
        b"\xff\xfe\x00 garbage\n",
        b"[1, 2]\n",
        b'{"event": 7}\n',
        b'{"event": "StageFinished"}\n',
        b"\n",
        b"[" * 100_000 + b"\n",
        b'{"event": "Comet"}\n',
    ]
    path.write_bytes(b"".join([first, *odd, *others]))
    run = read_run(tmp_path)
    assert (run.state, run.corrupt, len(run.stages)) == ("succeeded", 6, 2)
    assert len(list(follow(tmp_path))) == 7


def test_a_torn_last_line_is_neither_read_nor_blamed(tmp_path: Path) -> None:
    path = logged(tmp_path, story("r1"))
    path.write_bytes(path.read_bytes()[:-20])
    run = read_run(tmp_path)
    assert (run.state, run.corrupt) == ("running", 0)


def test_no_log_is_a_clear_answer(tmp_path: Path) -> None:
    assert (list_runs(tmp_path / "none"), failures(tmp_path / "none")) == ([], [])
    with pytest.raises(ConfigError, match="no run has left a log"):
        read_run(tmp_path / "none")
    with pytest.raises(ConfigError, match="no log of run r9"):
        read_run(tmp_path, "r9")


def test_following_yields_each_record_as_it_is_written_even_in_pieces(tmp_path: Path) -> None:
    lines = [json.dumps(as_record(event)) + "\n" for event in story("r1")]

    def write() -> None:
        time.sleep(0.05)
        with (tmp_path / "r1.jsonl").open("w", encoding="utf-8") as log:
            for line in lines:
                for piece in (line[:10], line[10:]):
                    log.write(piece)
                    log.flush()
                    time.sleep(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    followed = [record["event"] for record in follow(tmp_path, poll=0.01)]
    writer.join()
    assert followed == ["RunStarted", "StageStarted", "StageFinished", "StageFinished", "RunFinished"]


def test_following_a_run_that_was_killed_ends(tmp_path: Path) -> None:
    logged(tmp_path, story("r1")[:2], age=100)
    assert [record["event"] for record in follow(tmp_path)] == ["RunStarted", "StageStarted"]
