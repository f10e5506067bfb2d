"""A source without rows is no failure: what is declared is there, even while it is empty."""

from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from tests.support.projects import curated, land, project_folder, versions

NOBODY = """
    id:string | source_system:string | name:string | ingestion_ts:timestamp
"""
SOMEBODY = """
    id:string | source_system:string | name:string | ingestion_ts:timestamp
    1         | CRM                  | Ann         | 2026-01-01 10:00:00
"""


def test_a_table_without_rows_is_there_and_so_is_what_is_made_of_it(spark: SparkSession, tmp_path: Path) -> None:
    folder = project_folder(tmp_path, [curated("silver.people", "bronze.people"), curated("silver.copy", "silver.people")])
    land(folder, "bronze.people", NOBODY)
    project = Project.open(folder, spark)
    first = project.run()
    assert [(stage.name, stage.status) for stage in first.stages] == [("silver.people", "unchanged"), ("silver.copy", "unchanged")]
    assert project.table("silver.copy").collect() == []
    made = versions(folder, "silver.people")
    assert project.run().ok
    assert versions(folder, "silver.people") == made
    land(folder, "bronze.people", SOMEBODY)
    assert project.run().ok
    assert [row["name"] for row in project.table("silver.copy").collect()] == ["Ann"]
