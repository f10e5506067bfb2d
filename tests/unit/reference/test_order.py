"""The total order of statements, tiebreaker by tiebreaker."""

import random

import pytest

from karat.reference import order_key
from tests.unit.reference.histories import history, lines, row, shown, terms


@pytest.mark.parametrize(
    ("what", "table"),
    [
        ("event time before anything else", "at | rank | seq \n 1 | 1 | 9 \n 2 | 2 | 1"),
        ("a higher rank first", "at | rank | seq \n 1 | 2 | 9 \n 1 | 1 | 1"),
        ("sequences as numbers", "at | seq \n 1 | -3 \n 1 | 9 \n 1 | 10 \n 1 | 10.05 \n 1 | 10.5 \n 1 | 11"),
        ("numbers before texts, none last", "at | seq \n 1 | 99999999999999999999 \n 1 | a9b \n 1 | a10b \n 1 | -"),
        ("a text's numbers as numbers", "at | seq \n 1 | 0/9A \n 1 | 0/10A \n 1 | 0/10B \n 1 | 1/1"),
        ("more than 38 digits is a text", f"at | seq \n 1 | 12 \n 1 | {'1' * 39} \n 1 | {'2' * 39}"),
        ("a delete after an upsert, whatever its file", "at | op | file \n 1 | u | b \n 1 | d | a"),
        ("a sequence before that", "at | op | seq \n 1 | d | 1 \n 1 | u | 2"),
        ("file, none last", "at | file \n 1 | a \n 1 | b \n 1 | -"),
        ("run", "at | run | status \n 1 | 1 | B \n 1 | 2 | A"),
    ],
)
def test_the_order_goes_by(what: str, table: str) -> None:
    expected = [row(cells, int(cells.get("run", "1")), terms()) for cells in lines(table)]
    shuffled = random.Random(what).sample(expected, len(expected))  # noqa: S311 - a shuffle, not a secret
    assert sorted(shuffled, key=order_key) == expected


def test_equal_numbers_are_equal_however_they_are_written() -> None:
    one, other = (order_key(row({"at": "1", "seq": seq}, 1, terms()))[2] for seq in ("7", "007.00"))
    assert one == other


def test_statements_that_share_everything_else_are_ordered_by_what_they_say() -> None:
    one, other = (row({"at": "1", "status": status}, 1, terms()) for status in "AB")
    assert (order_key(one) < order_key(other)) == (one["statement_hash"] < other["statement_hash"])


def test_of_an_upsert_and_a_delete_of_one_moment_the_delete_stands() -> None:
    rows = history("op | at | status \n d | 2 | . \n u | 2 | B \n c | 1 | A", terms(late_partials="propagate"))
    assert shown(rows, "from to status deleted") == ["1 2 A false", "2 2 B false", "2 - B true"]


def test_the_second_of_two_statements_of_one_moment_stands_and_the_first_has_an_empty_period() -> None:
    rows = history("at | seq | status \n 1 | 10 | B \n 1 | 9 | A", terms())
    assert shown(rows, "from to status current") == ["1 1 A false", "1 - B true"]


def test_contradicting_rows_of_one_file_are_settled_by_the_later_run() -> None:
    rows = history("at | file | status \n 1 | f | B \n 1 | f | A", terms())
    assert shown(rows, "status current") == ["B false", "A true"]
