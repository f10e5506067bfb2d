"""Extracts that mostly repeat, under lazy sightings: they leave the timeline alone, and nothing that comes late is misplaced for it."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report
from tests.support.entities import drop, entity_project, held
from tests.support.projects import versions

RISK = {
    "kind": "entity",
    "name": "risk",
    "key": ["customer_id"],
    "attributes": {"risk": "string"},
    "sightings": "lazy",
    "feeds": [
        {
            "name": "kyc",
            "source_system": "KYC",
            "from": {"kind": "files", "path": "data/kyc/*.ndjson", "format": "json"},
            "load_type": "FULL",
            "event_time": "data_date",
        }
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return entity_project(tmp_path_factory.mktemp("sightings"), RISK)


def test_what_is_shown_again_stays_unwritten_and_what_comes_late_still_finds_its_place(folder: Path, spark: SparkSession) -> None:
    _extract(folder, spark, 1, a="low", b="low")
    before = versions(folder, "bronze.risk")
    _extract(folder, spark, 5, a="low", b="low")
    assert versions(folder, "bronze.risk") == before, "nothing but sightings"
    _extract(folder, spark, 7, a="low", b="high", c="low")
    assert versions(folder, "bronze.risk") == before + 1
    _extract(folder, spark, 3, a="high", b="low")
    told = held(folder, "bronze.risk", "customer_id", "effective_from", "risk")
    assert [(key, at.day, risk) for key, at, risk in told] == [
        ("a", 1, "low"),
        ("a", 3, "high"),
        ("a", 5, "low"),  # it was seen then, though no version showed it
        ("b", 1, "low"),
        ("b", 7, "high"),
        ("c", 7, "low"),
    ]
    project = Project.open(folder, spark=spark)
    assert all(chore.done for chore in project.maintain("apply"))
    assert project.verify("risk").equal


def _extract(folder: Path, spark: SparkSession, day: int, **risks: str) -> Report:
    drop(
        folder, f"kyc/{day}.ndjson", [{"customer_id": key, "risk": risk, "data_date": f"2026-03-{day:02d}"} for key, risk in risks.items()]
    )
    report = Project.open(folder, spark=spark).run()
    assert report.ok, report.stages
    return report
