"""What comes late must not be taken for more than it is: a word that was taken back since, a copy in a file of another name."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CUSTOMER, drop, entity_project, held

Said = tuple[str, str, int, dict[str, str]]
RUNS: Final[list[dict[str, list[Said]]]] = [
    {
        "1-b": [("wiped", "c", 1, {"name": "Ann"}), ("wiped", "d", 3, {}), ("copied", "u", 6, {"status": "P"})],
        "1-c": [("copied", "u", 6, {"status": "Q"})],
    },
    {"0-a": [("copied", "u", 6, {"status": "Q"})], "2": [("wiped", "u", 5, {"status": "A"})]},
    {"3": [("wiped", "u", 2, {"name": "Late"}), ("copied", "u", 5, {"status": "R"})]},
    {"4": [("wiped", "u", 7, {"status": "B"})]},
]
"""Run to file to what it says: key, op, day and words."""


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = entity_project(tmp_path_factory.mktemp("late"), CUSTOMER)
    for hour, files in enumerate(RUNS, start=1):
        for file, said in files.items():
            messages = [{"customer_id": key, "op": op, "source_event_ts": f"2026-03-{day:02d}", **words} for key, op, day, words in said]
            drop(folder, f"crm/{file}.ndjson", messages)
        assert Project.open(folder, spark).run(now=datetime(2026, 4, 1, hour, tzinfo=UTC)).ok
    return folder


def test_a_word_from_before_a_delete_is_not_heard_after_it_however_late_it_comes(folder: Path) -> None:
    assert held(folder, "bronze.customer", "name", "status", where="bk = 'wiped' AND is_current") == [(None, "B")]


def test_statements_of_one_instant_stay_in_the_order_of_the_first_file_that_brought_each(folder: Path) -> None:
    assert held(folder, "bronze.customer", "status", where="bk = 'copied' AND is_current") == [("P",)]


def test_all_of_it_is_what_the_evidence_says(folder: Path, spark: SparkSession) -> None:
    found = Project.open(folder, spark).verify("customer")
    assert found.equal, found.differences
