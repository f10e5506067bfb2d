"""Files that are delivered again under other names: every arrival is kept and counted, and nothing else changes."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from karat.telemetry.events import Rows
from tests.support.beliefs import RULES, declare
from tests.support.entities import CRM, CUSTOMER, drop, entity_project, held

PAYMENT = {
    "kind": "entity",
    "name": "payment",
    "type": "transaction",
    "key": ["payment_id"],
    "attributes": {"amount": "int", "a.b 'c'": "string"},
    "feeds": [{**CRM, "name": "pay", "from": {"kind": "files", "path": "data/pay/*.ndjson", "format": "json"}}],
}
SAID = [
    {"customer_id": "a", "op": "c", "source_event_ts": "2026-03-01", "name": "Ann", "address": "Rome", "status": "Active"},
    {"customer_id": "b", "op": "c", "source_event_ts": "2026-03-01", "name": "Bob", "address": "Bern", "status": "Active"},
    {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-04", "status": "Closed"},
    {"customer_id": "a", "op": "u", "source_event_ts": "2026-03-02", "name": "Anna"},
    {"customer_id": "b", "op": "d", "source_event_ts": "2026-03-05"},
    {"customer_id": "b", "op": "d", "source_event_ts": "2026-03-05"},
    {"customer_id": "b", "op": "d", "source_event_ts": "2026-03-06"},  # opens no version
]
PAID = [{"payment_id": str(number), "op": "c", "source_event_ts": "2026-03-01", "amount": number, "a.b 'c'": "x"} for number in range(3)]
CHAIN = ("customer_id", "effective_from", "effective_to", "name", "address", "status", "is_deleted", "source_file", "first_seen_ts")
PERIOD = ("customer_id", "valid_from", "valid_to", "name", "address", "status", "is_deleted")
LATER = ("crm/2.ndjson", "crm/3.ndjson", "crm/0.ndjson")
"""The names under which the file comes again; the last of them is before the first, and may be put in order otherwise."""


def test_what_comes_again_is_seen_again_and_that_is_all(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER, PAYMENT)
    declare(folder, RULES)
    file, paid = drop(folder, "crm/1.ndjson", SAID), drop(folder, "pay/1.ndjson", PAID)
    first = _ran(folder, spark, 1)
    assert (first["bronze.customer"].inserted, first["bronze.customer"].copies) == (5, 1)
    before, believed = held(folder, "bronze.customer", *CHAIN), held(folder, "silver.customer_history", *PERIOD)
    for number, name in enumerate(LATER, start=2):
        shutil.copy(file, folder / "data" / name)
        shutil.copy(paid, folder / "data" / f"pay/{number}.ndjson")
        rows = _ran(folder, spark, number)["bronze.customer"]
        assert (rows.read, rows.landed, rows.copies, rows.inserted, rows.updated, rows.deleted) == (7, 6, 1, 0, 5, 0)
        assert held(folder, "bronze.customer", *CHAIN) == before
        assert {count for (count,) in held(folder, "bronze.customer", "seen_count", where="NOT is_deleted")} == {number}
        assert held(folder, "bronze.customer", "seen_count", where="is_deleted") == [(3 * number,)]
        assert {(amount, count) for amount, count in held(folder, "bronze.payment", "amount", "seen_count")} == {
            (amount, number) for amount in range(3)
        }
        assert held(folder, "silver.customer_history", *PERIOD) == believed
    project = Project.open(folder, spark)
    assert all(project.verify(name).equal for name in ("customer", "payment"))
    filled = held(folder, "bronze.customer_assertions", "batch_seq", "name", "address", where="status = 'Closed' AND NOT is_deleted")
    # the first arrival heard what came with it, and so does every other
    assert [row[1:] for row in filled] == [("Anna", "Rome")] * (1 + len(LATER))


def _ran(folder: Path, spark: SparkSession, hour: int) -> dict[str, Rows]:
    report = Project.open(folder, spark).run(now=datetime(2026, 4, 1, hour, tzinfo=UTC))
    assert report.ok, [stage.error for stage in report.stages]
    return {stage.name: stage.rows for stage in report.stages}
