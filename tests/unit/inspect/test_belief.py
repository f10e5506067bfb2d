"""Why something is believed, as Python asks it: from evidence on disk, at any pair of times, without a JVM."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from karat import Project
from karat.config.load import load
from karat.errors import ConfigError, NoAnswer, SourceUnavailable
from karat.inspect.belief import Why, as_of_key, ask, conflicts, why
from karat.inspect.values_over_time import MOST, values_over_time
from tests.support.lakes import believing_project, declare, record_conflicts, record_rules, tell
from tests.unit.reference.beliefs import NOW, after_run

RULE: dict[str, Any] = {
    "version": 1,
    "in_force_from": "2026-01-01",
    "groups": {
        "status": {"attributes": ["status"], "by": "precedence", "sources": {"CORE": 2, "CRM": 1}},
        "contact": {"attributes": ["name", "address"], "by": "recency", "sources": ["CRM", "CORE"]},
    },
    "delete": {"sources": ["CORE"], "by": "precedence"},
}
STORY = """
    key  | source | rank | op | at               | name        | address          | status     | file
    C123 | CRM    | 1    | c  | 2026-03-01 09:00 | Jane Carter | 12 Market Street | Active     | crm-1.ndjson
    C123 | CORE   | 2    | u  | 2026-03-02 10:00 | .           | .                | Restricted | core-2.ndjson
    C123 | CRM    | 1    | u  | 2026-03-03 09:00 | .           | 18 King Street   | .          | crm-3.ndjson
    C123 | CRM    | 1    | d  | 2026-03-04 12:00 | .           | .                | .          | crm-4.ndjson
    C123 | CORE   | 2    | u  | 2026-03-02 18:00 | .           | .                | Active     | core-5.ndjson
    C7   | CRM    | 1    | c  | 2026-03-01 09:00 | Bob         | -                | Open       | crm-6.ndjson
    C7   | CORE   | 2    | c  | 2026-03-02 09:00 | Rob         | -                | Closed     | core-7.ndjson
