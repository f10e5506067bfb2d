"""Beliefs through whole runs: the printed answers, receipts, and a past that never changes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.errors import ConfigError
from tests.flows.bronze.test_printed_histories import STORIES
from tests.support.beliefs import RULES, declare, expected_history, expected_receipts, in_order, table_rows
from tests.support.entities import CUSTOMER, drop, entity_project
from tests.support.projects import versions
from tests.support.tables import view

CORE_DELETES = [{**RULES[0], "delete": {"sources": ["CORE"]}}]
TABLES = ("customer", "customer_history", "customer_restatements", "customer_conflicts")


def known(number: int) -> datetime:
    return datetime(2026, 4, 1, number, tzinfo=UTC)


@dataclass
class Told:
    """The printed stories, played one event a run, and what the history showed after each."""

    folder: Path
    project: Project
    shown: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    notes: dict[int, tuple[str, ...]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = entity_project(tmp_path_factory.mktemp("beliefs"), CUSTOMER)
    declare(folder, RULES)
    told = Told(folder, Project.open(folder, spark=spark))
    for number in range(5):
        for story, events in STORIES.items():
            if number < len(events):
                system, event = events[number]
                drop(folder, f"{system}/{story}-{number}.ndjson", [{"customer_id": story, **event}])
        report = told.project.run(now=known(number))
        assert report.ok, report.stages
        told.shown[number] = table_rows(folder, "customer_history")
        told.notes[number] = next(stage.notes for stage in report.stages if stage.name == "silver.customer")
    declare(folder, CORE_DELETES, "strict")  # asked, never run: what is believed as of a time needs no table
    told.project = Project.open(folder, spark=spark)
    return told


def at(told: Told, moment: str, belief: str = "customer", known_at: datetime | None = None) -> dict[str, tuple[Any, ...]]:
    rows = told.project.as_of(belief, valid_at=datetime.fromisoformat(f"2026-{moment}"), known_at=known_at).collect()
    return {row["customer_id"]: (row["status"], row["address"], row["is_deleted"]) for row in rows}


def test_the_printed_answers_come_out(told: Told) -> None:
    noon, evening, next_day, gone = "03-02 12:00", "03-02 19:00", "03-03 10:00", "03-04 13:00"
    assert [at(told, moment)["two"][0] for moment in (noon, evening, next_day)] == ["Restricted", "Active", "Active"]
    assert [at(told, moment)["all"] for moment in (noon, evening, next_day, gone)] == [
        ("Restricted", "12 Market Street", False),
        ("Active", "12 Market Street", False),
        ("Active", "18 King Street", False),
        ("Active", "18 King Street", True),
    ]
    assert at(told, gone, "strict")["all"] == ("Active", "18 King Street", False)


def test_every_period_is_what_the_reference_believes(told: Told) -> None:
    for number, shown in told.shown.items():
        assert in_order(shown) == in_order(list(expected_history(told.folder, known(number)))), number


def test_a_past_answer_never_changes(told: Told) -> None:
    """What the history showed after a run is what as-of says today about that moment."""
    for number, shown in told.shown.items():
        current = {row["bk"]: row for row in shown if row["is_current"]}
        found = {row["customer_id"]: row for row in told.project.as_of("customer", known_at=known(number)).collect()}
        assert found.keys() == current.keys()
        for key, row in found.items():
            assert (row["status"], row["address"], row["name"], row["is_deleted"]) == tuple(
                current[key][name] for name in ("status", "address", "name", "is_deleted")
            )
            assert {name: bytes(whose["record_hash"]) for name, whose in row["because"].items()} == {
                name: whose["record_hash"] for name, whose in current[key]["because"].items()
            }


def test_the_current_table_is_the_last_period_of_the_history(told: Told) -> None:
    history = [row for row in table_rows(told.folder, "customer_history") if row["is_current"]]
    period = {"valid_from", "valid_to", "is_current"}
    current = sorted(table_rows(told.folder, "customer"), key=lambda row: row["bk"])
    assert current == [{name: value for name, value in row.items() if name not in period} for row in in_order(history)]


def test_late_statements_leave_receipts_and_others_do_not(told: Told) -> None:
    found = table_rows(told.folder, "customer_restatements")
    expected = [receipt for number in range(1, 5) for receipt in expected_receipts(told.folder, known(number - 1), known(number))]
    assert [(row["bk"], row["valid_from"], row["changed"]) for row in in_order(found)] == [
        (row["bk"], row["valid_from"], row["changed"]) for row in in_order(expected)
    ]
    two = next(row for row in found if row["bk"] == "two")
    assert (two["before"], two["after"], two["cause"], two["valid_to"]) == (
        {"status": "Restricted"},
        {"status": "Active"},
        "statement",
        None,
    )
    assert two["because"]["status"]["source_system"] == "CORE"
    assert two["restated_at"] == known(3)
    assert told.notes[2] == ()
    assert told.notes[3] == ("2 restatements of the past: see silver.customer_restatements",)


def test_where_sources_differ_is_kept(told: Told) -> None:
    found = {
        (row["bk"], row["attribute"]): (row["value"], [word["value"] for word in row["says"]])
        for row in table_rows(told.folder, "customer_conflicts")
    }
    assert found == {}


def test_a_belief_is_verified_like_a_timeline(told: Told) -> None:
    found = told.project.verify("silver.customer")
    assert (found.equal, found.differences) == (True, ())


def test_a_run_without_news_writes_nothing_and_a_redelivery_no_row(told: Told) -> None:
    before = [versions(told.folder, f"silver.{name}") for name in TABLES]
    rows = [view(told.folder, f"silver.{name}") for name in TABLES]
    assert told.project.run(["+silver.customer"], now=known(6)).ok
    assert [versions(told.folder, f"silver.{name}") for name in TABLES] == before
    system, event = STORIES["all"][1]
    drop(told.folder, f"{system}/again.ndjson", [{"customer_id": "all", **event}])
    report = told.project.run(["+silver.customer"], now=known(7))
    assert [stage.status for stage in report.stages if stage.name == "silver.customer"] == ["unchanged"]
    # the history alone has a commit more: it says that the evidence has been consumed
    assert [versions(told.folder, f"silver.{name}") for name in TABLES] == [before[0], before[1] + 1, *before[2:]]
    assert [view(told.folder, f"silver.{name}") for name in TABLES] == rows


def test_a_rule_that_was_used_is_not_edited(told: Told) -> None:
    edited = [{**RULES[0], "delete": {"sources": ["CORE", "CRM"]}}]
    declare(told.folder, edited)
    try:
        with pytest.raises(
            ConfigError,
            match=r"rule version 1 of .* has been edited since",
        ):
            Project.open(told.folder).plan()
    finally:
        declare(told.folder, RULES)
