"""Columns that are new, and columns that are missing."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat.contract.drift import drift_aggregates
from karat.contract.statements import statements
from karat.errors import ContractBreach
from tests.frames.contract.feeds import INGESTED, by, entity_with, files, found_drift, lines, raw_of, stated


def test_a_new_column_is_kept_ignored_told_held_back_or_fatal(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        {"id": "1", "ts": "2026-03-01", "name": "Ann", "shoe": 43.5, "hat": None},
        {"id": "2", "ts": "2026-03-01", "name": "Bea"},
    )

    def read(policy: str) -> list[tuple[str, object]]:
        rows = by(stated(spark, path, {"load_type": "PARTIAL", "drift": {"new_columns": policy}}))
        return [(rows[key]["__karat_reason"] or rows[key]["__karat_kind"], rows[key].extra) for key in ("1", "2")]

    kept = [("row", {"shoe": "43.5", "hat": None}), ("row", None)]
    assert read("keep") == kept
    assert read("warn") == kept
    assert read("ignore") == [("row", None), ("row", None)]
    assert [reason for reason, _ in read("quarantine")] == ["column nobody declared: hat, shoe", "row"]
    with pytest.raises(ContractBreach, match="feed crm: the entity declares no column hat, shoe"):
        read("fail")
    entity, feed = entity_with({"load_type": "PARTIAL", "drift": {"new_columns": "warn"}})
    found = found_drift(statements(raw_of(spark, feed, path), entity, feed, INGESTED), entity)
    assert found.notes == ("feed crm: columns nobody declared, kept in `extra`: hat, shoe",)
    assert found.failures == ()


def test_a_missing_column_fails_a_table_and_is_nothing_to_a_partial_document(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,ts,name\n1,2026-03-01,Ann\n")
    table = {"from": files("csv"), "load_type": "FULL", "map": {"status": "upper(stat)"}}
    with pytest.raises(ContractBreach, match="feed crm: the batch lacks column address, stat"):
        stated(spark, tmp_path, table)
    row = stated(spark, tmp_path, {**table, "drift": {"missing_columns": "keep"}})[0]
    assert (row["__karat_kind"], row.asserted_columns, row.status) == ("row", ["name"], None)
    row = stated(spark, tmp_path, {**table, "drift": {"missing_columns": "quarantine"}})[0]
    assert (row["__karat_rule"], row["__karat_reason"]) == ("drift", "column missing from the batch: address, stat")
    entity, feed = entity_with({**table, "drift": {"missing_columns": "warn"}})
    found = found_drift(statements(raw_of(spark, feed, tmp_path / "a.csv"), entity, feed, INGESTED), entity)
    assert found.notes == ("feed crm: columns missing: address, stat",)
    path = lines(tmp_path / "b.json", {"id": "1", "ts": "2026-03-01", "name": "Ann"}, "null")
    assert by(stated(spark, path, {"load_type": "PARTIAL"}))["1"].asserted_columns == ["name"]
    with pytest.raises(ContractBreach, match="lacks column address, status"):
        stated(spark, path, {"load_type": "FULL"})
    full = stated(
        spark,
        lines(
            tmp_path / "c.json",
            {"id": "1", "ts": "2026-03-01", "name": "A", "address": "b", "status": None},
            {"id": "2", "ts": "2026-03-01"},
        ),
        {"load_type": "FULL"},
    )
    assert [row.asserted_columns for row in full] == [["name", "address", "status"]] * 2


def test_batches_that_cannot_lack_anything(spark: SparkSession, tmp_path: Path) -> None:
    deletes = lines(tmp_path / "a.json", {"id": "1", "ts": "2026-03-01", "op": "d"})
    assert stated(spark, deletes, {"load_type": "FULL", "op": "op"})[0].op == "d"
    assert [row["__karat_kind"] for row in stated(spark, lines(tmp_path / "b.json", "null"), {"load_type": "FULL"})] == ["ignored"]
    (tmp_path / "c.csv").write_text("id,ts\n")
    assert stated(spark, tmp_path / "c.csv", {"from": files("csv"), "load_type": "FULL"}) == []


def test_a_batch_is_gone_through_once_unless_a_complete_document_may_lack_a_column(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.json", {"id": "1", "ts": "2026-03-01", "name": "Ann", "shoe": 1})
    entity, feed = entity_with({"load_type": "PARTIAL"})
    assert drift_aggregates(entity) == {}, "no policy has to know the names of a whole batch"
    plan = statements(raw_of(spark, feed, path), entity, feed, INGESTED)._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("from_json") == 1, "each line is parsed once"


def test_rows_of_a_file_without_a_column_say_nothing_about_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,ts,name,address,status\n1,2026-03-01,Ann,,x\n")
    (tmp_path / "b.csv").write_text("id,ts,name,address\n2,2026-03-01,Bea,\n")
    rows = by(stated(spark, tmp_path, {"from": files("csv"), "load_type": "FULL", "drift": {"missing_columns": "keep"}}))
    assert {key: row.asserted_columns for key, row in rows.items()} == {"1": ["name", "address", "status"], "2": ["name", "address"]}
