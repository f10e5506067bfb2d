"""Control and audit tables say what happened, and whatever is lost beside the data is found again in its commits."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report
from karat.runner import run as runner
from tests.support.frames import frame
from tests.support.projects import commits, curated, drop, held, lake_path, land, project_folder, versions

HEADING = "id:string | source_system:string | name:string | ingestion_ts:timestamp"
FIRST = f"""{HEADING}
    1 | CRM | Ann | 2026-01-01 10:00:00
    2 | CRM | Bob | 2026-01-01 12:00:00.000001
"""
SECOND = f"""{HEADING}
    1 | CRM | Anna  | 2026-01-02 00:00:00
    3 | CRM | Cleo  | 2026-01-02 12:00:00
    4 | CRM | late  | 2026-01-01 11:00:00
    5 | CRM | lost  | 2026-01-01 09:00:00
"""
"""A change, a new row, a late row inside the lookback of two hours, and one so late that only a full load finds it."""
OLDER = f"""{HEADING}
    9 | CRM | old news | 2025-12-31 10:00:00
"""
SHORT_NAMES = {"start": "eff_start", "end": "eff_end", "curr": "is_cur"}
TABLES = {
    "silver.plain": {"scd2_columns": SHORT_NAMES, "source_system_col": "source_system", "source_system_column": None},
    "silver.hashed": {"hash": "sha256", "scd_type": 1},
    "silver.by_path": {"source_table": "landing/zone/people", "scd_type": 1},
    "silver.dropped": {"scd_type": 1},
    "silver.restored": {"scd_type": 1},
    "silver.shrunk": {"source_table": "bronze.shrunk", "scd_type": 1},
}


CONTROL = [
    ("table_name", "string", False),
    ("watermark_value", "timestamp", True),
    ("last_run_id", "string", True),
    ("last_run_status", "string", True),
    ("records_processed", "long", True),
    ("updated_at", "timestamp", True),
]
AUDIT = [
    ("run_id", "string", False),
    ("table_name", "string", False),
    ("run_start_ts", "timestamp", True),
    ("run_end_ts", "timestamp", True),
    ("status", "string", True),
    ("records_read", "long", True),
    ("records_inserted", "long", True),
    ("records_updated", "long", True),
    ("watermark_before", "timestamp", True),
    ("watermark_after", "timestamp", True),
    ("error_message", "string", True),
]
"""The columns of both tables as they are printed: name, type, whether null is allowed."""


def statuses(report: Report) -> dict[str, str]:
    return {stage.name: stage.status for stage in report.stages}


def control(folder: Path) -> dict[str, tuple[object, ...]]:
    found = held(folder, "silver.curation_control", "table_name", "watermark_value", "last_run_id", "last_run_status", "records_processed")
    return {str(row[0]): row[1:] for row in found}


def audit(folder: Path, run_id: str) -> dict[str, tuple[object, ...]]:
    """The run's audit rows by table; a table with two of them is an error."""
    columns = (
        "run_id",
        "table_name",
        "status",
        "records_read",
        "records_inserted",
        "records_updated",
        "watermark_before",
        "watermark_after",
    )
    rows = [row[1:] for row in held(folder, "silver.curation_audit_log", *columns) if row[0] == run_id]
    assert len({row[0] for row in rows}) == len(rows)
    return {str(row[0]): row[1:] for row in rows}


