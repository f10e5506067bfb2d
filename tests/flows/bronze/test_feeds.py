"""Feeds over several runs: files read once, tables by their changes, snapshots whose silence counts, rows refused and let in later."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report
from tests.support.entities import CRM, CUSTOMER, drop, entity_project, held
from tests.support.projects import land, versions

KYC: dict[str, Any] = {
    "name": "kyc",
    "source_system": "KYC",
    "from": {"kind": "files", "path": "data/kyc/*.csv", "format": "csv"},
    "load_type": "FULL",
    "event_time": "data_date",
    "absence_means": "deleted",
    "max_absent": 0.5,
}
RATING = {"kind": "entity", "name": "rating", "key": ["customer_id"], "attributes": {"risk": "string"}, "sightings": "lazy", "feeds": [KYC]}
TABLED = {
    "kind": "entity",
    "name": "branch",
    "key": {"branch_id": "bigint"},
    "attributes": {"city": "string"},
    "feeds": [
        {
            "name": "changes",
            "source_system": "HQ",
            "from": {"kind": "table", "table": "raw.branches", "mode": "watermark", "watermark": "loaded_at"},
            "load_type": "PARTIAL",
            "event_time": "changed_at",
            "delete_when": "city = 'CLOSED'",
        }
    ],
}
PAYMENT = {
    "kind": "entity",
    "name": "payment",
    "type": "transaction",
    "key": ["payment_id"],
    "attributes": {"amount": "decimal(12,2)"},
    "feeds": [{**CRM, "name": "pay", "from": {"kind": "files", "path": "data/pay/*.ndjson", "format": "json"}}],
}
WIDER = {**CUSTOMER, "attributes": {**CUSTOMER["attributes"], "limit": "decimal(10,2)"}}


SCORE = {
    **RATING,
    "name": "score",
    "attributes": {"risk": "int"},
    "feeds": [{**KYC, "from": {"kind": "files", "path": "data/score/*.csv", "format": "csv"}, "max_absent": 1.0}],
}


def csv(folder: Path, day: str, *rows: str, feed: str = "kyc") -> None:
    path = folder / "data" / feed / f"{day}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["customer_id,risk,data_date", *(f"{row},{day}" for row in rows)]) + "\n", encoding="utf-8")


def event(key: str, day: int, op: str = "c", **said: object) -> dict[str, object]:
    return {"customer_id": key, "op": op, "source_event_ts": f"2026-03-{day:02d}", **said}


def paid(key: str, day: int, amount: str) -> dict[str, object]:
    return {"payment_id": key, "op": "c", "source_event_ts": f"2026-03-{day:02d}", "amount": amount}


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Report]]:
    """Three days: what arrives on each, and how its run ended; on the third the declaration is mended and refused rows come back."""
    folder = entity_project(tmp_path_factory.mktemp("feeds"), CUSTOMER, RATING, TABLED, PAYMENT, SCORE)
    reports = []
    drop(folder, "crm/1.ndjson", [event("a", 1, name="Ann", limit="12.50"), event("a", 1, name="Ann", limit="12.50"), None, "{broken"])
    drop(folder, "pay/1.ndjson", [paid("p1", 1, "10.00"), paid("p2", 1, "5")])
    csv(folder, "2026-03-01", "a,low", "b,low", "c,high", "d,low")
    csv(folder, "2026-03-01", "a,1", "b,2", feed="score")
    land(
        folder,
        "raw.branches",
        """
        branch_id:long | city:string | changed_at:timestamp | loaded_at:timestamp
        1              | Oslo        | 2026-03-01 00:00:00  | 2026-03-01 01:00:00
        2              | Bern        | 2026-03-01 00:00:00  | 2026-03-01 01:00:00
        """,
    )
    reports.append(_run(folder, spark, 1))
    rewritten = folder / "data" / "crm" / "1.ndjson"
    rewritten.write_text(rewritten.read_text() + "\n", encoding="utf-8")
    drop(folder, "crm/2.ndjson", [event("a", 2, "u", status="VIP"), event("x", 2, "explode"), event("late", 5, name="Liv")])
    drop(folder, "pay/2.ndjson", [paid("p1", 1, "10.00"), paid("p2", 2, "6"), paid("p3", 1, "not a number")])
    csv(folder, "2026-03-02", "a,low", "b,low", "c,high")
    csv(folder, "2026-03-02", "a,1", "b,not a number", feed="score")
    csv(folder, "2026-03-03", "a,low")
    (folder / "data" / "kyc" / "2026-03-04.csv").write_text("customer_id,risk,data_date\n", encoding="utf-8")
    land(
        folder,
        "raw.branches",
        """
        branch_id:long | city:string | changed_at:timestamp | loaded_at:timestamp
        1              | CLOSED      | 2026-03-02 00:00:00  | 2026-03-02 01:00:00
        """,
    )
    reports.append(_run(folder, spark, 2))
    entity_project(folder, WIDER)
    drop(folder, "crm/3.ndjson", [event("late", 2, name="Liz"), event("a", 3, "u", limit="99.00")])
    csv(folder, "2026-03-05", "a,low", "b,low", "d,back")
    reports.append(_run(folder, spark, 3))
    return folder, reports


def _run(folder: Path, spark: SparkSession, day: int) -> Report:
    return Project.open(folder, spark=spark).run(now=datetime(2026, 4, day, tzinfo=UTC))


def _stage(report: Report, name: str) -> Any:  # noqa: ANN401
    return next(stage for stage in report.stages if stage.name == f"bronze.{name}")


def _day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def test_every_run_accounts_for_every_row(days: tuple[Path, list[Report]]) -> None:
    _, reports = days
    assert all(report.ok for report in reports), [(stage.name, stage.error) for report in reports for stage in report.stages if stage.error]
    rows = _stage(reports[0], "customer").rows
    assert (rows.read, rows.landed, rows.copies, rows.quarantined, rows.ignored) == (4, 1, 1, 1, 1)
    for report in reports:
        for stage in report.stages:
            assert stage.rows.read == stage.rows.landed + stage.rows.copies + stage.rows.quarantined + stage.rows.ignored


def test_a_file_is_read_once_and_its_rewriting_reported(days: tuple[Path, list[Report]]) -> None:
    folder, reports = days
    assert _stage(reports[1], "customer").rows.read == 3
    assert any("1.ndjson was rewritten after it was read" in note for note in _stage(reports[1], "customer").notes)
    assert held(folder, "bronze.customer_assertions", "copies", where="source_file = '1.ndjson'") == [(2,)]


def test_a_late_statement_takes_its_place(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    found = held(folder, "bronze.customer", "effective_from", "effective_to", "name", where="bk = 'late'")
    assert found == [(_day(2), _day(5), "Liz"), (_day(5), None, "Liv")]


def test_an_attribute_that_joins_opens_no_version_and_was_evidence_before(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    shown = held(folder, "bronze.customer", "effective_from", "status", "limit", where="bk = 'a'")
    assert [(row[0], row[1], None if row[2] is None else str(row[2])) for row in shown] == [
        (_day(1), None, None),
        (_day(2), "VIP", None),
        (_day(3), "VIP", "99.00"),
    ]
    extra = held(folder, "bronze.customer_assertions", "extra", where="source_file = '1.ndjson'")
    assert dict(extra[0][0]) == {"limit": "12.50"}


def test_absence_deletes_only_what_a_trusted_snapshot_leaves_out(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    gone = held(folder, "bronze.rating", "bk", "effective_from", "op", where="is_deleted")
    assert gone == [("c", _day(5), "absent"), ("d", _day(2), "absent")]
    back = held(folder, "bronze.rating", "bk", "effective_from", "risk", where="bk = 'd' AND is_current")
    assert back == [("d", _day(5), "back")]


def test_a_snapshot_that_would_delete_too_much_or_is_empty_is_quarantined_whole(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    refused = held(folder, "bronze.rating_quarantine", "rule", "source_file")
    assert refused == [("empty snapshot", "2026-03-04.csv"), ("max_absent", "2026-03-03.csv")]


def test_a_key_whose_row_was_refused_is_not_taken_for_absent(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    assert held(folder, "bronze.score", "bk", "risk", "is_deleted", where="is_current") == [("a", 1, False), ("b", 2, False)]
    assert held(folder, "bronze.score_assertions", "op", "snapshot_ts", where="bk IS NULL") == [("absent", _day(1))]


def test_a_table_is_read_by_its_watermark(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    found = held(folder, "bronze.branch", "branch_id", "effective_from", "city", "is_deleted")
    assert found == [(1, _day(1), "Oslo", False), (1, _day(2), "Oslo", True), (2, _day(1), "Bern", False)]


def test_transactions_are_facts_with_corrections_beside_them(days: tuple[Path, list[Report]]) -> None:
    folder, _ = days
    found = held(folder, "bronze.payment", "payment_id", "amount", "seen_count", "is_current")
    assert [(row[0], str(row[1]), *row[2:]) for row in found] == [
        ("p1", "10.00", 2, None),
        ("p2", "5.00", 1, None),
        ("p2", "6.00", 1, None),
    ]
    facts = held(folder, "bronze.payment", "record_hash", where="payment_id = 'p2' AND corrects IS NULL")
    corrections = held(folder, "bronze.payment", "corrects", where="payment_id = 'p2' AND corrects IS NOT NULL")
    assert facts == corrections


def test_refused_rows_come_back_at_their_own_time_once_the_rules_allow(days: tuple[Path, list[Report]], spark: SparkSession) -> None:
    folder, _ = days
    before = held(folder, "bronze.customer_quarantine", "rule", "replayed_by")
    assert [row[0] for row in before] == ["op", "unparsable"]
    crm = {**CRM, "op": "replace(op, 'explode', 'c')"}
    entity_project(folder, {**WIDER, "feeds": [crm, CUSTOMER["feeds"][1]]})
    project = Project.open(folder, spark=spark)
    done = project.replay("customer", now=datetime(2026, 4, 4, tzinfo=UTC))
    assert (done.admitted, done.waiting) == (1, 1)
    assert held(folder, "bronze.customer", "effective_from", where="bk = 'x'") == [(_day(2),)]
    assert [row[1] is not None for row in held(folder, "bronze.customer_quarantine", "rule", "replayed_by")] == [True, False]
    assert project.replay("customer").admitted == 0


def test_every_timeline_is_what_its_evidence_says(days: tuple[Path, list[Report]], spark: SparkSession) -> None:
    project = Project.open(days[0], spark=spark)
    for entity in ("customer", "rating", "branch", "payment"):
        found = project.verify(entity)
        assert found.equal, found.differences


def test_running_again_commits_nothing(days: tuple[Path, list[Report]], spark: SparkSession) -> None:
    folder, _ = days
    tables = [f"bronze.{name}{suffix}" for name in ("customer", "rating", "branch", "payment") for suffix in ("", "_assertions")]
    before = {name: versions(folder, name) for name in tables}
    report = Project.open(folder, spark=spark).run()
    assert {stage.status for stage in report.stages} == {"unchanged"}
    assert {name: versions(folder, name) for name in tables} == before
