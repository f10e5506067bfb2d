"""A stream runs again whenever its tables have moved, wherever they are: by path, by URI, in a catalog."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report
from karat.stream import Streamed, stream
from tests.support.projects import curated, project_folder

COLUMNS = "id int, source_system string, name string, ingestion_ts timestamp"


@pytest.fixture(params=["path", "uri", "catalog"])
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Iterator[Project]:
    """A project with one curated table, in each place a lake can be."""
    karat: dict[str, Any] = {"path": {}, "uri": {"lake": f"file://{tmp_path}/lake"}, "catalog": {"catalog": "spark_catalog"}}[request.param]
    folder = project_folder(tmp_path, [curated("silver.stream_target", "bronze.stream_source", scd_type=1)], karat=karat)
    if request.param == "catalog":
        spark.sql("CREATE SCHEMA IF NOT EXISTS bronze")
    spark.sql(f"CREATE TABLE {source(request.param, tmp_path)} ({COLUMNS}) USING delta")
    yield Project.open(folder, spark=spark)
    if request.param == "catalog":
        for table in ("bronze.stream_source", "silver.stream_target"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def source(place: str, folder: Path) -> str:
    return "spark_catalog.bronze.stream_source" if place == "catalog" else f"delta.`{folder}/lake/bronze/stream_source`"


def test_a_stream_runs_once_for_each_move_and_rests_between(project: Project, spark: SparkSession, tmp_path: Path) -> None:
    table = source("catalog" if project.config.settings.catalog else "path", tmp_path)
    stop, statuses = threading.Event(), []

    def arrives(number: int) -> None:
        spark.sql(f"INSERT INTO {table} VALUES ({number}, 'CRM', 'Ann', timestamp'2026-01-01 00:00:0{number}')")  # noqa: S608

    def run() -> Report:
        report = project.run()
        statuses.append(report.stages[0].status)
        if len(statuses) < 3:
            threading.Timer(4, arrives, (len(statuses) + 1,)).start()  # several looks later
        else:
            stop.set()
        return report

    arrives(1)
    assert stream(project, [], 0.5, run, stop) == Streamed(batches=3, failed=0)
    assert statuses == ["succeeded"] * 3
    assert project.table("silver.stream_target").count() == 3


def test_a_stream_that_cannot_look_runs_and_lets_the_run_say_why(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, reports = threading.Event(), []

    def broken(*_: object) -> None:
        message = "the storage does not answer"
        raise OSError(message)

    def run() -> Report:
        reports.append(project.run())
        if len(reports) == 2:
            stop.set()
        return reports[-1]

    monkeypatch.setattr("karat.stream._version", broken)
    assert stream(project, [], 0.1, run, stop).batches == 2
