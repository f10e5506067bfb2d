"""Tables side by side do not meet; another writer costs a second computation, and an unknown outcome is read from the log."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaMergeBuilder
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from karat import Project
from karat.config.names import TableName
from karat.curation import load as curating
from karat.state.commits import Commit, Written
from tests.support.projects import commits, curated, held, land, project_folder, versions

HEADING = "id:string | source_system:string | name:string | ingestion_ts:timestamp"


class Connection:
    """Loses the answer to every write, after the write or instead of it."""

    def __init__(self, patched: pytest.MonkeyPatch, *, after: bool) -> None:
        self.lost: list[str] = []
        for kind, name in ((DeltaMergeBuilder, "execute"), (DataFrameWriter, "save")):
            patched.setattr(kind, name, self._broken(getattr(kind, name), name, after=after))

    def _broken(self, act: Callable[..., Any], name: str, *, after: bool) -> Callable[..., None]:
        def broken(*arguments: object) -> None:
            if name == "save" and not after:
                return act(*arguments)  # control and audit are written: only the data is in question
            answer = act(*arguments) if after else None
            if answer is not None:
                answer.collect()
            self.lost.append(name)
            message = "the connection was reset"
            raise ConnectionResetError(message)

        return broken


def test_a_commit_whose_answer_was_lost_is_found_in_the_log_and_one_that_never_happened_is_done_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people")])
    land(
        folder, "bronze.people", f"{HEADING}\n1|CRM|Ann|2026-01-01 10:00:00\n2|CRM|Bob|2026-01-01 10:00:00\n-|CRM|none|2026-01-01 10:00:00"
    )
    project = Project.open(folder, spark)

    # every answer to a first load is lost: nothing is repeated
    with monkeypatch.context() as patched:
        connection = Connection(patched, after=True)
        report = project.run()
    (stage,) = report.stages
    assert report.ok, stage.error
    assert connection.lost == ["save"] * 4  # quarantine, target, audit, control: each once
    assert (stage.status, stage.rows["inserted"], stage.rows["quarantined"]) == ("succeeded", 2, 1)
    assert (versions(folder, "silver.people"), versions(folder, "silver.people_quarantine")) == (2, 2)
    assert held(folder, "silver.people", "id", "name") == [("1", "Ann"), ("2", "Bob")]
    assert held(folder, "silver.curation_audit_log", "status", "records_inserted") == [("succeeded", 2)]

    # a change that is never written fails its table
    land(folder, "bronze.people", f"{HEADING}\n1|CRM|Anna|2026-01-02 10:00:00")
    with monkeypatch.context() as patched:
        connection = Connection(patched, after=False)
        report = project.run()
    assert (report.ok, report.stages[0].status, connection.lost) == (False, "failed", ["execute"])
    assert versions(folder, "silver.people") == 2

    # and is written by the next run, though its answer is lost as well
    with monkeypatch.context() as patched:
        connection = Connection(patched, after=True)
        report = project.run()
    (stage,) = report.stages
    assert report.ok, stage.error
    assert connection.lost == ["execute", "save", "save"]
    assert (stage.status, stage.rows["inserted"], stage.rows["updated"]) == ("succeeded", 1, 1)
    assert versions(folder, "silver.people") == 3
    assert held(folder, "silver.people", "id", "name") == [("1", "Ann"), ("1", "Anna"), ("2", "Bob")]


def test_a_writer_that_comes_between_reading_and_writing_makes_the_batch_be_computed_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writer is another run over the same batch: it wins, and ours finds nothing left to do but what came later."""
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people")])
    land(folder, "bronze.people", f"{HEADING}\n1|CRM|Ann|2026-01-01 10:00:00\n2|CRM|Bob|2026-01-01 10:00:00")
    ours, other = Project.open(folder, spark), Project.open(folder, spark)
    original = curating.DeltaTables.append
    met: list[str] = []

    def interrupted(tables: curating.DeltaTables, rows: DataFrame, to: TableName, commit: Commit) -> Written:
        if commit.stage == "silver.people" and not met:
            met.append("the other run")
            assert other.run().ok
            land(folder, "bronze.people", f"{HEADING}\n1|CRM|Anna|2026-01-01 12:00:00")
        return original(tables, rows, to, commit)

    monkeypatch.setattr(curating.DeltaTables, "append", interrupted)
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
        assert tracker.getJobIdsForGroup(f"{report.run_id}/silver.{part}")
    assert not spark.catalog.tableExists("source_incremental")
