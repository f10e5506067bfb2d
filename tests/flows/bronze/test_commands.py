"""The commands about evidence, as a person types them; those that need no JVM start none."""

import json
import os
import shutil
import signal
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from karat import Project
from karat.cli.app import app
from karat.project import Report
from karat.stream import stream
from tests.support.entities import CUSTOMER, drop, entity_project, held
from tests.support.projects import lake_path, versions

LAZY = {**CUSTOMER, "sightings": "lazy"}
DAY_1 = [
    {"customer_id": "C1", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "status": "Active"},
    {"customer_id": "C1", "op": "d", "source_event_ts": "2026-03-09"},
    {"customer_id": None, "op": "c", "source_event_ts": "2026-03-01"},
]
DAY_2 = [{"customer_id": "C1", "op": "u", "source_event_ts": "2026-03-05", "status": "Late"}]


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = entity_project(tmp_path_factory.mktemp("commands"), LAZY)
    for day, rows in enumerate((DAY_1, DAY_2, DAY_2), start=1):
        drop(folder, f"crm/{day}.ndjson", rows)
        assert Project.open(folder, spark=spark).run(now=datetime(2026, 4, day, tzinfo=UTC)).ok
    return folder


def _said(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def _json(*arguments: str, code: int = 0) -> Any:  # noqa: ANN401
    return json.loads(_said(*arguments, "--json", code=code))


def test_history_tells_statements_and_versions_and_marks_the_late_one(folder: Path) -> None:
    told = _json("history", "customer", "--key", "C1", "-p", str(folder))
    assert [row["status"] for row in told["versions"]] == ["Active", "Late", "Active"]
    assert [(row["source_event_ts"][:10], row["late"]) for row in told["statements"]] == [
        ("2026-03-01", False),
        ("2026-03-05", True),
        ("2026-03-05", False),
        ("2026-03-09", False),
    ], "the statement came late; its copy tells nothing new"
    picture = _said("history", "customer", "--key", "C1", "-p", str(folder))
    assert "entity" in picture
    assert "late" in picture
    assert "there is no evidence" in _said("history", "customer", "--key", "nobody", "-p", str(folder))


def test_an_unknown_entity_is_the_users_to_mend(folder: Path) -> None:
    assert "the entities are: customer" in _said("history", "account", "--key", "1", "-p", str(folder), code=2)


def test_quarantine_is_listed_and_shown_without_a_session(folder: Path) -> None:
    listed = _json("quarantine", "list", "-p", str(folder))
    assert listed == [{"entity": "customer", "feed": "crm", "rule": "null key", "rows": 1, "replayed": False}]
    shown = _json("quarantine", "show", "customer", "-p", str(folder))
    assert json.loads(shown[0]["original"]) == DAY_1[2]


def test_check_prints_the_grade_of_every_feed(folder: Path) -> None:
    assert "customer.crm: DEFENSIBLE" in _said("check", "-p", str(folder))


def test_lazy_sightings_are_left_for_maintenance(folder: Path, spark: SparkSession) -> None:
    seen = held(folder, "bronze.customer", "status", "seen_count", where="status = 'Late'")
    assert seen == [("Late", 1)]
    project = Project.open(folder, spark=spark)
    planned = project.maintain("dry-run")
    assert any("lazy sightings" in action for chore in planned for action in chore.actions)
    assert held(folder, "bronze.customer", "status", "seen_count", where="status = 'Late'") == seen
    assert all(chore.done for chore in project.maintain("apply"))
    assert held(folder, "bronze.customer", "status", "seen_count", where="status = 'Late'") == [("Late", 2)]
    assert project.verify("customer").equal
    assert project.run().stages[0].status == "unchanged"


def test_maintenance_removes_staged_rows_that_a_killed_process_left(folder: Path, spark: SparkSession) -> None:
    project = Project.open(folder, spark=spark)
    staging = folder / "lake" / "_staging"
    for name, hours in (("left", 25), ("running", 1)):
        rows = staging / name / "staged"
        spark.range(3).coalesce(1).write.parquet(str(rows))
        for file in rows.glob("*.parquet"):
            os.utime(file, (time.time() - hours * 3600,) * 2)
    planned = project.maintain("dry-run")[-1]
    assert (planned.table, planned.files, planned.done) == ("_staging", 1, False)
    assert project.maintain("apply")[-1].actions == ("remove 1 set of staged rows that ended processes left",)
    assert [path.name for path in staging.iterdir()] == ["running"]
    shutil.rmtree(staging / "running")


def test_verify_names_what_was_tampered_with_and_rebuilding_mends_it(folder: Path, spark: SparkSession) -> None:
    spark.sql(f"UPDATE delta.`{lake_path(folder, 'bronze.customer')}` SET status = 'Forged' WHERE status = 'Late'")  # noqa: S608
    project = Project.open(folder, spark=spark)
    found = project.verify("customer")
    assert not found.equal
    assert found.differences[0]["columns"]["status"] == {"held": "Forged", "evidence": "Late"}
    project.maintain("rebuild-from-raw")
    assert project.verify("customer").equal


def test_evidence_refuses_to_be_changed(folder: Path, spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"(?i)append"):
        spark.sql(f"DELETE FROM delta.`{lake_path(folder, 'bronze.customer_assertions')}`")  # noqa: S608


def test_a_stream_runs_what_arrives_and_ends_after_the_running_batch(folder: Path, spark: SparkSession) -> None:
    project = Project.open(folder, spark=spark)
    before = versions(folder, "bronze.customer_assertions")

    def run() -> Report:
        report = project.run()
        if versions(folder, "bronze.customer_assertions") > before:
            os.kill(os.getpid(), signal.SIGTERM)
        return report

    threading.Timer(2, drop, (folder, "crm/9.ndjson", [{**DAY_2[0], "source_event_ts": "2026-03-10", "op": "c"}])).start()
    ended = stream(project, [], 0.5, run)
    assert ended.failed == 0
    assert versions(folder, "bronze.customer_assertions") == before + 1
    assert held(folder, "bronze.customer", "op", where="is_current") == [("c",)]
