"""What a document says, as the reference reads it."""

from typing import Any

import pytest

from karat.reference.documents import said, said_by_debezium, said_by_goldengate

FIELDS = {"status": "data.status", "total": "data.total", "name": "name"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"meta": {}, "data": {"status": "PAID"}}, {"status": "PAID"}),
        ({"data": {"status": None}}, {"status": None}),
        ({"data": None, "name": "x"}, {"status": None, "total": None, "name": "x"}),
        ({"data": "text"}, {}),
        ({"data": [{"status": "PAID"}]}, {}),
        ({"data": '{"total": 5}'}, {"total": 5}),
        ({"data": "null"}, {}),
        ({"data.status": "dotted", "data": {"status": "nested"}}, {"status": "dotted"}),
        ({}, {}),
    ],
)
def test_what_is_not_there_is_not_said_and_a_null_is(document: dict[str, Any], expected: dict[str, Any]) -> None:
    assert said(document, FIELDS) == expected


def test_an_image_without_what_the_source_could_not_tell() -> None:
    image = {"name": "__debezium_unavailable_value", "data": {"status": None}}
    message = {"op": "u", "before": {"name": "old"}, "after": image}
    assert said_by_debezium(message, FIELDS) == {"status": None}
    assert said_by_debezium({"schema": {}, "payload": message}, FIELDS) == {"status": None}
    assert said_by_debezium({"op": "d", "before": image, "after": None}, FIELDS) == {}


def test_a_flag_says_that_a_column_is_missing() -> None:
    image = {"name": None, "name_isMissing": True, "data": None, "data_isMissing": False}
    assert said_by_goldengate({"op_type": "U", "after": image}, FIELDS) == {"status": None, "total": None}
    assert said_by_goldengate({"op_type": "D", "before": image}, FIELDS) == {}
