"""Timelines with rows that are there twice, or missing: verify says so, and a rebuild from the evidence mends them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from karat import Project
from karat.cli.app import app
from tests.support.entities import CUSTOMER, drop, entity_project, held
from tests.support.projects import lake_path

DAYS = [
    {"customer_id": key, "op": "u" if day > 1 else "c", "source_event_ts": f"2026-03-{day:02d}", "name": f"{key} on day {day}"}
    for key in ("a", "b", "c")
    for day in (1, 2, 3)
]
Damage = Callable[[SparkSession, str], Any]
TWICE, MISSING = "held more than once", "missing in the table"


def _doubled(spark: SparkSession, path: str) -> None:
    """Every version of one key, and one of another, appended once more."""
    rows = spark.read.format("delta").load(path).where("bk = 'a' OR (bk = 'b' AND is_current)")
    rows.write.format("delta").mode("append").save(path)


def _missing(spark: SparkSession, path: str) -> None:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE bk = 'b' AND is_current OR bk = 'c' AND day(effective_from) = 2")  # noqa: S608


def _both(spark: SparkSession, path: str) -> None:
    _doubled(spark, path)
    _missing(spark, path)


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = entity_project(tmp_path_factory.mktemp("sound") / "project", CUSTOMER, karat={"spark": {"master": "provided"}})
    drop(folder, "crm/1.ndjson", DAYS)
    assert Project.open(folder, spark).run().ok
    return folder


FOUND: dict[Damage, dict[str, int]] = {
    _doubled: {TWICE: 4},
    _missing: {MISSING: 2},
    _both: {TWICE: 3, MISSING: 2},
}
"""What verify must count; of a key that is doubled and then loses its last version, the copies of that go as well."""


@pytest.mark.parametrize("damage", FOUND)
def test_damage_is_named_with_multiplicity_and_mended(sound: Path, spark: SparkSession, tmp_path: Path, damage: Damage) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "project"))
    damage(spark, lake_path(folder, "bronze.customer"))
    answer = _karat("verify", "customer", "-p", str(folder), "--json", code=1)
    (verified,) = json.loads(answer)
    assert verified["counts"] == FOUND[damage]
    assert {each["what"] for each in verified["differences"]} == set(FOUND[damage])
    _karat("maintain", "rebuild-from-raw", "customer", "-p", str(folder))
    assert _shown(folder) == _shown(sound)
    _karat("verify", "customer", "-p", str(folder))
    drop(folder, "crm/2.ndjson", [{**DAYS[0], "source_event_ts": "2026-03-09", "name": "later"}])
    assert Project.open(folder, spark).run().ok
    assert Project.open(folder, spark).verify("customer").equal


def test_files_are_known_although_the_logs_were_cleaned_of_every_commit_that_listed_them(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER)
    drop(folder, "crm/1.ndjson", DAYS)
    project = Project.open(folder, spark)
    assert project.run().ok
    for table in ("bronze.customer", "bronze.customer_assertions"):
        _clean_log(spark, lake_path(folder, table))
    assert project.run().ok
    assert len(held(folder, "bronze.customer_assertions", "bk")) == len(DAYS)
    drop(folder, "crm/2.ndjson", [{**DAYS[0], "source_event_ts": "2026-03-09", "name": "later"}])
    assert project.run().ok
    assert project.run().stages[0].status == "unchanged"
    assert len(held(folder, "bronze.customer_assertions", "bk")) == len(DAYS) + 1
    assert project.verify("customer").equal


def _clean_log(spark: SparkSession, path: str) -> None:
    """As Delta does it once commits are older than the log's retention: a checkpoint, and no commit before it."""
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")
    commits = sorted(Path(path, "_delta_log").glob("*.json"))
    assert Path(path, "_delta_log", f"{commits[-1].stem}.checkpoint.parquet").exists()
    for commit in commits[:-1]:
        commit.unlink()


def _shown(folder: Path) -> list[tuple[Any, ...]]:
    return held(folder, "bronze.customer", "bk", "effective_from", "effective_to", "name", "is_current", "seen_count")


def _karat(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output
