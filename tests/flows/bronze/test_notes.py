"""What is suspicious about a batch without being wrong is said in the report of its run, and nothing is held back for it."""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CRM, drop, entity_project, held

FEED = {**CRM, "sequence": "seq", "drift": {"type_changes": "warn"}}
PERSON = {"kind": "entity", "name": "person", "key": ["id"], "attributes": {"name": "string", "age": "int"}, "feeds": [FEED]}
AHEAD = "rows with a time after the run's own: 1"
MISFIT = "rows of feed crm with a value its attribute cannot hold, kept in `extra`: 1"
BATCHES = [
    (
        [
            {"id": "1", "source_event_ts": "2026-03-01", "seq": 9, "name": "Ann", "age": 7},
            {"id": "2", "source_event_ts": "2026-03-02", "seq": 10, "name": "Bea", "age": "old"},
            {"id": "3", "source_event_ts": "2027-01-01", "name": "Cat", "age": 1},
        ],
        {AHEAD, MISFIT},
    ),
    (
        [
            {"id": "1", "source_event_ts": "2026-03-05", "seq": 9, "name": "Ann", "age": 7},
            {"id": "2", "source_event_ts": "2027-01-01", "seq": 11, "name": "Bea", "age": 8},
        ],
        {AHEAD, "rows of CRM with a time before its latest: 1", "rows of CRM with a sequence below its highest: 1"},
    ),
    (
        [
            {"id": "1", "source_event_ts": "no time", "seq": 1, "name": "Ann", "age": 7},
            {"id": "1", "source_event_ts": "2027-02-01", "seq": 12, "name": "Ann", "age": 7},
        ],
        {AHEAD},
    ),
]


def test_what_runs_ahead_backwards_or_out_of_its_type_is_said_and_remembered(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, PERSON)
    for number, (messages, expected) in enumerate(BATCHES):
        drop(folder, f"crm/{number}.ndjson", [{"op": "u", **message} for message in messages])
        report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, number, tzinfo=UTC))
        assert report.ok, report.stages[0].error
        assert set(report.stages[0].notes) == expected, number
    assert len(held(folder, "bronze.person_assertions", "id")) == 6
    assert [dict(extra) for (extra,) in held(folder, "bronze.person_assertions", "extra", where="extra IS NOT NULL")] == [{"age": "old"}]
