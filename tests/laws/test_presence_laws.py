"""Laws of presence: which attributes a document says something about, against the reference, whatever the document is wrapped in."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from karat.reference.documents import said, said_by_debezium, said_by_goldengate
from tests.frames.contract.feeds import by, lines, stated

SEED = 20260401
CASES = 400
NAMES = ("a", "b", "c")
FIELDS = {"one": "a", "two": "a.b", "three": "a.b.c", "four": "a.b.c.a", "other": "b.a", "deep": "c.c.c", "last": "c.c.a"}
ATTRIBUTES = dict.fromkeys(FIELDS, "string")
Case = dict[str, Any]


def document(chance: random.Random, depth: int = 4) -> Case:
    """A random document of absent, null and present fields, objects inside objects."""
    return {name: value(chance, depth - 1) for name in NAMES if chance.random() < 0.8}


def value(chance: random.Random, depth: int) -> Any:  # noqa: ANN401  (whatever a document may hold)
    kind = chance.random()
    if kind < 0.2:
        return None
    if depth and kind < 0.8:
        inside = document(chance, depth)
        return json.dumps(inside) if kind < 0.25 else inside
    return chance.choice(["x", "null", "", "{", "[1]", 0, 1.10, True, [1, {"a": 2}], {}])


def flat(chance: random.Random) -> Case:
    found = document(chance)
    if chance.random() < 0.2:  # a field with dots in its own name
        found[chance.choice(["a.b", "c.c.c"])] = value(chance, 0)
    return found


def debezium(chance: random.Random) -> Case:
    image = document(chance)
    for name in NAMES:
        if chance.random() < 0.15:
            image[name] = "__debezium_unavailable_value"
    op = chance.choice(["c", "u", "u", "d"])
    sides = {"before": image, "after": None} if op == "d" else {"before": document(chance), "after": image}
    message = {**sides, "op": op, "source": {"ts_ms": 1772355600123, "lsn": 1}}
    return {"schema": {"type": "struct", "fields": []}, "payload": message} if chance.random() < 0.3 else message


def goldengate(chance: random.Random) -> Case:
    image = document(chance)
    for name in NAMES:
        if chance.random() < 0.4:
            image[f"{name}_isMissing"] = chance.random() < 0.5
    op = chance.choice(["I", "U", "U", "D"])
    return {"op_type": op, "op_ts": "2026-03-01 09:00:00", "pos": "1", ("before" if op == "D" else "after"): image}


def keyed(envelope: str, case: Case, number: int) -> Case:
    """The case with its key where the envelope has it."""
    mark = {"id": str(number), "ts": "2026-03-01"}
    message = case.get("payload", case) if envelope == "debezium" else case
    if envelope in {"flat", "payload"}:
        message.update(mark)
    else:
        side = "before" if message.get("op", message.get("op_type")) in {"d", "D"} else "after"
        message[side].update(mark)
    return case


SAID: Mapping[str, Callable[[Case, Mapping[str, str]], dict[str, Any]]] = {
    "flat": said,
    "payload": said,
    "debezium": said_by_debezium,
    "goldengate": said_by_goldengate,
}
MADE: Mapping[str, Callable[[random.Random], Case]] = {"flat": flat, "payload": document, "debezium": debezium, "goldengate": goldengate}


@pytest.mark.parametrize("envelope", list(SAID))
def test_a_row_says_what_its_document_says(spark: SparkSession, tmp_path: Path, envelope: str) -> None:
    chance = random.Random(f"{SEED} {envelope}")  # noqa: S311  (cases, not secrets)
    cases = [keyed(envelope, MADE[envelope](chance), number) for number in range(CASES)]
    feed: Case = {"envelope": envelope, "map": FIELDS}
    if envelope == "payload":
        paths = {name: f"$.{path}" for name, path in FIELDS.items()}
        feed = {"envelope": envelope, "extraction_version": "v1", "event_time": "$['ts']", "map": {"id": "$.id", **paths}}
    if envelope in {"flat", "payload"}:
        feed["load_type"] = "PARTIAL"
    rows = by(stated(spark, lines(tmp_path / "cases.json", *cases), feed, attributes=ATTRIBUTES))
    assert len(rows) == CASES, f"seed {SEED}"
    for number, case in enumerate(cases):
        row, expected = rows[str(number)], SAID[envelope](case, FIELDS)
        context = f"seed {SEED}, case {number}: {json.dumps(case)}"
        assert row["__karat_kind"] == "row", context
        assert row.asserted_columns == [name for name in FIELDS if name in expected], context
        assert {name: row[name] for name in expected} == {name: text(found) for name, found in expected.items()}, context


def text(found: Any) -> str | None:  # noqa: ANN401  (whatever a document may hold)
    """A value as the text a document has for it."""
    if found is None or isinstance(found, str):
        return found
    return json.dumps(found, separators=(",", ":"))


def test_an_expression_is_said_when_any_of_its_fields_is(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "a.json",
        {"id": "neither", "ts": "2026-03-01"},
        {"id": "one null", "ts": "2026-03-01", "data": {"first": None}},
        {"id": "one", "ts": "2026-03-01", "data": {"last": "Doe"}},
        {"id": "both", "ts": "2026-03-01", "data": {"first": "Jane", "last": "Doe"}},
        {"id": "null object", "ts": "2026-03-01", "data": None},
    )
    mapping = {"name": "concat(data.first, ' ', data.last)"}
    rows = by(stated(spark, path, {"load_type": "PARTIAL", "map": mapping}, attributes={"name": "string"}))
    assert {key: (row.asserted_columns, row.name) for key, row in rows.items()} == {
        "neither": ([], None),
        "one null": (["name"], None),
        "one": (["name"], None),
        "both": (["name"], "Jane Doe"),
        "null object": (["name"], None),
    }


def test_the_event_that_says_nothing_of_the_total(spark: SparkSession, tmp_path: Path) -> None:
    path = lines(tmp_path / "a.json", {"meta": {"id": "1", "ts": "2026-03-01"}, "data": {"status": "PAID"}})
    mapping = {"id": "meta.id", "total": "data.total", "status": "data.status"}
    feed = {"load_type": "PARTIAL", "event_time": "meta.ts", "map": mapping}
    row = stated(spark, path, feed, attributes={"total": "decimal(18,2)", "status": "string"})[0]
    assert (row.id, row.asserted_columns, row.status) == ("1", ["status"], "PAID")
