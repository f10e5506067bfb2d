"""Values to text, text to hashes."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256

import pytest

from karat.reference import EntitySchema, attr_hash
from karat.reference.canonical import canonical
from tests.unit.reference.histories import terms

HALF_PAST = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("string", "  Jane  ", "Jane"),
        ("string", "\tJane\n", "\tJane\n"),
        ("varchar(10)", "", ""),
        ("boolean", True, "true"),
        ("boolean", False, "false"),
        ("int", -7, "-7"),
        ("bigint", 9223372036854775807, "9223372036854775807"),
        ("timestamp", HALF_PAST, "2026-03-01 09:30:00.000000"),
        ("timestamp", HALF_PAST.astimezone(timezone(timedelta(hours=2))), "2026-03-01 09:30:00.000000"),
        ("timestamp", datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "0001-01-01 00:00:00.000001"),
        ("timestamp_ntz", HALF_PAST.replace(tzinfo=None), "2026-03-01 09:30:00.000000"),
        ("date", date(2026, 3, 1), "2026-03-01"),
        ("decimal(10,2)", Decimal("1.5"), "1.500000"),
        ("decimal(10, 8)", Decimal("-0.00000001"), "-0.00000001"),
        ("DECIMAL(38,0)", Decimal(10**37 + 1), f"1{'0' * 36}1.000000"),
        ("decimal(38,10)", Decimal("1234567890123456789012345678.0123456789"), "1234567890123456789012345678.0123456789"),
        ("decimal(10,2)", Decimal("-0.00"), "0.000000"),
        ("decimal", Decimal(7), "7.000000"),
        ("binary", b"\x00\xff", "00ff"),
        ("double", 0.0, "0.0"),
        ("double", -0.0, "0.0"),
        ("double", 1.0, "1.0"),
        ("double", 123.45, "123.45"),
        ("double", -0.001, "-0.001"),
        ("double", 0.00099, "9.9E-4"),
        ("double", 1e-5, "1.0E-5"),
        ("double", 9999999.5, "9999999.5"),
        ("double", 1e6, "1000000.0"),
        ("double", 1e7, "1.0E7"),
        ("double", 1e10, "1.0E10"),
        ("double", -1.2345678912345e15, "-1.2345678912345E15"),
        ("double", 1.7976931348623157e308, "1.7976931348623157E308"),
        ("double", float("nan"), "NaN"),
        ("double", float("inf"), "Infinity"),
        ("double", float("-inf"), "-Infinity"),
        ("float", 0.10000000149011612, "0.1"),
        ("float", 16777216.0, "1.6777216E7"),
        ("float", 3.4028234663852886e38, "3.4028235E38"),
        ("float", -0.0, "0.0"),
    ],
)
def test_a_value_has_one_text(type_: str, value: object, text: str) -> None:
    assert canonical(value, type_) == text


def test_a_nested_value_is_refused_rather_than_guessed() -> None:
    with pytest.raises(TypeError, match="array<string>"):
        canonical(["a"], "array<string>")


def test_the_hash_is_that_of_the_pairs_in_order_of_their_names() -> None:
    agreed = EntitySchema(key=("id",), attributes=("b", "a", "B"), types={"a": "string", "b": "decimal(10,2)", "B": "boolean"})
    assert attr_hash({"b": Decimal("1.5"), "a": " x ", "B": True}, agreed) == sha256(b"B=true||a=x||b=1.500000").digest()


def test_signs_of_the_text_itself_are_escaped_in_names_and_values() -> None:
    assert attr_hash({"a=|": "x||b=\\"}, terms("a=|")) == sha256(rb"a\=\|=x\|\|b\=\\").digest()
    assert attr_hash({"a": "x||b=y", "b": None}, terms("a", "b")) != attr_hash({"a": "x", "b": "y"}, terms("a", "b"))


def test_nothing_but_nulls_is_the_empty_text() -> None:
    assert attr_hash({"a": None}, terms("a")) == sha256(b"").digest()


def test_null_and_the_empty_text_are_two() -> None:
    assert attr_hash({"a": None}, terms("a")) != attr_hash({"a": ""}, terms("a"))


def test_adding_an_attribute_changes_no_hash() -> None:
    before = attr_hash({"name": "N"}, terms("name"))
    assert attr_hash({"name": "N"}, terms("name", "added")) == before
    assert attr_hash({"name": "N", "added": None}, terms("added", "name")) == before
    assert attr_hash({"name": "N", "added": "x"}, terms("name", "added")) != before


def test_untracked_attributes_enter_no_hash() -> None:
    agreed = terms("name", "note", untracked=frozenset({"note"}))
    assert attr_hash({"name": "N", "note": "x"}, agreed) == attr_hash({"name": "N"}, terms("name"))


def test_a_delete_s_hash_is_that_of_the_deletion_alone() -> None:
    assert attr_hash({"name": "N"}, terms("name"), deleted=True) == sha256(b"__DELETED__").digest()
