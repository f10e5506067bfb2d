"""Stores of every version open; newer ones are refused; two who upgrade at once both succeed."""

import multiprocessing
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import UniqueConstraint, create_engine, inspect

from karat.errors import ConfigError
from karat.state.reader import StateReader
from karat.state.schema import METADATA
from karat.state.upgrade import STATE_VERSION
from karat.state.writer import StateWriter
from karat.telemetry.events import Rows, RunStarted, StageFinished

AT = datetime(2026, 1, 2, tzinfo=UTC)


def stored_v1(folder: Path) -> str:
    file = folder / "state.db"
    store = sqlite3.connect(file)
    store.executescript((Path(__file__).parent / "state_v1.sql").read_text(encoding="utf-8"))
    store.close()
    return f"sqlite:///{file}"


def versions(url: str) -> list[int]:
    store = sqlite3.connect(url.removeprefix("sqlite:///"))
    found = [version for (version,) in store.execute("SELECT version FROM karat_state ORDER BY version")]
    store.close()
    return found


def open_and_record(url: str, number: int) -> None:
    writer = StateWriter.open(url)
    writer.record(RunStarted(f"r{number}", AT, "bank", (), "abc"))
    writer.close()


def test_a_store_of_version_1_is_upgraded_and_keeps_its_rows(tmp_path: Path) -> None:
    url = stored_v1(tmp_path)
    writer = StateWriter.open(url)
    writer.record(StageFinished("new", AT, "ingest.a", "succeeded", 1.0, watermark="7"))
    writer.close()
    assert versions(url) == [1, 2, 3]
    reader = StateReader.open(url)
    assert [(run.run_id, run.ok, run.counts) for run in reader.runs()] == [
        ("20250302T090000-b", False, {"succeeded": 1, "failed": 1}),
        ("20250301T090000-a", True, {"succeeded": 2}),
    ]
    claims = reader.last_stages()["silver.claims"]
    assert (claims.status, claims.error, claims.notes) == ("failed", "[CONTRACT_BREACH] id_missing=3", ("look twice",))
    assert claims.rows == Rows(read=120, landed=117, quarantined=3)
    assert list(reader.watermarks()) == ["ingest.a"]


def test_a_reader_upgrades_nothing(tmp_path: Path) -> None:
    url = stored_v1(tmp_path)
    before = (tmp_path / "state.db").read_bytes()
    reader = StateReader.open(url)
    assert (len(reader.runs()), len(reader.last_stages()), reader.watermarks()) == (2, 2, {})
    assert (tmp_path / "state.db").read_bytes() == before


def test_a_store_from_a_newer_karat_is_refused_with_a_way_out(tmp_path: Path) -> None:
    url = stored_v1(tmp_path)
    store = sqlite3.connect(tmp_path / "state.db")
    store.execute("INSERT INTO karat_state VALUES (99, '2030-01-01T00:00:00.000000+00:00')")
    store.commit()
    store.close()
    for opened in (lambda: StateWriter.open(url), lambda: StateReader.open(url).runs()):
        with pytest.raises(ConfigError, match="version 99") as refused:
            opened()
        assert "state.url" in refused.value.remedy


def test_a_second_opening_upgrades_nothing_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    for number in range(2):
        open_and_record(url, number)
    assert versions(url) == list(range(1, STATE_VERSION + 1))
    assert len(StateReader.open(url).runs()) == 2


def test_processes_that_open_a_new_store_at_once_all_succeed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=open_and_record, args=(url, number)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert (versions(url), len(StateReader.open(url).runs())) == ([1, 2, 3], 4)


def test_the_upgrades_end_at_the_tables_the_code_uses(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    StateWriter.open(url).close()
    engine = create_engine(url)
    store = inspect(engine)
    found = {name: {column["name"]: column["nullable"] for column in store.get_columns(name)} for name in store.get_table_names()}
    keys = {name: store.get_pk_constraint(name)["constrained_columns"] for name in found}
    unique = {name: [set(key["column_names"]) for key in store.get_unique_constraints(name)] for name in found}
    engine.dispose()
    tables = METADATA.tables
    assert found == {name: {column.name: column.nullable for column in table.columns} for name, table in tables.items()}
    assert keys == {name: [column.name for column in table.primary_key] for name, table in tables.items()}
    assert unique == {
        name: [{column.name for column in key.columns} for key in table.constraints if isinstance(key, UniqueConstraint)]
        for name, table in tables.items()
    }
