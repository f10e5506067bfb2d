"""Content and names that break what trusts them: all of it lands exactly, or is refused with a reason; nothing is lost."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report
from tests.support.entities import CRM, drop, entity_project, held

DOTTED, SPACED, QUOTED = "a.b", "with space", 'quote\'d "twice"'
THING = {
    "kind": "entity",
    "name": "thing",
    "key": ["id", "part no"],
    "attributes": {DOTTED: "string", SPACED: "decimal(38,10)", QUOTED: "bigint", "at": "timestamp"},
    "feeds": [CRM],
}
LONG = "x" * 1_048_576
STRANGE = "Grüße, 日本 \u0000|=\\ 🏦"
MANY_DIGITS = "1234567890123456789012345678.0123456789"
FIRST = [
    {"id": "a|b", "part no": "c", "op": "c", "source_event_ts": "2026-03-01T09:00:00+02:00", DOTTED: LONG, QUOTED: 9007199254740993},
    {
        "id": "a",
        "part no": "b|c",
        "op": "c",
        "source_event_ts": "2026-03-01T09:00:00Z",
        DOTTED: STRANGE,
        "at": "0001-01-01",
    },
    f'{{"id": "n", "part no": "1", "op": "c", "source_event_ts": "9999-12-31 23:59:59.999999", "{SPACED}": {MANY_DIGITS}}}',
    {"id": "t", "part no": "1", "op": "c", "source_event_ts": "2026-03-01", QUOTED: 1},
    {"id": "t", "part no": "2", "op": "c", "source_event_ts": "2026-03-01", QUOTED: {"now": "an object"}},
    {"id": "t", "part no": "3", "op": "c", "source_event_ts": "10000-01-01", QUOTED: 1},
]
SECOND = [
    {"id": "a|b", "part no": "c", "op": "u", "source_event_ts": "2026-03-02", QUOTED: None},
    {"id": "a", "part no": "b|c", "op": "d", "source_event_ts": "2026-03-03"},
    {"id": "t", "part no": "1", "op": "u", "source_event_ts": "2026-02-01", DOTTED: "late"},
]


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Report]]:
    folder = entity_project(tmp_path_factory.mktemp("hostile"), THING)
    reports = []
    for day, rows in enumerate((FIRST, SECOND), start=1):
        drop(folder, f"crm/{day}.ndjson", rows)
        reports.append(Project.open(folder, spark=spark).run(now=datetime(2026, 4, day, tzinfo=UTC)))
    return folder, reports


def test_every_row_lands_or_is_refused_with_a_reason(runs: tuple[Path, list[Report]]) -> None:
    folder, reports = runs
    assert [(report.ok, report.stages[0].error) for report in reports] == [(True, None), (True, None)]
    assert [(report.stages[0].rows.landed, report.stages[0].rows.quarantined) for report in reports] == [(4, 2), (3, 0)]
    assert held(folder, "bronze.thing_quarantine", "rule") == [("event time",), ("type",)]


def test_keys_that_read_alike_stay_apart_and_values_stay_exact(runs: tuple[Path, list[Report]]) -> None:
    folder, _ = runs
    keys = {row[0]: row[1:] for row in held(folder, "bronze.thing", "bk", "id", "part no", where="is_current")}
    assert keys == {"a\\|b|c": ("a|b", "c"), "a|b\\|c": ("a", "b|c"), "n|1": ("n", "1"), "t|1": ("t", "1")}
    assert held(folder, "bronze.thing", SPACED, "effective_from", where="bk = 'n|1'") == [
        (Decimal(MANY_DIGITS), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
    ]
    long = held(folder, "bronze.thing", "effective_from", DOTTED, QUOTED, where="bk = 'a\\|b|c'")
    assert [(row[0].day, row[0].hour, len(row[1]), row[2]) for row in long] == [
        (1, 7, len(LONG), 9007199254740993),
        (2, 0, len(LONG), None),
    ]
    gone = held(folder, "bronze.thing", DOTTED, "at", "is_deleted", where="bk = 'a|b\\|c' AND is_current")
    assert gone == [(STRANGE, datetime(1, 1, 1, tzinfo=UTC), True)]
    assert held(folder, "bronze.thing", DOTTED, QUOTED, where="bk = 't|1'") == [(None, 1), ("late", None)]


def test_the_timeline_and_the_history_agree(runs: tuple[Path, list[Report]], spark: SparkSession) -> None:
    project = Project.open(runs[0], spark=spark)
    found = project.verify("thing")
    assert found.equal, found.differences
    assert len(project.history("thing", {"id": "a|b", "part no": "c"}).versions) == 2
