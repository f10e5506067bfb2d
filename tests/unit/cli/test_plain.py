"""Values for machines and for people, whatever a lake may hold."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from karat.cli.plain import legible, plain, short

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (Decimal("1.50"), "1.50"),
        (b"\x01\xff", "01ff"),
        (NOON, "2026-03-02T12:00:00+00:00"),
        (date(2026, 3, 2), "2026-03-02"),
        ({1: [b"\x01", (NOON,)]}, {"1": ["01", ["2026-03-02T12:00:00+00:00"]]}),
    ],
)
def test_any_value_has_a_form_in_json(value: object, told: object) -> None:
    assert plain(value) == told
    json.dumps(plain(value), allow_nan=False)


def test_people_read_one_line() -> None:
    assert [legible(value) for value in (None, False, "a\nb\x1b", {"a": None})] == ["-", "false", "a\\nb\\x1b", '{"a": null}']


def test_a_time_is_as_short_as_it_is_exact() -> None:
    assert short(NOON) == "2026-03-02 12:00"
    assert short(NOON.replace(second=5)) == "2026-03-02 12:00:05"
    assert short(NOON.replace(microsecond=5)) == "2026-03-02 12:00:00.000005"
