"""What the writer keeps, the reader finds; what is not there reads as empty."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from karat.errors import ConfigError, SourceUnavailable
from karat.state.reader import StateReader
from karat.state.writer import StateWriter
from karat.telemetry.events import Event, Heartbeat, Rows, RunFinished, RunStarted, StageFinished, StageStarted

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LATER = AT + timedelta(seconds=7)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'deep' / 'state.db'}"


def record(url: str, *events: Event) -> None:
    writer = StateWriter.open(url)
    for event in events:
        writer.record(event)
    writer.close()


def started(run_id: str = "r1", at: datetime = AT) -> RunStarted:
    return RunStarted(run_id, at, "bank", ("bronze.a",), "abc")


def test_a_run_is_kept_from_its_start_to_its_end(url: str) -> None:
    record(url, started(), RunFinished("r1", LATER, ok=True, seconds=7.25, counts={"succeeded": 1}))
    (run,) = StateReader.open(url).runs()
    assert (run.run_id, run.project, run.config_hash) == ("r1", "bank", "abc")
    assert (run.started_at, run.finished_at, run.seconds, run.ok, run.counts) == (AT, LATER, 7.25, True, {"succeeded": 1})


def test_a_run_that_was_killed_has_no_end(url: str) -> None:
    record(url, started())
    (run,) = StateReader.open(url).runs()
    assert (run.finished_at, run.ok, run.seconds, run.counts) == (None, None, None, {})


def test_runs_come_newest_first_and_no_more_than_asked(url: str) -> None:
    record(url, *(started(f"r{hour}", AT + timedelta(hours=hour)) for hour in (2, 1, 3)))
    assert [run.run_id for run in StateReader.open(url).runs(limit=2)] == ["r3", "r2"]


def test_a_stage_keeps_its_rows_error_and_notes(url: str) -> None:
    rows = Rows(1, 2, 3, 4, 5, 6, 7, 2**40)
    finished = StageFinished("r1", LATER, "bronze.a", "failed", 7.0, rows, error="no\x00 \udc80 luck", notes=("look", "hört"))
    record(url, started(), StageStarted("r1", AT, "bronze.a"), finished)
    stage = StateReader.open(url).last_stages()["bronze.a"]
    assert (stage.status, stage.started_at, stage.finished_at, stage.seconds) == ("failed", AT, LATER, 7.0)
    assert (stage.rows, stage.error, stage.notes) == (rows, "no\ufffd ? luck", ("look", "hört"))


def test_a_stage_at_work_is_running_and_a_skipped_one_needs_no_start(url: str) -> None:
    record(url, StageStarted("r1", AT, "bronze.a"), StageFinished("r1", AT, "silver.b", "skipped", 0.0, error="bronze.a failed"))
    stages = StateReader.open(url).last_stages()
    assert {name: stage.status for name, stage in stages.items()} == {"bronze.a": "running", "silver.b": "skipped"}
    assert stages["silver.b"].started_at == AT


def test_the_last_of_each_stage_is_the_one_that_started_last(url: str) -> None:
    record(
        url,
        StageFinished("r2", LATER, "bronze.a", "unchanged", 1.0),
        StageFinished("r1", AT, "bronze.a", "failed", 1.0),
        StageFinished("r1", AT, "bronze.b", "succeeded", 1.0),
    )
    stages = StateReader.open(url).last_stages()
    assert {name: (stage.run_id, stage.status) for name, stage in stages.items()} == {
        "bronze.a": ("r2", "unchanged"),
        "bronze.b": ("r1", "succeeded"),
    }


def test_a_watermark_moves_only_with_stages_that_ended_well(url: str) -> None:
    record(
        url,
        StageFinished("r1", AT, "ingest.a", "succeeded", 1.0, watermark="10"),
        StageFinished("r2", LATER, "ingest.a", "failed", 1.0, watermark="99"),
        StageFinished("r1", AT, "ingest.b", "succeeded", 1.0, watermark="1"),
        StageFinished("r2", LATER, "ingest.b", "unchanged", 1.0, watermark="2"),
        StageFinished("r2", LATER, "bronze.c", "succeeded", 1.0),
    )
    marks = StateReader.open(url).watermarks()
    assert {name: (mark.position, mark.run_id, mark.updated_at) for name, mark in marks.items()} == {
        "ingest.a": ("10", "r1", AT),
        "ingest.b": ("2", "r2", LATER),
    }


def test_every_event_is_kept_whole_and_a_heartbeat_nowhere_else(url: str, tmp_path: Path) -> None:
    record(url, started(), Heartbeat("r1", LATER, {"bronze.a": 7.0}))
    store = sqlite3.connect(tmp_path / "deep" / "state.db")
    rows = store.execute("SELECT run_id, at, kind, body FROM karat_events ORDER BY id").fetchall()
    store.close()
    assert [row[:3] for row in rows] == [
        ("r1", "2026-01-02T03:04:05.678901+00:00", "RunStarted"),
        ("r1", "2026-01-02T03:04:12.678901+00:00", "Heartbeat"),
    ]
    assert json.loads(rows[1][3]) == {"event": "Heartbeat", "run_id": "r1", "at": LATER.isoformat(), "running": {"bronze.a": 7.0}}
    assert StateReader.open(url).last_stages() == {}


def test_times_come_back_in_utc_whatever_zone_they_came_in(url: str) -> None:
    summer = timezone(timedelta(hours=2))
    record(url, started("zoned", AT.astimezone(summer)), started("naive", LATER.replace(tzinfo=None)))
    found = {run.run_id: run.started_at for run in StateReader.open(url).runs()}
    assert found == {"zoned": AT, "naive": LATER}
    assert {time.utcoffset() for time in found.values()} == {timedelta(0)}


def test_stages_in_threads_lose_no_event(url: str) -> None:
    writer = StateWriter.open(url)
    names = [f"bronze.t{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: writer.record(StageFinished("r1", AT, name, "succeeded", 1.0, watermark=name)), names))
    writer.close()
    assert set(StateReader.open(url).watermarks()) == set(names)


def test_a_missing_store_reads_as_empty_and_is_not_made(url: str, tmp_path: Path) -> None:
    reader = StateReader.open(url)
    assert (reader.runs(), reader.last_stages(), reader.watermarks()) == ([], {}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_file_without_tables_reads_as_empty_and_stays_so(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.touch()
    reader = StateReader.open(f"sqlite:///{file}")
    assert (reader.runs(), reader.last_stages(), reader.watermarks()) == ([], {}, {})
    assert file.stat().st_size == 0


def test_a_reader_sees_a_store_that_was_made_after_it(url: str) -> None:
    reader = StateReader.open(url)
    assert reader.runs() == []
    record(url, started())
    assert [run.run_id for run in reader.runs()] == ["r1"]
    reader.close()


def test_a_reader_finds_a_store_whose_path_has_odd_letters(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/50% größe #1/state.db"
    record(url, started())
    assert len(StateReader.open(url).runs()) == 1


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"this is certainly no database, it is only a sentence " * 20)
    for opened in (lambda: StateWriter.open(f"sqlite:///{file}"), lambda: StateReader.open(f"sqlite:///{file}").runs()):
        with pytest.raises(SourceUnavailable, match="not a database"):
            opened()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceUnavailable, match="cannot be made"):
        StateWriter.open(f"sqlite:///{tmp_path}/file/state.db")


def test_a_store_in_memory_is_refused() -> None:
    with pytest.raises(ConfigError, match="names no file"):
        StateWriter.open("sqlite://")
