"""GoldenGate's messages to statements."""

from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.frames.contract.feeds import by, lines, stated


def message(op: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401
    head = {
        "table": "APPUSER.CUSTOMER",
        "op_type": op,
        "op_ts": "2026-03-01 09:00:00.123456",
        "current_ts": "2026-03-01T09:00:01.123000",
        "pos": "00000000000000002928",
    }
    return {**head, **given}


def test_images_flags_and_positions(spark: SparkSession, tmp_path: Path) -> None:
    image = {
        "ID": "1",
        "NAME": "Jane",
        "NAME_isMissing": False,
        "ADDRESS": None,
        "ADDRESS_isMissing": True,
        "STATUS": None,
        "STATUS_isMissing": False,
    }
    path = lines(
        tmp_path / "gg.json",
        message("I", after={**image, "ID": "inserted"}),
        message("U", before={"ID": "old"}, after={**image, "ID": "updated"}),
        message("D", before={**image, "ID": "deleted"}, after={"ID": "not this"}),
        message("u", after={"ID": "lower case", "STATUS": "x"}),
        message("T"),
        message("I"),
        {"table": "APPUSER.CUSTOMER", "after": {"ID": "1"}},
        "null",
    )
    rows = stated(spark, path, {"envelope": "goldengate"})
    found = by(rows)
    assert {row.id: (row.op, row.asserted_columns, row.name, row.extra) for row in rows[:4]} == {
        "inserted": ("c", ["name", "status"], "Jane", None),
        "updated": ("u", ["name", "status"], "Jane", None),
        "deleted": ("d", [], None, None),
        "lower case": ("u", ["status"], None, None),
    }
    assert found["inserted"].source_sequence_id == "00000000000000002928"
    assert [(row["__karat_kind"], row["__karat_reason"]) for row in rows[4:]] == [
        ("row", None),
        ("refused", "a message without the image after it"),
        ("refused", "a message that does not say what happened"),
        ("ignored", None),
    ]


def test_times_in_every_form(spark: SparkSession, tmp_path: Path) -> None:
    exact = datetime(2026, 3, 1, 9, 0, 0, 123456)  # noqa: DTZ001
    told = {
        "2026-03-01 09:00:00.123456": exact,
        "2026-03-01 09:00:00.123456789": exact,
        "2026-03-01T09:00:00.123456Z": exact,
        "2026-03-01T10:00:00.123456+01:00": exact,
        "2026-03-01T09:00:00": exact.replace(microsecond=0),
        "1772355600": exact.replace(microsecond=0),
        "1772355600123": exact.replace(microsecond=123000),
        "1772355600123456": exact,
        "1772355600123456789": exact,
        "09:00:00": None,
        "yesterday": None,
        "20260301090000": None,
        "10000-01-01 00:00:00": None,
        "0000-12-31 00:00:00": None,
        "": None,
    }
    path = lines(tmp_path / "gg.json", *(message("I", op_ts=text, after={"ID": text}) for text in told))
    rows = stated(spark, path, {"envelope": "goldengate"})
    assert {row.id: row.source_event_ts for row in rows} == told
    assert {row["__karat_rule"] for row in rows if row.source_event_ts is None} == {"event time"}
