"""From lines to statements: values, presence, time, op."""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from tests.frames.contract.feeds import by, lines, stated

COLUMNS = [
    "id",
    "name",
    "address",
    "status",
    "source_system",
    "source_type",
    "source_path",
    "source_file",
    "feed",
    "source_event_ts",
    "source_sequence_id",
    "op",
    "load_type",
    "precedence_rank",
    "is_deleted",
    "asserted_columns",
    "time_basis",
    "snapshot_ts",
    "extra",
    "payload",
    "extraction_version",
    "__karat_kind",
    "__karat_reason",
    "__karat_rule",
    "__karat_original",
    "__karat_names",
    "__karat_misfit",
]


def test_a_partial_line_asserts_the_fields_it_has(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "crm 1.ndjson",
        {"id": "C1", "ts": "2026-03-01T09:00:00Z", "op": "c", "lsn": 7, "name": "Jane", "address": "12 Market", "status": "Active"},
        {"id": "C2", "ts": "2026-03-03 10:00:00+02:00", "op": "U", "lsn": 9007199254740993, "address": None},
        {"id": "C3", "ts": "2026-03-05", "op": "delete", "name": "ignored", "shoe": 43},
        "null",
        "",
        {"id": None, "ts": "2026-03-05", "op": "u"},
        {"id": "C6", "op": "u"},
        {"id": "C7", "ts": "2026-03-05", "op": "explode"},
        "{not json",
        {"ts": "2026-03-06", "op": "t"},
    )
    rows = stated(spark, path, {"load_type": "PARTIAL", "op": "op", "sequence": "lsn"})
    assert list(rows[0].__fields__) == COLUMNS
    assert len(rows) == 10
    found = by(rows)
    first = found["C1"]
    assert (first.name, first.address, first.status, first.op, first.source_sequence_id) == ("Jane", "12 Market", "Active", "c", "7")
    assert first.asserted_columns == ["name", "address", "status"]
    assert (first.source_path, first.source_file, first.source_type) == (str(path), "crm 1.ndjson", "file")
    assert (first.source_system, first.feed, first.precedence_rank, first.time_basis) == ("CRM", "crm", 1, "source")
    assert first.source_event_ts == datetime(2026, 3, 1, 9)  # noqa: DTZ001
    second = found["C2"]
    assert (second.asserted_columns, second.address, second.source_sequence_id) == (["address"], None, "9007199254740993")
    assert second.source_event_ts == datetime(2026, 3, 3, 8)  # noqa: DTZ001
    gone = found["C3"]
    assert (gone.op, gone.is_deleted, gone.asserted_columns, gone.name, gone.extra) == ("d", True, [], None, {"shoe": "43"})
    kinds = sorted((row["__karat_kind"], row["__karat_rule"] or "", row["__karat_reason"] or "") for row in rows)
    assert kinds == [
        ("ignored", "", ""),
        ("ignored", "", ""),
        ("refused", "event time", "ts: nothing is no time between the years 1 and 9999"),
        ("refused", "null key", "id is null"),
        ("refused", "op", "op: 'explode' is none of c, r, u, d, t"),
        ("refused", "unparsable", "a line that is not exactly one JSON object"),
        ("row", "", ""),
        ("row", "", ""),
        ("row", "", ""),
        ("row", "", ""),
    ]
    assert any(row.op == "t" and row["__karat_kind"] == "row" and row.id is None for row in rows)
    assert [row["__karat_original"] for row in rows if row["__karat_rule"] == "unparsable"] == ["{not json"]
    assert first.snapshot_ts is None
    assert UTC is not None
