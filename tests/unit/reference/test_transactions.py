"""Transactions: facts, seen again, corrected, never versioned."""

from karat.reference import timeline
from tests.unit.reference.histories import assertions, history, lines, shown, terms

FACTS = terms("amount", "note", untracked=frozenset({"note"}), entity_type="transaction")


def test_a_replay_is_seen_and_changes_nothing() -> None:
    rows = history("op | at | amount | file \n c | 1 | 10 | a \n c | 1 | 10 | b \n c | 2 | 10 | c", FACTS)
    assert shown(rows, "from amount seen last file run corrects") == ["1 10 3 2 a run-001 -"]
    assert shown(rows, "to current source_to source_current") == ["- - - -"]


def test_other_content_is_a_correction_that_points_at_the_first() -> None:
    rows = history("op | at | amount \n c | 1 | 10 \n u | 2 | 12 \n u | 3 | 10 \n u | 4 | 13", FACTS)
    assert shown(rows, "from amount seen last") == ["1 10 2 3", "2 12 1 2", "4 13 1 4"]
    assert [row["corrects"] for row in rows] == [None, rows[0]["record_hash"], rows[0]["record_hash"]]


def test_what_is_earliest_in_source_time_is_the_fact_whenever_it_arrives() -> None:
    rows = history("op | at | amount \n u | 2 | 12 \n c | 1 | 10", FACTS)
    assert shown(rows, "from amount") == ["1 10", "2 12"]
    assert [row["corrects"] for row in rows] == [None, rows[0]["record_hash"]]


def test_a_deletion_is_a_correction_too_and_told_once() -> None:
    rows = history("op | at | amount \n c | 1 | 10 \n d | 2 | . \n d | 3 | .", FACTS)
    assert shown(rows, "from amount deleted seen last") == ["1 10 false 1 1", "2 10 true 2 3"]
    assert rows[1]["corrects"] == rows[0]["record_hash"]


def test_a_fact_told_again_after_its_deletion_is_the_fact_seen_again() -> None:
    rows = history("op | at | amount \n c | 1 | 10 \n d | 2 | . \n c | 3 | 10", FACTS)
    assert shown(rows, "from amount deleted seen last") == ["1 10 false 2 3", "2 10 true 1 2"]


def test_two_sources_that_tell_the_same_fact_tell_one() -> None:
    assert shown(history("source | at | amount \n CRM | 1 | 10 \n CORE | 2 | 10", FACTS), "source from seen") == ["CRM 1 2"]


def test_what_is_untracked_is_no_correction() -> None:
    assert shown(history("at | amount | note \n 1 | 10 | x \n 2 | 10 | y", FACTS), "from amount note seen") == ["1 10 y 2"]


def test_a_part_of_a_fact_inherits_the_rest() -> None:
    agreed = terms("amount", "currency", entity_type="transaction")
    rows = history("at | amount | currency \n 1 | 10 | EUR \n 2 | 12 | .", agreed)
    assert shown(rows, "from amount currency") == ["1 10 EUR", "2 12 EUR"]


def test_facts_are_neither_swept_away_nor_brought_back() -> None:
    table = """
        load | op     | at | snapshot | amount
        FULL | -      | 1  | 1        | 10
        FULL | t      | 2  | 2        | .
        FULL | absent | 3  | 3        | .
        FULL | d      | 4  | 4        | .
        FULL | -      | 1  | 5        | 10
    """
    rows = timeline(assertions(lines(table), FACTS), FACTS)
    assert shown(rows, "from op seen last") == ["1 - 2 1", "4 d 1 4"]
