"""Beliefs whose entities share instants, and beliefs with rows that are there twice or missing: each row is its entity's own."""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.beliefs import RULES, declare, expected_history
from tests.support.entities import CUSTOMER, drop, entity_project
from tests.support.projects import lake_path, versions
from tests.support.tables import differences, table_rows, view

ENTITIES = 120
TABLES = ("silver.customer", "silver.customer_history", "silver.customer_conflicts")
OURS = ("sk", "because_hash")
TWICE, MISSING, EXTRA = "held more than once", "missing in the table", "in the table, but not in the evidence"


def _message(key: str, op: str, day: int, **said: object) -> dict[str, object]:
    return {"customer_id": key, "op": op, "source_event_ts": f"2026-03-{day:02d}", **said}


def _ran(folder: Path, spark: SparkSession, hour: int) -> Any:  # noqa: ANN401  (a report's counts)
    report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, hour, tzinfo=UTC))
    assert report.ok, [stage.error for stage in report.stages]
    return next(stage.rows for stage in report.stages if stage.name == "silver.customer")


def test_entities_that_share_every_instant_are_believed_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER)
    declare(folder, RULES)
    keys = [f"k{number:03d}" for number in range(ENTITIES)]
    crm = [_message(key, "c", day, status=f"{day % 2}") for key in keys for day in (1, 3, 5)]
    # the late word of CORE outranks what CRM says on day 3 and 5: periods of some entities go, those of others stay
    late = [_message(key, "u", 2, status="late") for number, key in enumerate(keys) if number % 3]
    gone = [_message(key, "d", 4) for key in keys[::2]]
    for hour, (source, messages) in enumerate([("crm", crm), ("core", late), ("crm", gone)], start=1):
        before = table_rows(folder, "silver.customer_history")
        drop(folder, f"{source}/{hour}.ndjson", messages)
        rows = _ran(folder, spark, hour)
        after = table_rows(folder, "silver.customer_history")
        assert differences(after, expected_history(folder, datetime(2026, 4, 1, hour, tzinfo=UTC)), OURS) == [], source
        assert (rows.inserted, rows.updated, rows.deleted) == _changes(before, after), source
    assert len(table_rows(folder, "silver.customer")) == ENTITIES


def _changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """How many rows came, changed and went, by their full identity."""
    old, new = ({(row["bk"], row["valid_from"]): row for row in rows} for rows in (before, after))
    assert (len(old), len(new)) == (len(before), len(after)), "no period is there twice"
    changed = sum(old[identity] != new[identity] for identity in old.keys() & new.keys())
    return len(new.keys() - old.keys()), changed, len(old.keys() - new.keys())


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = entity_project(tmp_path_factory.mktemp("sound") / "project", CUSTOMER)
    declare(folder, RULES)
    days = [_message(key, "u" if day > 1 else "c", day, name=f"{key} on day {day}", status="Active") for key in "abc" for day in (1, 2, 3)]
    drop(folder, "crm/1.ndjson", days)
    drop(folder, "core/1.ndjson", [_message(key, "u", 2, status="Restricted") for key in "abc"])
    _ran(folder, spark, 1)
    return folder


def _doubled(spark: SparkSession, path: str) -> None:
    """Every row of one entity appended once more."""
    spark.read.format("delta").load(path).where("bk = 'a'").write.format("delta").mode("append").save(path)


def _missing(spark: SparkSession, path: str) -> None:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE bk = 'b'")  # noqa: S608


def _extra(spark: SparkSession, path: str) -> None:
    """The rows of one entity once more as those of another, which nobody has spoken of."""
    rows = spark.read.format("delta").load(path).where("bk = 'c'")
    rows.selectExpr("'z' AS bk", *(name for name in rows.columns if name != "bk")).write.format("delta").mode("append").save(path)


DAMAGE: Mapping[str, tuple[tuple[Callable[[SparkSession, str], None], ...], tuple[str, ...]]] = {
    "rows twice": ((_doubled,), (TWICE,)),
    "rows missing": ((_missing,), (MISSING,)),
    "rows twice, missing, and too many": ((_doubled, _missing, _extra), (TWICE, MISSING, EXTRA)),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named_with_multiplicity_and_mended(sound: Path, spark: SparkSession, tmp_path: Path, case: str) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "project"))
    damages, meanings = DAMAGE[case]
    rows_of_one = {name: Counter(row["bk"] for row in table_rows(folder, name))["a"] for name in TABLES}
    for name in TABLES:
        for damage in damages:
            damage(spark, lake_path(folder, name))
    project = Project.open(folder, spark)
    found = project.verify("silver.customer")
    assert found.counts == {f"{meaning} ({name})": rows_of_one[name] for name in TABLES for meaning in meanings}
    assert {each["what"] for each in found.differences} == set(meanings)
    project.maintain("rebuild-from-raw", ["silver.customer"])
    assert [view(folder, name) for name in TABLES] == [view(sound, name) for name in TABLES]
    assert project.verify("silver.customer").equal
    mended = [versions(folder, name) for name in TABLES]
    project.maintain("rebuild-from-raw", ["silver.customer"])
    assert [versions(folder, name) for name in TABLES] == mended
    drop(folder, "crm/2.ndjson", [_message("a", "u", 9, name="later")])
    _ran(folder, spark, 2)
    assert project.verify("silver.customer").equal
