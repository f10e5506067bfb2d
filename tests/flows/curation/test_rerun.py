"""A source that has not moved is not read twice; whatever has really moved, been lost or been declared anew is noticed."""

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report
from karat.runner import run as runner
from tests.support.projects import curated, drop, held, lake_path, land, project_folder, versions

HEADING = "id:string | source_system:string | name:string | event_ts:timestamp | ingestion_ts:timestamp"
FIRST = f"""{HEADING}
    1 | CRM | A | 2026-01-05 00:00:00 | 2026-01-10 01:00:00
"""
SECOND = f"""{HEADING}
    1 | CRM | A | 2026-01-09 00:00:00 | 2026-01-10 20:00:00
    1 | CRM | B | 2026-01-07 00:00:00 | 2026-01-10 22:00:00
"""
"""B loses to A, and would win as soon as A lies below the lookback of two hours."""
THIRD = f"""{HEADING}
    2 | CRM | C | 2026-01-11 00:00:00 | 2026-01-11 22:00:00
    2 | CRM | D | 2026-01-10 00:00:00 | 2026-01-11 23:00:00
"""
BY_EVENT = {"effective_from_column": "event_ts", "dedup_order_columns": ["event_ts DESC", "ingestion_ts DESC"]}
ALL = ("silver.people", "silver.gone", "silver.remade")
UNREAD = ("unchanged", 0)


def declared(**more: str) -> list[dict[str, object]]:
    return [
        curated("silver.people", "bronze.people", **BY_EVENT, **more),
        curated("silver.gone", "bronze.people", scd_type=1),
        curated("silver.remade", "bronze.remade", scd_type=1),
    ]


def ends(report: Report) -> dict[str, tuple[str, int]]:
    """How each table ended and how many rows of its source it read."""
    return {stage.name: (stage.status, stage.rows["read"]) for stage in report.stages}


def story(folder: Path) -> list[tuple[object, ...]]:
    return held(folder, "silver.people", "id", "name", "effective_start_date", "is_current")


def test_what_was_consumed_is_not_read_again_until_something_moves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project_folder(tmp_path, declared())
    project = Project.open(folder, spark)
    sources = ("bronze.people", "bronze.remade")

    # the second batch changes nothing for the people: the latest of it says what is known
    for source in sources:
        land(folder, source, FIRST)
    assert ends(project.run()) == dict.fromkeys(ALL, ("succeeded", 1))
    for source in sources:
        land(folder, source, SECOND)
    assert ends(project.run())["silver.people"] == ("unchanged", 3)
    only_a = [("1", "A", "2026-01-05 00:00:00", True)]
    assert story(folder) == only_a
    before = {name: versions(folder, name) for name in ALL}

    # nor does reading nothing: files put in order are no rows, and a run of one table forgets nothing about the others
    source = DeltaTable(lake_path(folder, "bronze.people"))
    source.optimize.compact()
    source.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert ends(project.run(["silver.gone"])) == {"silver.gone": UNREAD}
    assert ends(project.run()) == dict.fromkeys(ALL, UNREAD)
    assert story(folder) == only_a
    assert {name: versions(folder, name) for name in ALL} == before
    assert {str(row[0]) for row in held(folder, "silver.curation_control", "watermark_value")} == {"2026-01-10 22:00:00"}

    # a run that dies before its audit has said in the data's commit what it consumed
    for source_name in sources:
        land(folder, source_name, THIRD)
    with monkeypatch.context() as patched:
        patched.setattr(runner, "write_audit", lambda *_: None)
        assert ends(project.run()) == dict.fromkeys(ALL, ("succeeded", 3))
    told = story(folder)
    assert ends(project.run(["silver.people"])) == {"silver.people": UNREAD}
    assert story(folder) == told
    audited = held(folder, "silver.curation_audit_log", "table_name", "status", "records_read", "watermark_after")
    assert audited.count(("silver.people", "succeeded", 3, "2026-01-11 23:00:00")) == 1

    # a target that is gone, a source made anew, another declaration: each is noticed
    drop(folder, "silver.gone")
    drop(folder, "bronze.remade")
    land(folder, "bronze.remade", THIRD)
    project_folder(folder, declared(lookback_interval="3 HOURS"))
    assert ends(Project.open(folder, spark).run()) == {
        "silver.people": ("unchanged", 2),
        "silver.gone": ("succeeded", 5),
        "silver.remade": ("unchanged", 2),
    }
    assert story(folder) == told
