"""The state store on real PostgreSQL and MariaDB: the same rows, the same times, the same refusals as on SQLite."""

import multiprocessing
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url, text

from karat.config.setting import SecretFromEnv
from karat.config.settings import StateSettings
from karat.errors import ConfigError, SourceUnavailable
from karat.state.address import driver_url, state_url
from karat.state.migrations import v0001_runs
from karat.state.reader import StateReader
from karat.state.schema import METADATA, STATE
from karat.state.writer import StateWriter
from karat.telemetry.events import Heartbeat, Rows, RunFinished, RunStarted, StageFinished, StageStarted

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LATER = AT + timedelta(microseconds=1)


@pytest.fixture(params=["postgresql_url", "mariadb_url", "mysql"])
def url(request: pytest.FixtureRequest) -> Iterator[URL]:
    """An empty store; `mysql` is the MySQL dialect, which SingleStore is spoken to with, on the MariaDB server."""
    written: str = request.getfixturevalue("mariadb_url" if request.param == "mysql" else request.param)
    address = make_url(written)
    yield address.set(drivername="mysql") if request.param == "mysql" else address
    engine = administrator(address)
    METADATA.drop_all(engine)
    engine.dispose()


def administrator(url: URL) -> Engine:
    return create_engine(driver_url(url))


def open_and_record(url: URL, number: int) -> None:
    writer = StateWriter.open(url)
    writer.record(RunStarted(f"r{number}", AT, "bank", (), "abc"))
    writer.close()


def test_a_whole_run_is_written_and_read_back(url: URL) -> None:
    rows = Rows(1, 2, 3, 4, 5, 6, 7, 2**40)
    error = "größer 🦆\x00 " + "x" * 200_000
    writer = StateWriter.open(url)
    for event in (
        RunStarted("r1", AT, "bank", ("ingest.a", "ingest.A"), "abc"),
        StageStarted("r1", AT, "ingest.a"),
        Heartbeat("r1", LATER, {"ingest.a": 1.0}),
        StageFinished("r1", LATER, "ingest.a", "succeeded", 0.1 + 0.2, rows, watermark="Ä 10", notes=("🦆",)),
        StageFinished("r1", LATER, "ingest.A", "failed", 1.0, error=error, watermark="99"),
        RunFinished("r1", LATER, ok=False, seconds=1.5, counts={"succeeded": 1, "failed": 1}, failed=("ingest.A",)),
        StageFinished("r2", LATER, "ingest.a", "unchanged", 0.0, watermark="Ä 11"),
    ):
        writer.record(event)
    writer.close()
    reader = StateReader.open(url)
    (run,) = reader.runs()
    assert (run.started_at, run.finished_at, run.ok, run.counts) == (AT, LATER, False, {"succeeded": 1, "failed": 1})
    stages = reader.last_stages()
    assert (stages["ingest.a"].status, stages["ingest.a"].started_at) == ("unchanged", LATER)
    assert (stages["ingest.A"].status, stages["ingest.A"].error) == ("failed", error.replace("\x00", "\ufffd"))
    assert {name: mark.position for name, mark in reader.watermarks().items()} == {"ingest.a": "Ä 11"}
    reader.close()
    engine = administrator(url)
    with engine.connect() as connection:
        kept = connection.execute(
            text("SELECT seconds, rows_deleted, notes FROM karat_stages WHERE run_id = 'r1' AND status = 'succeeded'")
        )
        assert kept.one() == (0.1 + 0.2, 2**40, '["\\ud83e\\udd86"]')
        assert connection.scalar(text("SELECT count(*) FROM karat_events")) == 7
    engine.dispose()


def test_an_empty_database_reads_as_empty_and_stays_so(url: URL) -> None:
    reader = StateReader.open(url)
    assert (reader.runs(), reader.last_stages(), reader.watermarks()) == ([], {}, {})
    reader.close()
    engine = administrator(url)
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'karat%'")) == 0
    engine.dispose()


def test_a_store_of_version_1_is_upgraded_and_keeps_its_rows(url: URL) -> None:
    engine = administrator(url)
    with engine.begin() as connection:
        STATE.create(connection)
        v0001_runs.upgrade(connection)
        connection.execute(STATE.insert().values(version=1, upgraded_at=AT))
        at = AT.isoformat(timespec="microseconds")
        old = "INSERT INTO karat_runs (run_id, project, started_at, config_hash, counts) VALUES ('old', 'bank', :at, 'abc', '{}')"
        connection.execute(text(old), {"at": at})
    engine.dispose()
    reader = StateReader.open(url)
    assert (len(reader.runs()), reader.watermarks()) == (1, {})
    open_and_record(url, 1)
    assert {run.run_id: run.started_at for run in reader.runs()} == {"old": AT, "r1": AT}
    reader.close()


def test_processes_that_open_a_new_store_at_once_all_succeed(url: URL) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=open_and_record, args=(url, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    reader = StateReader.open(url)
    assert len(reader.runs()) == 4
    reader.close()


def test_a_store_from_a_newer_karat_is_refused(url: URL) -> None:
    StateWriter.open(url).close()
    engine = administrator(url)
    with engine.begin() as connection:
        connection.execute(STATE.insert().values(version=99, upgraded_at=AT))
    engine.dispose()
    with pytest.raises(ConfigError, match="version 99"):
        StateWriter.open(url)


def test_the_password_is_a_secret_and_a_wrong_one_is_not_repeated(url: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = url.render_as_string(hide_password=False).replace(f":{url.password}@", "@")
    settings = StateSettings(url=bare, password=SecretFromEnv(env="STATE_PASSWORD"))
    monkeypatch.setenv("STATE_PASSWORD", str(url.password))
    StateWriter.open(state_url(settings, tmp_path)).close()
    monkeypatch.setenv("STATE_PASSWORD", "wr0ng-s3cr3t")
    with pytest.raises(SourceUnavailable) as refused:
        StateWriter.open(state_url(settings, tmp_path))
    assert "wr0ng-s3cr3t" not in f"{refused.value} {refused.value!r} {refused.value.evidence}"
