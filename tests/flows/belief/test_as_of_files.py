"""A whole belief at a pair of times, shown and written to files: the same rows, in the words of each kind of file."""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.belief.export import written
from tests.support.entities import drop
from tests.support.lakes import believing_project
from tests.unit.inspect.test_belief import RULE

SAID = {
    "crm/1.ndjson": [
        {"customer_id": "C1", "op": "c", "source_event_ts": "2026-03-01T09:00:00Z", "name": 'Ann, "A"', "status": "Active"},
        {"customer_id": "C2", "op": "c", "source_event_ts": "2026-03-01T09:00:00Z", "name": "Bob"},
    ],
    "core/1.ndjson": [{"customer_id": "C1", "op": "u", "source_event_ts": "2026-03-02T10:00:00.000001Z", "status": "Restricted"}],
}


@pytest.fixture(scope="module")
def project(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = believing_project(tmp_path_factory.mktemp("as_of"), [RULE])
    for file, rows in SAID.items():
        drop(folder, file, rows)
    project = Project.open(folder, spark=spark)
    assert project.run(now=datetime(2026, 4, 1, tzinfo=UTC)).ok
    return project


def test_the_first_rows_are_shown_and_all_are_counted(project: Project) -> None:
    told = written(project.as_of("customer"), None, 1)
    assert (told.count, len(told.first)) == (2, 1)
    (first,) = told.first
    assert (first["customer_id"], first["status"], first["address"], first["is_deleted"]) == ("C1", "Restricted", None, False)
    because = first["because"]["status"]
    assert (because["source_system"], because["source_event_ts"]) == ("CORE", "2026-03-02T10:00:00.000001+00:00")
    assert (len(bytes.fromhex(because["record_hash"])), len(bytes.fromhex(first["sk"]))) == (32, 32)


def test_csv_is_one_file_with_a_heading(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "belief.csv"
    told = written(project.as_of("customer", valid_at=datetime(2026, 3, 1, 12, tzinfo=UTC)), file, 20)
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert (told.count, list(rows[0])) == (2, list(told.columns))
    assert [(row["customer_id"], row["name"], row["status"], row["is_deleted"]) for row in rows] == [
        ("C1", 'Ann, "A"', "Active", "false"),
        ("C2", "Bob", "", "false"),
    ]
    assert json.loads(rows[0]["because"]) == told.first[0]["because"]
    assert [path.name for path in tmp_path.iterdir()] == ["belief.csv"]


def test_parquet_holds_the_rows_as_they_are(project: Project, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "belief.parquet"
    believed = project.as_of("customer")
    assert written(believed, file, 20).count == 2
    held = spark.read.parquet(str(file))
    assert held.columns == believed.columns
    assert sorted(map(str, held.collect())) == sorted(map(str, believed.collect()))


def test_before_the_first_rule_there_is_nothing(project: Project) -> None:
    assert written(project.as_of("customer", known_at=datetime(2025, 1, 1, tzinfo=UTC)), None, 20).count == 0
