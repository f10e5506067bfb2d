"""Tables side by side do not meet; another writer costs a second computation, and an unknown outcome is read from the log."""

from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaMergeBuilder
from pyspark.sql import SparkSession

from karat import Project
from karat.execute import curate as curating
from karat.execute.tables import Commit, Written
from tests.support.projects import commits, curated, held, land, project_folder, versions

HEADING = "id:string | source_system:string | name:string | ingestion_ts:timestamp"


def test_a_commit_whose_answer_was_lost_is_found_in_the_log_and_not_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people")])
    land(
        folder, "bronze.people", f"{HEADING}\n1|CRM|Ann|2026-01-01 10:00:00\n2|CRM|Bob|2026-01-01 10:00:00\n-|CRM|none|2026-01-01 10:00:00"
    )
    execute: Any = DeltaMergeBuilder.execute
    lost = []

    def answer_is_lost(builder: DeltaMergeBuilder) -> None:
        execute(builder).collect()
        lost.append(builder)
        message = "the connection was reset"
        raise ConnectionResetError(message)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaMergeBuilder, "execute", answer_is_lost)
        report = Project.open(folder, spark).run()
    (stage,) = report.stages
    assert report.ok
    assert len(lost) == 3  # quarantine, target, control: each once
    assert (stage.status, stage.rows["inserted"], stage.rows["quarantined"]) == ("succeeded", 2, 1)
    assert (versions(folder, "silver.people"), versions(folder, "silver.people_quarantine")) == (2, 2)
    assert held(folder, "silver.people", "id", "name") == [("1", "Ann"), ("2", "Bob")]
    assert held(folder, "silver.curation_audit_log", "status", "records_inserted") == [("succeeded", 2)]


def test_a_commit_that_never_happened_fails_the_table_and_is_done_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people", scd_type=1)])
    land(folder, "bronze.people", f"{HEADING}\n1|CRM|Ann|2026-01-01 10:00:00")
    project = Project.open(folder, spark)

    def fails(_: DeltaMergeBuilder) -> None:
        message = "the connection was reset"
        raise ConnectionResetError(message)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaMergeBuilder, "execute", fails)
        report = project.run()
    assert (report.ok, report.stages[0].status) == (False, "failed")
    assert held(folder, "silver.people", "id") == []
    assert project.run().stages[0].rows["inserted"] == 1
    assert held(folder, "silver.people", "id", "name") == [("1", "Ann")]


def test_a_writer_that_comes_between_reading_and_writing_makes_the_batch_be_computed_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer is another run over the same batch: it wins, and ours finds nothing left to do but what came later."""
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people")])
    land(folder, "bronze.people", f"{HEADING}\n1|CRM|Ann|2026-01-01 10:00:00\n2|CRM|Bob|2026-01-01 10:00:00")
    ours, other = Project.open(folder, spark), Project.open(folder, spark)
    original = curating.DeltaTables.merge
    met: list[str] = []

    def interrupted(tables: curating.DeltaTables, merge: Any, into: Any, commit: Commit) -> Written:  # noqa: ANN401
        if commit.stage == "silver.people" and not met:
            met.append("the other run")
            assert other.run().ok
            land(folder, "bronze.people", f"{HEADING}\n1|CRM|Anna|2026-01-01 12:00:00")
        return original(tables, merge, into, commit)

    monkeypatch.setattr(curating.DeltaTables, "merge", interrupted)
    report = ours.run()
    (stage,) = report.stages
    assert report.ok, stage.error
    assert (stage.status, stage.rows["inserted"], stage.rows["updated"]) == ("succeeded", 1, 1)
    assert held(folder, "silver.people", "id", "name", "effective_start_date", "is_current") == [
        ("1", "Ann", "2026-01-01 10:00:00", False),
        ("1", "Anna", "2026-01-01 12:00:00", True),
        ("2", "Bob", "2026-01-01 10:00:00", True),
    ]
    assert [commit["sequence"] for commit in commits(folder, "silver.people")] == [2, 1, 0]
    assert len({commit["run_id"] for commit in commits(folder, "silver.people")}) == 2


def test_tables_side_by_side_see_their_own_rows_under_their_own_job_groups(spark: SparkSession, tmp_path: Path) -> None:
    parts = ["a", "b", "c", "d"]
    folder = project_folder(
        tmp_path,
        [curated(f"silver.{part}", f"bronze.{part}", scd_type=1, transformation_sql_path="sql/same.sql") for part in parts],
        karat={"runtime": {"max_parallel_tables": 4}},
        sql={"same.sql": "SELECT *, (SELECT max(name) FROM source_incremental) AS seen FROM source_incremental"},
    )
    for part in parts:
        land(folder, f"bronze.{part}", f"{HEADING}\n1|CRM|only {part}|2026-01-01 10:00:00")
    report = Project.open(folder, spark).run()
    assert report.ok, [stage.error for stage in report.stages]
    tracker = spark.sparkContext.statusTracker()
    for part in parts:
        assert held(folder, f"silver.{part}", "name", "seen") == [(f"only {part}", f"only {part}")]
        assert tracker.getJobIdsForGroup(f"silver.{part}")
    assert not spark.catalog.tableExists("source_incremental")