"""
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATE = after_run(5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = believing_project(tmp_path_factory.mktemp("beliefs"), [RULE])
    record_conflicts(folder, tell(folder, STORY), NOW)
    record_rules(folder)
    return folder


def told(why: Why) -> list[str]:
    return [f"{loser.statement.source_system} {loser.statement.at:%d %H} {loser.value}: {loser.reason}" for loser in why.losers]


def test_the_winner_is_named_with_its_origin_and_every_loser_with_its_reason(folder: Path) -> None:
    found = Project.open(folder).why("customer", key={"customer_id": "C123"}, attribute="status")
    assert (found.attribute, found.value, found.rule_version, found.group, found.by) == ("status", "Active", 1, "status", "precedence")
    won = found.winner
    assert won
    assert (won.source_system, won.op, won.source_file, won.source_path) == ("CORE", "u", "core-5.ndjson", "data/core-5.ndjson")
    assert (won.at, won.source_event_ts) == (datetime(2026, 3, 2, 18, tzinfo=UTC),) * 2
    assert (won.ingest_ts, won.ingest_run_id, len(won.record_hash)) == (LATE, "run-005", 32)
    assert told(found) == [
        "CRM 01 09 Active: rank",
        "CORE 02 10 Restricted: superseded",
        "CRM 03 09 Active: inherited only",
        "CRM 04 12 Active: deletion",
    ]
    statement, value, reason = found.losers[1]
    assert (statement.source_file, value, reason) == ("core-2.ndjson", "Restricted", "superseded")


@pytest.mark.parametrize(
    ("known_at", "valid_at", "value", "late"),
    [
        (LATE, None, "Active", None),
        (LATE - timedelta(microseconds=1), None, "Restricted", "CORE 02 18 Active: not yet known"),
        (LATE, NOON, "Restricted", "CORE 02 18 Active: not yet valid"),
        (LATE.replace(tzinfo=None), NOON.replace(tzinfo=None), "Restricted", "CORE 02 18 Active: not yet valid"),
        (LATE.astimezone(timezone(timedelta(hours=9))), None, "Active", None),
    ],
    ids=["once it was known", "before it was known", "before it was so", "naive times are UTC", "any time zone"],
)
def test_the_late_clearance_counts_from_when_it_was_known_and_so(
    folder: Path, known_at: datetime, valid_at: datetime | None, value: str, late: str | None
) -> None:
    found = why(load(folder), "customer", "C123", "status", valid_at=valid_at, known_at=known_at)
    assert found.value == value
    assert late is None or late in told(found)


def test_without_an_attribute_each_is_explained_and_whether_it_is_deleted(folder: Path) -> None:
    found = Project.open(folder).why("silver.customer", "customer_id=C123")
    assert {name: each.value for name, each in found.items()} == {
        "name": "Jane Carter",
        "address": "18 King Street",
        "status": "Active",
        "is_deleted": False,
    }
    assert [(loser.value, loser.reason) for loser in found["is_deleted"].losers][-1] == (True, "not allowed")
    assert found["is_deleted"].group == "delete"


def test_what_is_believed_of_one_key(folder: Path) -> None:
    config = load(folder)
    row = as_of_key(config, "customer", "C123", known_at=LATE - timedelta(hours=1))
    assert row
    assert (row["customer_id"], row["status"], row["is_deleted"], row["rule_version"]) == ("C123", "Restricted", False, 1)
    assert row["because"]["status"]["source_event_ts"] == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert as_of_key(config, "customer", "C123", valid_at=datetime(2026, 2, 1, tzinfo=UTC)) is None
    assert as_of_key(config, "customer", "C123", known_at=datetime(2025, 2, 1, tzinfo=UTC)) is None
    assert as_of_key(config, "customer", "C9") is None


def test_what_cannot_be_answered_says_what_is_missing(folder: Path, tmp_path: Path) -> None:
    config = load(folder)
    with pytest.raises(NoAnswer, match="there is no evidence about customer_id=C9"):
        why(config, "customer", "C9", "status")
    with pytest.raises(NoAnswer, match=r"no rule .* in force at 2025-12-31 .* version 1, begins at 2026-01-01"):
        why(config, "customer", "C123", known_at=datetime(2025, 12, 31, tzinfo=UTC))
    with pytest.raises(ConfigError, match="no attribute 'statsu'") as wrong:
        why(config, "customer", "C123", "statsu")
    assert wrong.value.remedy == "did you mean status?"
    with pytest.raises(ConfigError, match="did you mean address"):
        conflicts(config, "customer", "adress")
    with pytest.raises(ConfigError, match="the beliefs are: customer"):
        why(config, "client", "C123")
    empty = load(believing_project(tmp_path, [RULE]))
    with pytest.raises(NoAnswer, match="there is no evidence"):
        why(empty, "customer", "C123")
    with pytest.raises(SourceUnavailable, match=r"no table silver\.customer_conflicts yet"):
        conflicts(empty, "customer")


def test_before_anything_was_known_every_statement_is_not_yet_known(folder: Path) -> None:
    found = why(load(folder), "customer", "C123", "status", known_at=datetime(2026, 5, 1, tzinfo=UTC))
    assert (found.value, found.winner) == (None, None)
    assert {loser.reason for loser in found.losers} == {"not yet known"}


def test_an_edited_rule_is_refused_and_a_further_version_is_not(tmp_path: Path) -> None:
    folder = believing_project(tmp_path, [RULE])
    tell(folder, STORY)
    record_rules(folder)
    declare(folder, [RULE, {**RULE, "version": 2, "in_force_from": "2026-06-01"}])
    assert why(load(folder), "customer", "C123", "status").rule_version == 2
    assert why(load(folder), "customer", "C123", "status", known_at=datetime(2026, 5, 31, tzinfo=UTC)).rule_version == 1
    declare(folder, [{**RULE, "delete": {"sources": ["CRM"]}}])
    for ask_it in (why, as_of_key):
        with pytest.raises(ConfigError, match="has been edited since"):
            ask_it(load(folder), "customer", "C123")


def test_an_attribute_that_is_no_longer_declared_is_explained_by_the_rule_of_its_time(tmp_path: Path) -> None:
    groups = {**RULE["groups"], "segment": {"attributes": ["segment"]}}
    attributes = {"name": "string", "address": "string", "status": "string"}
    folder = believing_project(tmp_path, [{**RULE, "groups": groups}], attributes={**attributes, "segment": "string"})
    tell(folder, "key | at | name | segment \n C1 | 1 | Ann | retail")
    believing_project(folder, [{**RULE, "groups": groups}, {**RULE, "version": 2, "in_force_from": "2026-06-20"}])
    then = after_run(1)
    assert why(load(folder), "customer", "C1", "segment", known_at=then).value == "retail"
    assert "segment" in why(load(folder), "customer", "C1", known_at=then)
    now = why(load(folder), "customer", "C1", "segment")
    assert (now.value, now.group, now.losers[0].reason) == (None, None, "not allowed")
    assert "segment" not in why(load(folder), "customer", "C1")


def test_conflicts_are_counted_by_attribute_and_told_whose_word_stands_first(folder: Path) -> None:
    found = conflicts(load(folder), "customer")
    assert found.counts == {"name": 1, "status": 1}
    assert [(row["customer_id"], row["attribute"], row["value"]) for row in found.rows] == [
        ("C7", "name", "Rob"),
        ("C7", "status", "Closed"),
    ]
    assert [(word["source_system"], word["value"], word["won"]) for word in found.rows[1]["says"]] == [
        ("CORE", "Closed", True),
        ("CRM", "Open", False),
    ]
    few = conflicts(load(folder), "customer", limit=1)
    assert (few.counts, len(few.rows)) == (found.counts, 1)
    assert conflicts(load(folder), "customer", "status").counts == {"status": 1}
    assert conflicts(load(folder), "customer", "address").rows == ()


def test_values_over_time_are_periods_of_each_source(folder: Path) -> None:
    found = values_over_time(ask(load(folder), "customer", "C123"), "status")
    periods = {
        source: [f"{period.start:%d %H} {period.value}{' gone' * period.gone}" for period in own] for source, own in found.by_source.items()
    }
    assert periods == {"CORE": ["02 10 Restricted", "02 18 Active"], "CRM": ["01 09 Active", "04 12 Active gone"]}
    assert [(period.source, period.value) for period in found.believed] == [("CRM", "Active"), ("CORE", "Restricted"), ("CORE", "Active")]
    assert [period.end for period in found.believed][-1] is None
    deleted = values_over_time(ask(load(folder), "customer", "C123"), "is_deleted")
    assert deleted.not_allowed == {"CRM"}
    assert [period.value for period in deleted.by_source["CRM"]] == [False, True]


def test_of_many_instants_the_latest_are_shown(tmp_path: Path) -> None:
    folder = believing_project(tmp_path, [RULE])
    lines = "\n".join(f"C1 | 1 | {datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=n):%Y-%m-%d %H:%M} | s{n}" for n in range(MOST + 20))
    tell(folder, "key | run | at | status\n" + lines)
    (own,) = values_over_time(ask(load(folder), "customer", "C1"), "status").by_source.values()
    assert (len(own), own[0].value, own[-1].value) == (MOST, "s20", f"s{MOST + 19}")
