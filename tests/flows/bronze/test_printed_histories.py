"""The worked examples as they are printed: every event arrives in a run of its own, in the printed order of arrival."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CUSTOMER, drop, entity_project, held
from tests.support.projects import versions

Event = dict[str, Any]


def crm(when: str, op: str, **said: str) -> tuple[str, Event]:
    return "crm", {"source_event_ts": f"2026-{when}", "op": op, **said}


def core(when: str, op: str, **said: str) -> tuple[str, Event]:
    return "core", {"source_event_ts": f"2026-{when}", "op": op, **said}


JANE = {"name": "Jane Carter", "address": "12 Market Street", "status": "Active"}
STORIES: dict[str, list[tuple[str, Event]]] = {
    # one source: insert, partial update, delete, and an update that arrives late
    "one": [
        crm("03-01 09:00:00", "c", **JANE),
        crm("03-03 10:00:00", "u", address="18 King Street"),
        crm("03-05 08:30:00", "d"),
        crm("03-02 15:00:00", "u", status="Restricted"),
    ],
    # two sources that contradict each other about the status
    "two": [
        crm("03-01 09:00:00", "c", status="Active"),
        core("03-02 10:00:00", "u", status="Restricted"),
        crm("03-03 09:00:00", "u", status="Active"),
        core("03-02 18:00:00", "u", status="Active"),
    ],
    # all of it at once; the fourth event arrives last
    "all": [
        crm("03-01 09:00:00", "c", **JANE),
        core("03-02 10:00:00", "u", status="Restricted"),
        crm("03-03 09:00:00", "u", address="18 King Street"),
        crm("03-04 12:00:00", "d"),
        core("03-02 18:00:00", "u", status="Active"),
    ],
}
SHOWN = ("effective_from", "effective_to", "source_system", "name", "address", "status", "is_deleted", "is_current")


@pytest.fixture(scope="module")
def told(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Project]:
    folder = entity_project(tmp_path_factory.mktemp("printed"), CUSTOMER)
    project = Project.open(folder, spark=spark)
    for number in range(5):
        for story, events in STORIES.items():
            if number < len(events):
                system, event = events[number]
                drop(folder, f"{system}/{story}-{number}.ndjson", [{"customer_id": story, **event}])
        report = project.run(now=datetime(2026, 4, 1, number, tzinfo=UTC))
        assert report.ok, report.stages
    return folder, project


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(f"2026-{text}+00:00")


def _history(folder: Path, story: str) -> list[tuple[Any, ...]]:
    return held(folder, "bronze.customer", *SHOWN, where=f"bk = '{story}'")


def test_one_source_with_a_late_update_comes_out_as_printed(told: tuple[Path, Project]) -> None:
    assert _history(told[0], "one") == [
        (_moment("03-01 09:00"), _moment("03-02 15:00"), "CRM", "Jane Carter", "12 Market Street", "Active", False, False),
        (_moment("03-02 15:00"), _moment("03-03 10:00"), "CRM", "Jane Carter", "12 Market Street", "Restricted", False, False),
        (_moment("03-03 10:00"), _moment("03-05 08:30"), "CRM", "Jane Carter", "18 King Street", "Active", False, False),
        (_moment("03-05 08:30"), None, "CRM", "Jane Carter", "18 King Street", "Active", True, True),
    ]


def test_two_sources_in_conflict_come_out_as_printed(told: tuple[Path, Project]) -> None:
    assert [(row[0], row[2], row[5]) for row in _history(told[0], "two")] == [
        (_moment("03-01 09:00"), "CRM", "Active"),
        (_moment("03-02 10:00"), "CORE", "Restricted"),
        (_moment("03-02 18:00"), "CORE", "Active"),
        (_moment("03-03 09:00"), "CRM", "Active"),
    ]


def test_partials_precedence_and_a_delete_across_two_sources_come_out_as_printed(told: tuple[Path, Project]) -> None:
    assert [(*row[:3], *row[4:]) for row in _history(told[0], "all")] == [
        (_moment("03-01 09:00"), _moment("03-02 10:00"), "CRM", "12 Market Street", "Active", False, False),
        (_moment("03-02 10:00"), _moment("03-02 18:00"), "CORE", "12 Market Street", "Restricted", False, False),
        (_moment("03-02 18:00"), _moment("03-03 09:00"), "CORE", "12 Market Street", "Active", False, False),
        (_moment("03-03 09:00"), _moment("03-04 12:00"), "CRM", "18 King Street", "Active", False, False),
        (_moment("03-04 12:00"), None, "CRM", "18 King Street", "Active", True, True),
    ]


def test_the_timeline_is_what_its_evidence_says(told: tuple[Path, Project]) -> None:
    assert told[1].verify("customer").equal


def test_the_reference_tells_the_same_history_without_a_session(told: tuple[Path, Project]) -> None:
    folder, project = told
    for story in STORIES:
        versions = [tuple(row[name] for name in SHOWN) for row in project.history("customer", story).versions]
        assert versions == _history(folder, story)


def test_running_again_commits_nothing(told: tuple[Path, Project]) -> None:
    folder, project = told
    before = (held(folder, "bronze.customer_assertions", "bk"), _versions(folder))
    report = project.run(now=datetime(2026, 4, 2, tzinfo=UTC))
    assert [stage.status for stage in report.stages] == ["unchanged"]
    assert (held(folder, "bronze.customer_assertions", "bk"), _versions(folder)) == before


def _versions(folder: Path) -> tuple[int, int]:
    return versions(folder, "bronze.customer"), versions(folder, "bronze.customer_assertions")
