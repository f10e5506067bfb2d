"""What is suspicious about a batch, counted and told."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from karat.bronze.identity import told_apart
from karat.contract.statements import statements
from karat.execute.suspicion import Watch
from karat.execute.tally import tally_of
from karat.temporal.entity_schema import EntitySchema, types_of
from karat.temporal.moments import micros_of
from tests.frames.contract.feeds import INGESTED, entity_with, lines, raw_of

FEED = {"load_type": "PARTIAL", "sequence": "seq", "drift": {"type_changes": "warn"}}


def test_what_runs_ahead_backwards_or_out_of_its_type_is_told_and_remembered(spark: SparkSession, tmp_path: Path) -> None:
    entity, feed = entity_with(FEED, attributes={"name": "string", "age": "int"})
    terms = EntitySchema(types_of(entity.declared.key), types_of(entity.declared.attributes), ("CRM",))

    def told(reached: dict[str, Any], *rows: dict[str, object]) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
        path = lines(tmp_path / "rows.json", *rows)
        batch = statements(raw_of(spark, feed, path), entity, feed, INGESTED).transform(told_apart, terms)
        watch = Watch(entity, reached, INGESTED)
        found = tally_of(batch, terms, watch.counted()).watched
        return watch.notes(found), watch.remembered(found)

    notes, reached = told(
        {},
        {"id": "1", "ts": "2026-03-01", "seq": 9, "name": "Ann", "age": 7},
        {"id": "2", "ts": "2026-03-02", "seq": 10, "name": "Bea", "age": "old"},
        {"id": "3", "ts": "2027-01-01", "seq": None, "name": "Cat", "age": 1},
    )
    assert notes == (
        "rows with a time after the run's own: 1",
        "rows of feed crm with a value its attribute cannot hold, kept in `extra`: 1",
    )
    assert reached == {"CRM": {"time": 1798761600000000, "sequence": "10"}}

    notes, later = told(
        reached,
        {"id": "1", "ts": "2026-03-05", "seq": 9, "name": "Ann", "age": 7},
        {"id": "2", "ts": "2027-01-01", "seq": 11, "name": "Bea", "age": 8},
    )
    assert notes == (
        "rows with a time after the run's own: 1",
        "rows of CRM with a time before its latest: 1",
        "rows of CRM with a sequence below its highest: 1",
    )
    assert later == {"CRM": {"time": 1798761600000000, "sequence": "11"}}

    assert told(later, {"id": "1", "ts": "no time", "seq": 1, "name": "Ann", "age": 7}) == ((), later), "a refused row says nothing"


def test_a_batch_is_later_than_anything_only_if_nobody_had_got_as_far() -> None:
    entity, _ = entity_with(FEED, attributes={"name": "string", "age": "int"})
    reached = {"CRM": {"time": micros_of(INGESTED)}, "CORE": {"time": micros_of(INGESTED) - 10}, "KYC": {"sequence": "7"}}
    watch, moment = Watch(entity, reached, INGESTED), timedelta(microseconds=1)
    assert watch.is_behind(INGESTED + moment)
    assert not watch.is_behind(INGESTED), "what is said of the same instant may come before or after it"
    assert not watch.is_behind(INGESTED - moment), "though one source has not got as far"
    assert Watch(entity, {}, INGESTED).is_behind(INGESTED), "before anybody has spoken"
