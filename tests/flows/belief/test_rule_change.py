"""What changes a belief about the past besides late files: a new version of the rules, and a refused row that is admitted after all."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from karat import Project
from tests.support.beliefs import RULES, declare, expected_history, in_order, table_rows
from tests.support.entities import CORE, CRM, CUSTOMER, drop, entity_project

SECOND = {
    **RULES[0],
    "version": 2,
    "in_force_from": "2026-04-02",
    "groups": {**RULES[0]["groups"], "status": {"attributes": ["status"], "by": "recency"}},
}


def day(number: int) -> datetime:
    return datetime(2026, 4, number, tzinfo=UTC)


def receipts(folder: Path, number: int) -> list[tuple[Any, ...]]:
    """The receipts of one day's run, as they read."""
    shown = ("bk", "valid_from", "valid_to", "before", "after", "cause", "rule_version_before", "rule_version")
    rows = [row for row in table_rows(folder, "customer_restatements") if row["restated_at"] == day(number)]
    return [tuple(row[name] for name in shown) for row in in_order(rows)]


def test_a_new_rule_and_a_readmitted_row_leave_receipts(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER)
    declare(folder, RULES)
    march = {number: datetime(2026, 3, number, tzinfo=UTC) for number in range(1, 9)}
    said = {"customer_id": "a", "op": "u"}
    drop(folder, "crm/1.ndjson", [{**said, "source_event_ts": "2026-03-01", "name": "Ann", "status": "Active"}])
    drop(folder, "core/1.ndjson", [{**said, "source_event_ts": "2026-03-02", "status": "Restricted"}])
    drop(folder, "crm/2.ndjson", [{**said, "source_event_ts": "2026-03-05", "status": "Closed"}])
    drop(folder, "core/2.ndjson", [{**said, "source_event_ts": "the third", "status": "Frozen"}])
    assert Project.open(folder, spark).run(now=day(1)).ok
    assert table_rows(folder, "customer")[0]["status"] == "Restricted"

    declare(folder, [*RULES, SECOND])
    project = Project.open(folder, spark)
    assert "rebuild: all evidence is evaluated again by rule version 2" in project.plan(now=day(2)).stages[1].why
    report = project.run(now=day(2))
    assert report.stages[1].notes == ("1 restatement of the past: see silver.customer_restatements",)
    assert receipts(folder, 2) == [("a", march[5], None, {"status": "Restricted"}, {"status": "Closed"}, "rule", 1, 2)]

    core = {**CORE, "event_time": "if(source_event_ts = 'the third', '2026-03-03', source_event_ts)"}
    (folder / "customer.yml").write_text(yaml.safe_dump({**CUSTOMER, "feeds": [CRM, core]}, sort_keys=False), encoding="utf-8")
    project = Project.open(folder, spark)
    assert project.replay("customer", now=day(3)).admitted == 1
    assert project.run(now=day(3)).ok
    assert receipts(folder, 3) == [("a", march[3], march[5], {"status": "Restricted"}, {"status": "Frozen"}, "statement", 2, 2)]
    assert in_order(table_rows(folder, "customer_history")) == in_order(list(expected_history(folder, day(3))))
    answer = project.why("customer", key={"customer_id": "a"}, attribute="status", valid_at=day(1).replace(month=3, day=4))
    assert (answer.value, answer.winner.source_system if answer.winner else None, answer.rule_version) == ("Frozen", "CORE", 2)
