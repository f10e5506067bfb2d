"""A belief left behind its evidence catches up in a process that starts with nothing but the lake."""

from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from tests.support.beliefs import RULES, declare
from tests.support.entities import CUSTOMER, drop, entity_project, held
from tests.support.processes import succeeds

FIRST = [
    {"customer_id": key, "op": "c", "source_event_ts": "2026-03-01", "name": key, "address": "Rome", "status": "Active"} for key in "abc"
]
SECOND = [
    {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-04", "status": "Closed"},
    {"customer_id": "b", "op": "u", "source_event_ts": "2026-02-01", "address": "Bern"},
    {"customer_id": "d", "op": "c", "source_event_ts": "2026-03-02", "name": "d"},
]


def test_a_run_catches_up_after_one_that_was_asked_for_bronze_alone(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path / "project", CUSTOMER)
    declare(folder, RULES)
    drop(folder, "crm/1.ndjson", FIRST)
    assert Project.open(folder, spark).run().ok
    drop(folder, "crm/2.ndjson", SECOND)
    assert Project.open(folder, spark).run(["bronze.customer"]).ok
    assert len(held(folder, "silver.customer", "customer_id")) == 3
    succeeds(folder, "run")
    believed = held(folder, "silver.customer", "customer_id", "name", "address", "status")
    assert believed == [
        ("a", "a", "Rome", "Closed"),
        ("b", "b", "Rome", "Active"),
        ("c", "c", "Rome", "Active"),
        ("d", "d", None, None),
    ]
    for name in ("customer", "silver.customer"):
        found = Project.open(folder, spark).verify(name)
        assert found.equal, (found.counts, found.differences)
