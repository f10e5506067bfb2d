"""Why the others did not win: one reason per statement."""

from karat.reference import Authority, explained
from tests.unit.reference.beliefs import CORE_ALONE, CORE_OVER_CRM, CRM_ALONE, CRM_OVER_CORE, NOW, after_run, group, lost, rule
from tests.unit.reference.histories import MARCH, assertions, lines, moment, terms

STATUS = terms("status")
BOTH = terms("name", "status")
CORE_FIRST = rule(group("status", sources=CORE_OVER_CRM))


def test_an_explanation_names_value_winner_rule_group_and_manner() -> None:
    rows = assertions(lines("at | name | status \n 1 | N | A"), BOTH)
    why = explained(rows, BOTH, [rule(group("name", "status", by="recency"), version=7)], attribute="status", known_at=NOW)
    assert why
    assert (why.attribute, why.value, why.losers) == ("status", "A", ())
    assert (why.rule_version, why.group, why.by) == (7, "name+status", "recency")
    assert why.winner
    assert (why.winner.row, why.winner.at) == (rows[0], moment("1"))


def test_lower_rank() -> None:
    table = "source | at | status \n CORE | 1 | B \n CRM | 2 | A"
    assert lost(table, STATUS, CORE_FIRST, "status") == ["CORE 1 B: won", "CRM 2 A: rank"]


def test_earlier_time() -> None:
    table = "source | at | status \n CORE | 1 | B \n CRM | 2 | A"
    assert lost(table, STATUS, rule(group("status", by="recency")), "status") == ["CORE 1 B: time", "CRM 2 A: won"]
    assert lost(table, STATUS, rule(group("status")), "status") == ["CORE 1 B: time", "CRM 2 A: won"]


def test_of_one_time_lower_rank_by_recency() -> None:
    table = "source | at | status \n CORE | 1 | B \n CRM | 1 | A"
    by = rule(group("status", by="recency", sources=CRM_OVER_CORE))
    assert sorted(lost(table, STATUS, by, "status")) == ["CORE 1 B: rank", "CRM 1 A: won"]


def test_only_tiebreakers() -> None:
    table = "source | at | seq | rank | status \n CORE | 1 | 5 | 1 | B \n CRM | 1 | 6 | 1 | A"
    assert lost(table, STATUS, rule(group("status")), "status") == ["CORE 1 B: tie", "CRM 1 A: won"]
    table = "source | at | rank | status \n CORE | 1 | 2 | B \n CRM | 1 | 1 | A"
    by = rule(group("status", sources={"CORE": 1, "CRM": 1}))
    assert lost(table, STATUS, by, "status") == ["CORE 1 B: won", "CRM 1 A: tie"]


def test_superseded_by_its_own_source() -> None:
    table = "at | status \n 1 | A \n 2 | - \n 3 | B"
    assert lost(table, STATUS, CORE_FIRST, "status") == ["CRM 1 A: superseded", "CRM 2 -: superseded", "CRM 3 B: won"]


def test_null_as_its_source_s_last_word() -> None:
    table = "source | at | status \n CORE | 1 | B \n CORE | 2 | - \n CRM | 1 | A"
    assert sorted(lost(table, STATUS, CORE_FIRST, "status")) == ["CORE 1 B: superseded", "CORE 2 -: null", "CRM 1 A: won"]
    counting = rule(group("status", sources=CORE_OVER_CRM, nulls="count"))
    assert sorted(lost(table, STATUS, counting, "status")) == ["CORE 1 B: superseded", "CORE 2 -: won", "CRM 1 A: rank"]


def test_not_allowed_comes_before_what_a_statement_says() -> None:
    table = (
        "source | op | at | name | status \n CRM | c | 1 | N | A \n CORE | u | 2 | . | B \n CORE | u | 3 | M | . \n CORE | d | 4 | . | ."
    )
    assert lost(table, BOTH, rule(group("status", sources=CRM_ALONE)), "status") == [
        "CRM 1 A: won",
        "CORE 2 B: not allowed",
        "CORE 3 B: not allowed",
        "CORE 4 B: not allowed",
    ]


def test_nobody_is_allowed_to_say_an_attribute_of_no_group() -> None:
    why = explained(assertions(lines("at | name | status \n 1 | N | A"), BOTH), BOTH, [CORE_FIRST], attribute="name", known_at=NOW)
    assert why
    assert (why.value, why.winner, why.group, why.by) == (None, None, None, None)
    assert [(loser.value, loser.reason) for loser in why.losers] == [("N", "not allowed")]


def test_inherited_only() -> None:
    table = "source | at | name | status \n CRM | 1 | N | A \n CORE | 2 | M | ."
    assert lost(table, BOTH, CORE_FIRST, "status") == ["CRM 1 A: won", "CORE 2 A: inherited only"]


def test_a_deletion_has_no_word_but_the_life_it_ended_has() -> None:
    table = "op | at | status \n c | 1 | A \n d | 2 | ."
    assert lost(table, STATUS, CORE_FIRST, "status") == ["CRM 1 A: won", "CRM 2 A: deletion"]


