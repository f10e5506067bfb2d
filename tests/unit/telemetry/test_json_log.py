"""One file per run, one line per event, the newest logs kept."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karat.telemetry.events import Event, StageFinished, StageStarted, as_record
from karat.telemetry.log import JsonLog, log_path

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_each_event_is_a_line_on_disk_before_the_next(tmp_path: Path) -> None:
    log = JsonLog(tmp_path / "logs")
    failed = StageFinished("r1", AT, "bronze.a", "failed", 1.0, error="zwei\nZeilen, größer \udc80")
    events: list[Event] = [StageStarted("r1", AT, "bronze.a"), failed]
    for count, event in enumerate(events, start=1):
        log.emit(event)
        lines = (tmp_path / "logs" / "r1.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(lines) == count
        assert json.loads(lines[-1]) == json.loads(json.dumps(as_record(event)))
    log.close()


def test_a_log_without_events_makes_nothing(tmp_path: Path) -> None:
    JsonLog(tmp_path / "logs").close()
    assert list(tmp_path.iterdir()) == []


def test_a_second_run_gets_its_own_file(tmp_path: Path) -> None:
    log = JsonLog(tmp_path)
    for run_id in ("r1", "r2", "r1"):
        log.emit(StageStarted(run_id, AT, "bronze.a"))
    log.close()
    assert {path.name: len(path.read_text().splitlines()) for path in tmp_path.iterdir()} == {"r1.jsonl": 2, "r2.jsonl": 1}


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("2026-01-02T03:04", "2026-01-02T03_04.jsonl"),
        ("../../etc/passwd", "_.._etc_passwd.jsonl"),
        ("..", "run.jsonl"),
        ("ü/\x00", "___.jsonl"),
    ],
)
def test_a_file_name_holds_only_safe_letters_and_stays_in_its_folder(run_id: str, name: str, tmp_path: Path) -> None:
    path = log_path(tmp_path, run_id)
    assert (path.name, path.parent) == (name, tmp_path)


def test_only_the_newest_logs_are_kept(tmp_path: Path) -> None:
    for age in range(5):
        path = tmp_path / f"old{age}.jsonl"
        path.touch()
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "README").touch()
    log = JsonLog(tmp_path, kept=3)
    log.emit(StageStarted("new", AT, "bronze.a"))
    log.close()
    assert {path.name for path in tmp_path.iterdir()} == {"new.jsonl", "old0.jsonl", "old1.jsonl", "README"}
