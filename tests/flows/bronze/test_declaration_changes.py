"""What may change under an entity between two runs: its key may not; its attributes and the place of its project may."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.config.names import TableName
from tests.support.entities import CUSTOMER, drop, entity_project, held
from tests.support.killing import killed_before
from tests.support.processes import karat, succeeds
from tests.support.projects import lake_path, versions
from tests.support.tables import table_rows

ANN = {"customer_id": "a", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "address": "Rome", "status": "Active"}
BOB = {**ANN, "customer_id": "b", "name": "Bob"}
LATER = {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-05", "status": "Closed"}
LATE = {"customer_id": "b", "op": "u", "source_event_ts": "2026-03-03", "address": "Bern"}
TABLES = ("bronze.customer_assertions", "bronze.customer")


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one batch on record."""
    folder = entity_project(tmp_path_factory.mktemp("loaded") / "project", CUSTOMER)
    drop(folder, "crm/1.ndjson", [ANN, BOB])
    assert Project.open(folder, spark).run().ok
    return folder


def _copy(loaded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(loaded, tmp_path / "elsewhere" / "project"))


@pytest.mark.parametrize("key", [["customer_id", "name"], ["name"]])
def test_another_key_is_refused_with_the_way_out(loaded: Path, spark: SparkSession, tmp_path: Path, key: list[str]) -> None:
    folder = _copy(loaded, tmp_path)
    attributes = {name: kind for name, kind in {"customer_id": "string", **CUSTOMER["attributes"]}.items() if name not in key}
    entity_project(folder, {**CUSTOMER, "key": key, "attributes": attributes})
    drop(folder, "crm/2.ndjson", [LATER])
    before = {name: versions(folder, name) for name in TABLES}
    report = Project.open(folder, spark).run()
    assert not report.ok
    (stage,) = report.stages
    assert (stage.status, stage.rows.landed) == ("failed", 0)
    assert "declare the key on record" in str(stage.error)
    assert {name: versions(folder, name) for name in TABLES} == before
    entity_project(folder, CUSTOMER)
    assert Project.open(folder, spark).run().ok, "with the key on record it goes on"
    assert Project.open(folder, spark).verify("customer").equal


def test_the_command_refuses_another_key_too(loaded: Path, tmp_path: Path) -> None:
    folder = _copy(loaded, tmp_path)
    entity_project(folder, {**CUSTOMER, "key": ["customer_id", "name"], "attributes": {"status": "string"}})
    drop(folder, "crm/2.ndjson", [LATER])
    with karat(folder, "run") as started:
        assert started.ended() in {1, 2}
        assert "declare the key on record" in " ".join(started.said().split())


def test_a_project_that_was_moved_reads_only_what_is_new(loaded: Path, spark: SparkSession, tmp_path: Path) -> None:
    folder = _copy(loaded, tmp_path)
    project = Project.open(folder, spark)
    assert project.run().stages[0].status == "unchanged"
    drop(folder, "crm/2.ndjson", [LATER, LATE])
    moved_again = Path(shutil.move(folder, tmp_path / "moved"))
    (stage,) = Project.open(moved_again, spark).run().stages
    assert (stage.status, stage.rows.read, stage.rows.landed) == ("succeeded", 2, 2)
    assert len(table_rows(moved_again, "bronze.customer_assertions")) == 4
    assert Project.open(moved_again, spark).verify("customer").equal


def test_an_attribute_nobody_declares_any_more_stays_on_record(loaded: Path, spark: SparkSession, tmp_path: Path) -> None:
    folder = _copy(loaded, tmp_path)
    attributes = {name: kind for name, kind in CUSTOMER["attributes"].items() if name != "address"}
    entity_project(folder, {**CUSTOMER, "attributes": attributes})
    drop(folder, "crm/2.ndjson", [LATER, LATE])
    assert Project.open(folder, spark).run().ok
    shown = held(folder, "bronze.customer", "bk", "address", "status", where="is_current")
    assert shown == [("a", "Rome", "Closed"), ("b", "Rome", "Active")]
    assert Project.open(folder, spark).verify("customer").equal
    entity_project(folder, CUSTOMER)
    drop(folder, "crm/3.ndjson", [{**LATE, "source_event_ts": "2026-03-07", "address": "Oslo"}])
    assert Project.open(folder, spark).run().ok
    assert held(folder, "bronze.customer", "address", where="bk = 'b' AND is_current") == [("Oslo",)]
    assert Project.open(folder, spark).verify("customer").equal


def test_a_timeline_left_behind_catches_up_although_old_files_are_gone(loaded: Path, spark: SparkSession, tmp_path: Path) -> None:
    folder = _copy(loaded, tmp_path)
    drop(folder, "crm/2.ndjson", [LATER, LATE])
    killed_before(2, folder)  # between the evidence and the timeline
    assert [versions(folder, name) - versions(loaded, name) for name in TABLES] == [1, 0]
    _forget(folder, spark)
    drop(folder, "crm/3.ndjson", [{**LATE, "source_event_ts": "2026-03-07", "address": "Oslo"}])
    succeeds(folder, "run")
    assert len(table_rows(folder, "bronze.customer_assertions")) == 5
    addresses = held(folder, "bronze.customer", "effective_from", "address", where="bk = 'b'")
    assert [(at.day, address) for at, address in addresses] == [(1, "Rome"), (3, "Bern"), (7, "Oslo")]
    found = Project.open(folder, spark).verify("customer")
    assert found.equal, found.differences


def _forget(folder: Path, spark: SparkSession) -> None:
    """The evidence's old files and changes removed, as retention does after days."""
    path = lake_path(folder, str(TableName("bronze", "customer_assertions")))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    shutil.rmtree(Path(path) / "_change_data", ignore_errors=True)
