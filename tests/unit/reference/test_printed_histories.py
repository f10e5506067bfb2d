"""The worked examples of the requirements, as printed: events in the printed order of arrival, one run each."""

from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest

from karat.reference import EntitySchema, Row, timeline
from tests.unit.reference.histories import assertions, history, lines, shown, terms

ONE_SOURCE = """
    op | at               | name        | address          | status
    c  | 2026-03-01 09:00 | Jane Carter | 12 Market Street | Active
    u  | 2026-03-03 10:00 | .           | 18 King Street   | .
    d  | 2026-03-05 08:30 | .           | .                | .
    u  | 2026-03-02 15:00 | .           | .                | Restricted
"""
ONE_SOURCE_PRINTED = """
    customer_id | effective_from   | effective_to     | name        | address          | status     | is_deleted | is_current
    C123        | 2026-03-01 09:00 | 2026-03-02 15:00 | Jane Carter | 12 Market Street | Active     | false      | false
    C123        | 2026-03-02 15:00 | 2026-03-03 10:00 | Jane Carter | 12 Market Street | Restricted | false      | false
    C123        | 2026-03-03 10:00 | 2026-03-05 08:30 | Jane Carter | 18 King Street   | Active     | false      | false
    C123        | 2026-03-05 08:30 | -                | Jane Carter | 18 King Street   | Active     | true       | true
"""
ONE_SOURCE_PROPAGATED = """
    effective_from   | effective_to     | name        | address          | status     | is_deleted | is_current
    2026-03-01 09:00 | 2026-03-02 15:00 | Jane Carter | 12 Market Street | Active     | false      | false
    2026-03-02 15:00 | 2026-03-03 10:00 | Jane Carter | 12 Market Street | Restricted | false      | false
    2026-03-03 10:00 | 2026-03-05 08:30 | Jane Carter | 18 King Street   | Restricted | false      | false
    2026-03-05 08:30 | -                | Jane Carter | 18 King Street   | Restricted | true       | true
"""
CONFLICT = """
    source | rank | op | at               | status
    CRM    | 1    | c  | 2026-03-01 09:00 | Active
    CORE   | 2    | u  | 2026-03-02 10:00 | Restricted
    CRM    | 1    | u  | 2026-03-03 09:00 | Active
    CORE   | 2    | u  | 2026-03-02 18:00 | Active
"""
CONFLICT_PRINTED = """
    customer_id | source | rank | effective_from   | status
    C123        | CRM    | 1    | 2026-03-01 09:00 | Active
    C123        | CORE   | 2    | 2026-03-02 10:00 | Restricted
    C123        | CORE   | 2    | 2026-03-02 18:00 | Active
    C123        | CRM    | 1    | 2026-03-03 09:00 | Active
"""
TWO_SOURCES = """
    source | rank | op | at               | name        | address          | status
    CRM    | 1    | c  | 2026-03-01 09:00 | Jane Carter | 12 Market Street | Active
    CORE   | 2    | u  | 2026-03-02 10:00 | .           | .                | Restricted
    CRM    | 1    | u  | 2026-03-03 09:00 | .           | 18 King Street   | .
    CRM    | 1    | d  | 2026-03-04 12:00 | .           | .                | .
    CORE   | 2    | u  | 2026-03-02 18:00 | .           | .                | Active
"""
TWO_SOURCES_PRINTED = """
    key  | source | rank | effective_from   | effective_to     | name        | address          | status     | is_deleted | is_current
    C123 | CRM    | 1    | 2026-03-01 09:00 | 2026-03-02 10:00 | Jane Carter | 12 Market Street | Active     | false      | false
    C123 | CORE   | 2    | 2026-03-02 10:00 | 2026-03-02 18:00 | Jane Carter | 12 Market Street | Restricted | false      | false
    C123 | CORE   | 2    | 2026-03-02 18:00 | 2026-03-03 09:00 | Jane Carter | 12 Market Street | Active     | false      | false
    C123 | CRM    | 1    | 2026-03-03 09:00 | 2026-03-04 12:00 | Jane Carter | 18 King Street   | Active     | false      | false
    C123 | CRM    | 1    | 2026-03-04 12:00 | -                | Jane Carter | 18 King Street   | Active     | true       | true
"""
WHOLE = ("name", "address", "status")


def test_insert_partial_update_delete_and_a_late_update_are_as_printed() -> None:
    assert_printed(timeline(arrived(lines(ONE_SOURCE), terms(*WHOLE)), terms(*WHOLE)), ONE_SOURCE_PRINTED)


@pytest.mark.parametrize("late_partials", ["pinned", "propagate"])
def test_two_sources_in_conflict_are_as_printed(late_partials: str) -> None:
    agreed = terms("status", late_partials=late_partials)
    assert_printed(timeline(arrived(lines(CONFLICT), agreed), agreed), CONFLICT_PRINTED)


@pytest.mark.parametrize("late_partials", ["pinned", "propagate"])
def test_partials_precedence_and_delete_across_two_sources_are_as_printed(late_partials: str) -> None:
    agreed = terms(*WHOLE, late_partials=late_partials)
    assert_printed(timeline(arrived(lines(TWO_SOURCES), agreed), agreed), TWO_SOURCES_PRINTED)


@pytest.mark.parametrize(
    ("said", "attributes", "printed"),
    [
        (ONE_SOURCE, WHOLE, ONE_SOURCE_PROPAGATED),
        (CONFLICT, ("status",), CONFLICT_PRINTED),
        (TWO_SOURCES, WHOLE, TWO_SOURCES_PRINTED),
    ],
    ids=["one source", "conflict", "two sources"],
)
def test_propagating_gives_the_same_rows_in_every_order_of_arrival(said: str, attributes: tuple[str, ...], printed: str) -> None:
    agreed = terms(*attributes, late_partials="propagate")
    for arrival in permutations(lines(said)):
        assert_printed(timeline(arrived(arrival, agreed), agreed), printed)


def test_silver_finds_each_source_s_word_in_its_own_chain() -> None:
    rows = history(CONFLICT, terms("status"))
    assert shown(rows, "source status source_to source_current is_current") == [
        "CRM Active 2026-03-03 09:00 false false",
        "CORE Restricted 2026-03-02 18:00 false false",
        "CORE Active - true false",
        "CRM Active - true true",
    ]


def arrived(said: Sequence[Mapping[str, str]], agreed: EntitySchema) -> list[Row]:
    return assertions([{"key": "C123", **cells} for cells in said], agreed)


def assert_printed(rows: Sequence[Row], table: str) -> None:
    expected = lines(table)
    assert shown(rows, " ".join(expected[0])) == [" ".join(line.values()) for line in expected]
