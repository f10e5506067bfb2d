"""A lake written by version 0.1.0 before its timelines followed batch numbers: read and continued as if nothing had changed.

The stored project (`support/lake_v1.tar.gz`) has two batches of customers of three sources, with a truncate and complete
lists, two of payments, and a belief. Its commits name files by their whole paths, which begin with `PROJECT`.
"""

import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.reference import EntitySchema, timeline
from tests.support.entities import drop
from tests.support.processes import ROOT
from tests.support.projects import versions
from tests.support.tables import differences, table_rows

STORED = ROOT / "tests" / "support" / "lake_v1.tar.gz"
PROJECT = "/example/project"
ENTITIES = ("customer", "payment")
TYPES = {"name": "string", "address": "string", "status": "string"}
SCHEMAS = {
    "customer": EntitySchema(("customer_id",), tuple(TYPES), TYPES),
    "payment": EntitySchema(("payment_id",), ("amount",), {"amount": "decimal(12,2)"}, entity_type="transaction"),
}
NEWS = {
    # in time, late before the truncate, an old row again, back after the truncate
    "crm/3.ndjson": [
        {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-12", "status": "Back"},
        {"customer_id": "c", "op": "u", "source_event_ts": "2026-03-03", "address": "Late Street"},
        {"customer_id": "a", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "address": "Rome", "status": "Active"},
        {"customer_id": "d", "op": "c", "source_event_ts": "2026-03-10", "name": "Dan"},
    ],
    "core/3.ndjson": [{"customer_id": "b", "op": "d", "source_event_ts": "2026-03-04"}],
    "kyc/3.ndjson": [{"customer_id": "c", "data_date": "2026-03-03", "name": "c by list", "address": "Bern", "status": "Active"}],
    "pay/3.ndjson": [
        {"payment_id": "p1", "op": "c", "source_event_ts": "2026-03-01", "amount": "11.00"},
        {"payment_id": "p3", "op": "c", "source_event_ts": "2026-03-02", "amount": "7.00"},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored project, as if it had always been here."""
    place = tmp_path_factory.mktemp("earlier")
    with tarfile.open(STORED) as stored:
        stored.extractall(place, filter="data")
    folder = place / "project"
    for log in folder.glob("lake/*/*/_delta_log/*.json"):
        log.write_text(log.read_text(encoding="utf-8").replace(PROJECT, str(folder)), encoding="utf-8")
    return folder


def test_what_was_read_is_not_read_again(folder: Path, spark: SparkSession) -> None:
    tables = [f"bronze.{name}{suffix}" for name in ENTITIES for suffix in ("", "_assertions")]
    before = {name: (versions(folder, name), table_rows(folder, name)) for name in tables}
    report = Project.open(folder, spark).run()
    assert report.ok, [stage.error for stage in report.stages]
    assert {stage.rows.read for stage in report.stages} == {0}
    for name, (_, rows) in before.items():
        assert differences(table_rows(folder, name), rows) == [], name
    assert all(Project.open(folder, spark).verify(name).equal for name in ENTITIES)


def test_what_is_new_is_continued(folder: Path, spark: SparkSession) -> None:
    for file, messages in NEWS.items():
        drop(folder, file, messages)
    project = Project.open(folder, spark)
    report = project.run(now=datetime(2026, 4, 3, tzinfo=UTC))
    assert report.ok, [stage.error for stage in report.stages]
    landed = {stage.name: stage.rows.landed for stage in report.stages}
    assert (landed["bronze.customer"], landed["bronze.payment"]) == (6, 2)
    for name, schema in SCHEMAS.items():
        evidence = table_rows(folder, f"bronze.{name}_assertions")
        assert {row["batch_seq"] for row in evidence} == {1, 2, 3}
        assert differences(table_rows(folder, f"bronze.{name}"), timeline(evidence, schema), {"sk"}) == []
    for name in (*ENTITIES, "silver.customer"):
        found = project.verify(name)
        assert found.equal, (name, found.counts, found.differences)
    assert {stage.status for stage in project.run().stages} == {"unchanged"}