def test_control_and_audit_follow_the_data_whatever_happens_to_the_lake(spark: SparkSession, tmp_path: Path) -> None:
    declared = [
        {key: value for key, value in curated(name, "bronze.people", **more).items() if value is not None} for name, more in TABLES.items()
    ]
    folder = project_folder(tmp_path, declared)
    for source in ("bronze.people", "landing.zone/people", "bronze.shrunk"):
        land(folder, source, FIRST)
    project = Project.open(folder, spark)

    # the first load reads all, and both tables have exactly the printed columns
    first = project.run()
    assert statuses(first) == dict.fromkeys(TABLES, "succeeded")
    assert printed_columns(folder, "silver.curation_control") == CONTROL
    assert printed_columns(folder, "silver.curation_audit_log") == AUDIT
    mark = "2026-01-01 12:00:00.000001"
    assert control(folder) == dict.fromkeys(TABLES, (mark, first.run_id, "succeeded", 2))
    assert audit(folder, first.run_id) == dict.fromkeys(TABLES, ("succeeded", 2, 2, 0, None, mark))
    assert held(folder, "silver.plain", "id", "eff_start", "eff_end", "is_cur") == [
        ("1", "2026-01-01 10:00:00", "9999-12-31 23:59:59", True),
        ("2", mark, "9999-12-31 23:59:59", True),
    ]
    lengths = [{len(str(pk)) for (pk,) in held(folder, name, "_pk_hash")} for name in ("silver.plain", "silver.hashed")]
    assert lengths == [{32}, {64}]
    after_first = {name: versions(folder, name) for name in TABLES}
    assert set(after_first.values()) == {2}

    # a run with nothing new commits nothing to any target and has its audit rows all the same
    second = project.run()
    assert statuses(second) == dict.fromkeys(TABLES, "unchanged")
    assert {name: versions(folder, name) for name in TABLES} == after_first
    assert {status for status, *_ in audit(folder, second.run_id).values()} == {"unchanged"}
    assert {row[4:] for row in audit(folder, second.run_id).values()} == {(mark, mark)}
    assert control(folder)["silver.plain"][:3] == (mark, second.run_id, "unchanged")

    # mirror and control table are lost, one target is dropped, one source shrinks to older rows; late rows arrive with the new ones
    (folder / ".karat" / "state.db").unlink()
    drop(folder, "silver.curation_control")
    drop(folder, "silver.dropped")
    for source in ("bronze.people", "landing.zone/people"):
        land(folder, source, SECOND)
    land(folder, "bronze.shrunk", OLDER, mode="overwrite")
    third = project.run()
    new_mark = "2026-01-02 12:00:00"
    latest = [("1", "Anna"), ("2", "Bob"), ("3", "Cleo"), ("4", "late")]
    assert statuses(third) == {**dict.fromkeys(TABLES, "succeeded"), "silver.shrunk": "unchanged"}
    for name in ("silver.hashed", "silver.by_path", "silver.restored"):
        assert held(folder, name, "id", "name") == latest, name
        assert audit(folder, third.run_id)[name] == ("succeeded", 4, 2, 1, mark, new_mark)  # Bob is read again and changes nothing
    assert held(folder, "silver.plain", "id", "name", "eff_start", "eff_end", "is_cur") == [
        ("1", "Ann", "2026-01-01 10:00:00", "2026-01-02 00:00:00", False),
        ("1", "Anna", "2026-01-02 00:00:00", "9999-12-31 23:59:59", True),
        ("2", "Bob", mark, "9999-12-31 23:59:59", True),
        ("3", "Cleo", new_mark, "9999-12-31 23:59:59", True),
        ("4", "late", "2026-01-01 11:00:00", "9999-12-31 23:59:59", True),
    ]
    assert held(folder, "silver.dropped", "id", "name") == [*latest, ("5", "lost")]
    assert audit(folder, third.run_id)["silver.dropped"] == ("succeeded", 6, 5, 0, None, new_mark)
    assert held(folder, "silver.shrunk", "id", "name") == [("1", "Ann"), ("2", "Bob")]
    marks = {name: row[0] for name, row in control(folder).items()}
    assert marks == {**dict.fromkeys(TABLES, new_mark), "silver.shrunk": mark}
    since = {stage.name: stage.since for stage in project.plan().stages}
    assert since["silver.plain"] == "2026-01-02T12:00:00+00:00"
    assert since["silver.shrunk"] == "2026-01-01T12:00:00.000001+00:00"

    # a table set back to an earlier version is brought forward again from where that version stood
    spark.sql(f"RESTORE TABLE delta.`{lake_path(folder, 'silver.restored')}` TO VERSION AS OF {after_first['silver.restored'] - 1}")
    assert held(folder, "silver.restored", "id", "name") == [("1", "Ann"), ("2", "Bob")]
    fourth = project.run(["silver.restored"])
    assert held(folder, "silver.restored", "id", "name") == latest
    assert audit(folder, fourth.run_id) == {"silver.restored": ("succeeded", 4, 2, 1, mark, new_mark)}
    assert control(folder)["silver.restored"][0] == new_mark
    newest = commits(folder, "silver.restored")[0]
    assert (newest["run_id"], newest["position"]["watermark"]) == (fourth.run_id, "2026-01-02T12:00:00+00:00")