def test_an_earlier_life() -> None:
    table = "op | at | name | status \n c | 1 | N | A \n d | 2 | . | . \n u | 3 | M | . \n u | 4 | . | B"
    assert lost(table, BOTH, CORE_FIRST, "status") == [
        "CRM 1 A: earlier life",
        "CRM 2 A: deletion",
        "CRM 3 -: inherited only",
        "CRM 4 B: won",
    ]
    assert lost(table, BOTH, CORE_FIRST, "status", valid_at=moment("3"))[0] == "CRM 1 A: earlier life"
    assert lost(table, BOTH, CORE_FIRST, "status", valid_at=moment("2"))[0] == "CRM 1 A: won"


def test_not_yet_known_and_not_yet_valid() -> None:
    table = "at | status \n 1 | A \n 5 | C \n 2 | B \n 6 | D"
    assert lost(table, STATUS, CORE_FIRST, "status", known_at=after_run(2), valid_at=moment("4")) == [
        "CRM 1 A: won",
        "CRM 2 B: not yet known",
        "CRM 5 C: not yet valid",
        "CRM 6 D: not yet known",
    ]


def test_a_truncate_that_deletes_only_what_was_learned_later_is_not_yet_known_to_do_so() -> None:
    table = "source | op | at | status \n CORE | c | 1 | B \n CRM | t | 3 | . \n CRM | c | 2 | A"
    before = lost(table, STATUS, CORE_FIRST, "status", known_at=after_run(2))
    assert before == ["CORE 1 B: won", "CRM 2 A: not yet known", "CRM 3 -: not yet known"]
    assert lost(table, STATUS, CORE_FIRST, "status") == ["CORE 1 B: won", "CRM 2 A: rank", "CRM 3 -: deletion"]


def test_a_return_from_what_was_learned_later_is_not_yet_known_although_its_row_is() -> None:
    table = "load | op | at | snapshot | status \n FULL | - | 1 | 5 | A \n PARTIAL | d | 3 | 3 | ."
    before = lost(table, STATUS, CORE_FIRST, "status", known_at=after_run(1))
    assert before == ["CRM 1 A: won", "CRM 3 A: not yet known", "CRM 5 A: not yet known"]
    assert lost(table, STATUS, CORE_FIRST, "status") == ["CRM 1 A: earlier life", "CRM 3 A: deletion", "CRM 5 A: won"]


def test_copies_of_a_statement_are_told_once() -> None:
    table = "at | status | file \n 1 | A | f \n 2 | B | g \n 1 | A | h"
    assert lost(table, STATUS, CORE_FIRST, "status") == ["CRM 1 A: superseded", "CRM 2 B: won"]


def test_a_return_is_told_beside_the_row_it_was_made_from() -> None:
    table = "load | op | at | snapshot | status \n FULL | - | 1 | 1 | A \n PARTIAL | d | 3 | 3 | . \n FULL | - | 2 | 5 | B"
    assert lost(table, STATUS, CORE_FIRST, "status") == [
        "CRM 1 A: earlier life",
        "CRM 2 B: earlier life",
        "CRM 3 A: deletion",
        "CRM 5 B: won",
    ]


LIVES = """
    source | op | at | status
    CRM    | c  | 1  | A
    CORE   | c  | 2  | B
    CORE   | d  | 3  | .
    CRM    | u  | 4  | C
"""


def test_who_decides_that_the_entity_is_deleted() -> None:
    core_deletes = rule(group("status"), delete=Authority(sources=CORE_ALONE))
    assert lost(LIVES, STATUS, core_deletes, "is_deleted") == [
        "CRM 1 false: not allowed",
        "CORE 2 false: superseded",
        "CORE 3 true: won",
        "CRM 4 false: not allowed",
    ]
    core_first = rule(group("status"), delete=Authority(sources=CORE_OVER_CRM))
    assert lost(LIVES, STATUS, core_first, "is_deleted") == [
        "CRM 1 false: superseded",
        "CORE 2 false: superseded",
        "CORE 3 true: won",
        "CRM 4 false: rank",
    ]
    latest = rule(group("status"), delete=Authority("recency"))
    assert lost(LIVES, STATUS, latest, "is_deleted")[2:] == ["CORE 3 true: time", "CRM 4 false: won"]


def test_nobody_decided_that_the_entity_is_deleted() -> None:
    by = rule(group("status"), delete=Authority(sources={"KYC": 1}))
    why = explained(assertions(lines(LIVES), STATUS), STATUS, [by], attribute="is_deleted", known_at=NOW)
    assert why
    assert (why.value, why.winner, why.group, why.by) == (False, None, "delete", "precedence")


def test_before_the_first_rule_there_is_nothing_to_explain() -> None:
    rows = assertions(lines(LIVES), STATUS)
    assert explained(rows, STATUS, [CORE_FIRST], attribute="status", known_at=MARCH.replace(year=2025)) is None
