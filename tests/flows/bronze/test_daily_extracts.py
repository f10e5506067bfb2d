"""Daily extracts whose rows say when they were last changed: a key that is gone for a day is back with what it said before."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CUSTOMER, drop, entity_project, held

EXTRACT: Final = {
    "name": "kyc",
    "source_system": "KYC",
    "from": {"kind": "files", "path": "data/kyc/*.ndjson", "format": "json"},
    "load_type": "FULL",
    "event_time": "changed_on",
    "snapshot_of": "data_date",
    "absence_means": "deleted",
    "drift": {"missing_columns": "keep"},
}
DAYS: Final = {2: "ab", 3: "a", 4: "ab", 5: "b", 6: "ab"}
"""Day to the keys that its extract shows. None of them was ever changed since day 1."""
OTHERS: Final = {4: ("b", "address"), 6: ("a", "address")}
"""Day to the key about which another source says something that day."""


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = entity_project(tmp_path_factory.mktemp("extracts"), {**CUSTOMER, "feeds": [*CUSTOMER["feeds"], EXTRACT]})
    for day, keys in DAYS.items():
        rows = [
            {"customer_id": key, "name": f"name of {key}", "changed_on": "2026-03-01", "data_date": f"2026-03-{day:02d}"} for key in keys
        ]
        drop(folder, f"kyc/{day}.ndjson", rows)
        if day in OTHERS:
            key, attribute = OTHERS[day]
            event = {"customer_id": key, "op": "u", "source_event_ts": f"2026-03-{day:02d} 12:00:00", attribute: f"of day {day}"}
            drop(folder, f"crm/{day}.ndjson", [event])
        assert Project.open(folder, spark).run(now=datetime(2026, 4, day, tzinfo=UTC)).ok
    return folder


@pytest.mark.parametrize(("key", "expected"), [("a", [1, -5, 6]), ("b", [1, -3, 4])])
def test_a_key_that_was_gone_is_back_from_the_extract_that_shows_it(folder: Path, key: str, expected: list[int]) -> None:
    told = held(folder, "bronze.customer", "effective_from", "is_deleted", where=f"bk = '{key}' AND source_system = 'KYC'")
    assert [-at.day if gone else at.day for at, gone in sorted(told)] == expected


def test_all_of_it_is_what_the_evidence_says(folder: Path, spark: SparkSession) -> None:
    found = Project.open(folder, spark).verify("customer")
    assert found.equal, found.differences
