"""Clocks of runs may run behind one another; what was said, and when, decides all the same."""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CRM, drop, entity_project, held

THING = {"kind": "entity", "name": "thing", "key": ["id"], "attributes": {"name": "string", "amount": "int"}, "feeds": [CRM]}
RUNS = [
    (10, {"op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "amount": 1}),
    (12, {"op": "u", "source_event_ts": "2026-03-04", "name": "Bea"}),
    (5, {"op": "u", "source_event_ts": "2026-03-03", "amount": 9}),
    (13, {"op": "u", "source_event_ts": "2026-03-06", "name": "Cat"}),
]


def test_what_came_late_is_inherited_although_its_run_had_an_earlier_clock(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, THING)
    for number, (hour, said) in enumerate(RUNS):
        drop(folder, f"crm/{number}.ndjson", [{"id": "a", **said}])
        report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, hour, tzinfo=UTC))
        assert report.ok, report.stages
    told = held(folder, "bronze.thing", "effective_from", "name", "amount")
    assert [(at.day, name, amount) for at, name, amount in told] == [(1, "Ann", 1), (3, "Ann", 9), (4, "Bea", 1), (6, "Cat", 9)]