def test_audit_rows_that_runs_could_not_write_are_written_by_the_next_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people", scd_type=1)])
    project = Project.open(folder, spark)

    def unwritable(*_: object) -> None:
        message = "no space left"
        raise OSError(message)

    land(folder, "bronze.people", FIRST)
    with monkeypatch.context() as patched:
        patched.setattr(runner, "write_audit", unwritable)
        first = project.run()
        land(folder, "bronze.people", SECOND)
        second = project.run()
    assert not first.ok
    assert not second.ok
    assert statuses(first) == statuses(second) == {"silver.people": "succeeded"}

    third = project.run()
    mark, new_mark = "2026-01-01 12:00:00.000001", "2026-01-02 12:00:00"
    assert third.ok
    assert audit(folder, third.run_id)["silver.people"][0] == "unchanged"
    assert audit(folder, second.run_id) == {"silver.people": ("succeeded", 4, 2, 1, mark, new_mark)}
    assert audit(folder, first.run_id) == {"silver.people": ("succeeded", 2, 2, 0, None, mark)}
    assert control(folder)["silver.people"][:2] == (new_mark, third.run_id)


def test_tables_of_a_catalog_are_read_and_written_by_name(spark: SparkSession, tmp_path: Path) -> None:
    settings = {"catalog": "spark_catalog", "schema_bronze": "karat_bronze", "schema_silver": "karat_silver"}
    places = {"control_table": "karat_silver.control", "audit_table": "spark_catalog.karat_silver.audit"}
    folder = project_folder(
        tmp_path,
        [curated("people", "spark_catalog.karat_bronze.people")],
        settings={**settings, **places},
        karat={"catalog": "spark_catalog"},
    )
    spark.sql("CREATE SCHEMA IF NOT EXISTS karat_bronze")
    try:
        frame(spark, FIRST).write.format("delta").saveAsTable("karat_bronze.people")
        project = Project.open(folder, spark)
        report = project.run()
        assert statuses(report) == {"karat_silver.people": "succeeded"}, report.stages[0].error
        assert {tuple(row) for row in spark.table("karat_silver.people").select("id", "name", "is_current").collect()} == {
            ("1", "Ann", True),
            ("2", "Bob", True),
        }
        assert project.table("karat_silver.people").columns == spark.table("karat_silver.people").columns
        assert [row["status"] for row in spark.table("karat_silver.audit").collect()] == ["succeeded"]
        again = project.run()
        assert statuses(again) == {"karat_silver.people": "unchanged"}
        assert not [path for path in (folder / "lake").rglob("*") if path.is_file()]  # rows are only staged there
    finally:
        spark.sql("DROP SCHEMA IF EXISTS karat_bronze CASCADE")
        spark.sql("DROP SCHEMA IF EXISTS karat_silver CASCADE")


def printed_columns(folder: Path, name: str) -> list[tuple[str, str, bool]]:
    """Name, type and whether null is allowed, of each column."""
    schema = json.loads(DeltaTable(lake_path(folder, name)).schema().to_json())
    return [(field["name"], field["type"], field["nullable"]) for field in schema["fields"]]
