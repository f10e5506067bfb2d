"""Keys that share instants: a statement about all of them, or a daily extract, gives many keys versions of one start.

What happens to one key must leave the others alone, and what a run reports is what it did.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.telemetry.events import Rows
from tests.support.entities import CRM, CUSTOMER, drop, entity_project, held
from tests.support.tables import table_rows

DAILY = 120
TRUNCATED: dict[str, list[list[tuple[str | None, str, int]]]] = {
    "an older delete of one, a repeat of the other": [
        [("1", "c", 1), ("2", "c", 1), (None, "t", 5)],
        [("2", "d", 3), ("1", "c", 1)],
    ],
    "both are back, then one was gone before": [
        [("1", "c", 1), ("2", "c", 1), (None, "t", 3)],
        [("1", "c", 5), ("2", "c", 5), (None, "t", 7)],
        [("2", "d", 2), ("1", "c", 5)],
    ],
    "an older change of one": [
        [("1", "c", 1), ("2", "c", 1), (None, "t", 5)],
        [("2", "u", 6), ("1", "u", 4)],
    ],
}
"""Batches of (key, op, day), each message saying its day."""
CURRENT = {
    "an older delete of one, a repeat of the other": {"1": (5, True, "t"), "2": (3, True, "d")},
    "both are back, then one was gone before": {"1": (7, True, "t"), "2": (7, True, "t")},
    "an older change of one": {"1": (5, True, "t"), "2": (6, False, "u")},
}
"""Key to the start, deletion and op of its current version at the end."""


def _message(key: str | None, op: str, day: int, **said: object) -> dict[str, object]:
    words = {"name": f"day {day}"} if op in "cu" else {}
    return {"customer_id": key, "op": op, "source_event_ts": f"2026-03-{day:02d}", **words, **said}


def _ran(folder: Path, spark: SparkSession, hour: int) -> dict[str, Rows]:
    report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, hour, tzinfo=UTC))
    assert report.ok, [stage.error for stage in report.stages]
    return {stage.name.removeprefix("bronze."): stage.rows for stage in report.stages}


@pytest.fixture(scope="module")
def truncated(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each case as an entity of its own, its batches run one after the other."""
    entities = []
    for number in range(len(TRUNCATED)):
        source = {"kind": "files", "path": f"data/{number}/*.ndjson", "format": "json"}
        entities.append({**CUSTOMER, "name": f"case_{number}", "feeds": [{**CRM, "from": source}]})
    folder = entity_project(tmp_path_factory.mktemp("truncated"), *entities)
    for run in range(3):
        for number, batches in enumerate(TRUNCATED.values()):
            if run < len(batches):
                drop(folder, f"{number}/{run}.ndjson", [_message(*each) for each in batches[run]])
        _ran(folder, spark, run + 1)
    return folder


@pytest.mark.parametrize("case", TRUNCATED)
def test_what_becomes_of_one_key_of_a_truncate_leaves_the_others_alone(truncated: Path, spark: SparkSession, case: str) -> None:
    name = f"case_{list(TRUNCATED).index(case)}"
    current = held(truncated, f"bronze.{name}", "bk", "effective_from", "is_deleted", "op", where="is_current")
    assert {bk: (at.day, gone, op) for bk, at, gone, op in current} == CURRENT[case]
    assert len(current) == len(CURRENT[case])
    found = Project.open(truncated, spark).verify(name)
    assert found.equal, found.differences


def test_entities_that_share_every_instant_are_changed_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER)
    keys = [f"k{number:03d}" for number in range(DAILY)]
    crm = [_message(key, "c", day, status=f"{day % 2}") for key in keys for day in (1, 3, 5)]
    late = [_message(key, "u", day, status="late") for number, key in enumerate(keys) for day in (2, 4) if number % 3]
    gone = [_message(key, "d", 3) for key in keys[::2]]
    again = [_message(key, "c", 1, status="1") for key in keys[1::2]]
    for hour, (source, messages) in enumerate([("crm", crm), ("core", late), ("core", gone), ("crm", again)], start=1):
        before = table_rows(folder, "bronze.customer")
        drop(folder, f"{source}/{hour}.ndjson", messages)
        rows = _ran(folder, spark, hour)["customer"]
        after = table_rows(folder, "bronze.customer")
        assert (rows.inserted, rows.updated, rows.deleted) == _changes(before, after), source
        assert len({row["bk"] for row in after if row["is_current"]}) == len([row for row in after if row["is_current"]]) == DAILY
    found = Project.open(folder, spark).verify("customer")
    assert found.equal, found.differences


def test_a_closed_version_stays_when_a_live_one_of_the_same_start_changes(spark: SparkSession, tmp_path: Path) -> None:
    listed = {**CRM, "name": "kyc", "source_system": "KYC", "load_type": "FULL", "drift": {"missing_columns": "keep"}}
    del listed["op"]
    listed["from"] = {"kind": "files", "path": "data/kyc/*.ndjson", "format": "json"}
    folder = entity_project(tmp_path, {**CUSTOMER, "feeds": [CRM, listed]})
    drop(folder, "crm/1.ndjson", [_message("1", "u", 5)])
    days = [{"customer_id": "1", "source_event_ts": f"2026-03-0{day}", "name": f"list of {day}"} for day in (5, 6)]
    drop(folder, "kyc/1.ndjson", days)
    _ran(folder, spark, 1)
    drop(folder, "crm/2.ndjson", [_message("1", "u", 7)])
    _ran(folder, spark, 2)
    shown = held(folder, "bronze.customer", "effective_from", "source_system", "source_effective_to", "effective_to")
    assert {(at.day, source, end and end.day, until and until.day) for at, source, end, until in shown} == {
        (5, "CRM", 7, 5),
        (5, "KYC", 6, 6),
        (6, "KYC", None, 7),
        (7, "CRM", None, None),
    }
    assert len(shown) == 4
    assert Project.open(folder, spark).verify("customer").equal


def _changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[int, int, int]:
    """How many rows came, changed and went, by their full identity."""
    old, new = _by_identity(before), _by_identity(after)
    assert (len(old), len(new)) == (len(before), len(after)), "no version is there twice"
    changed = sum(old[identity] != new[identity] for identity in old.keys() & new.keys())
    return len(new.keys() - old.keys()), changed, len(old.keys() - new.keys())


def _by_identity(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    return {(row["bk"], row["statement_hash"], row["effective_from"]): row for row in rows}
