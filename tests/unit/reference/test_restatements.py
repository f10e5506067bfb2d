"""Receipts for what new knowledge changed about the past."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from karat.reference import Authority, Row, Rule, belief_history, restatements
from tests.unit.reference.beliefs import (
    CORE_ALONE,
    CORE_OVER_CRM,
    CRM_ALONE,
    CRM_OVER_CORE,
    after_run,
    group,
    receipts,
    restated,
    rule,
    whose,
)
from tests.unit.reference.histories import assertions, lines, moment, terms
from tests.unit.reference.test_belief_history import RULES, statements
from tests.unit.reference.test_laws import ATTRIBUTES, SOME, Said

STATUS = terms("status")
BOTH = terms("name", "status")
ANY = rule(group("status"))
NAMES_TOO = rule(group("name", "status"))


def test_a_late_statement_leaves_a_receipt_for_the_stretch_it_changes() -> None:
    rows = assertions(lines("at | status \n 1 | A \n 5 | C \n 3 | B"), STATUS)
    assert restatements(rows, STATUS, [ANY], before=after_run(2), after=after_run(3)) == [
        {
            "customer_id": "C1",
            "bk": "C1",
            "valid_from": moment("3"),
            "valid_to": moment("5"),
            "changed": ["status"],
            "before": {"status": "A"},
            "after": {"status": "B"},
            "because": {"status": {"source_system": "CRM", "source_event_ts": moment("3"), "record_hash": rows[2]["record_hash"]}},
            "cause": "statement",
            "rule_version": 1,
            "rule_version_before": 1,
        }
    ]


def test_the_printed_late_clearance_restates_the_restriction() -> None:
    table = """
        source | rank | op | at               | status
        CRM    | 1    | c  | 2026-03-01 09:00 | Active
        CORE   | 2    | u  | 2026-03-02 10:00 | Restricted
        CRM    | 1    | u  | 2026-03-03 09:00 | Active
        CORE   | 2    | u  | 2026-03-02 18:00 | Active
    """
    rows = restated(table, STATUS, ANY, runs=(3, 4))
    assert receipts(rows) == ["2026-03-02 18:00 - statement: status: Restricted -> Active"]
    assert whose(rows[0]["because"]) == {"status": "CORE 2026-03-02 18:00"}


def test_what_arrives_in_order_moves_belief_on_and_restates_nothing() -> None:
    assert restated("at | status \n 1 | A \n 2 | B \n 3 | C", STATUS, ANY, runs=(1, 3)) == []


def test_what_is_said_of_the_last_known_time_is_not_late() -> None:
    assert (
        restated("source | at | status \n CRM | 2 | A \n CORE | 2 | B", STATUS, rule(group("status", sources=CORE_OVER_CRM)), runs=(1, 2))
        == []
    )


def test_lateness_is_measured_against_any_source() -> None:
    table = "source | at | status \n CRM | 1 | A \n KYC | 5 | Z \n CRM | 3 | B"
    rows = restated(table, STATUS, rule(group("status", sources=CRM_ALONE)), runs=(2, 3))
    assert receipts(rows) == ["3 - statement: status: A -> B"]


def test_a_late_statement_that_changes_no_belief_leaves_no_receipt() -> None:
    assert restated("at | status \n 1 | A \n 5 | C \n 3 | A", STATUS, ANY, runs=(2, 3)) == []
    assert (
        restated("source | rank | at | status \n CORE | 2 | 1 | A \n CORE | 2 | 5 | C \n CRM | 1 | 3 | B", STATUS, ANY, runs=(2, 3)) == []
    )


def test_a_copy_of_what_was_known_is_no_news() -> None:
    assert restated("at | status | file \n 1 | A | f \n 5 | C | g \n 1 | A | h", STATUS, ANY, runs=(2, 3)) == []


def test_who_was_not_spoken_of_has_nothing_to_restate() -> None:
    assert restated("key | at | status \n C1 | 5 | A \n C2 | 3 | A \n C2 | 1 | B", STATUS, ANY, runs=(1, 3)) == []


def test_nothing_new_restates_nothing() -> None:
    assert restated("at | status \n 1 | A \n 5 | C \n 3 | B", STATUS, ANY, runs=(3, 9)) == []


def test_a_receipt_holds_what_is_late_and_leaves_out_what_is_not() -> None:
    table = "at | name | status \n 1 | N | A \n 5 | . | C \n 3 | M | . \n 6 | . | D"
    rows = restated(table, BOTH, NAMES_TOO, runs=(2, 4))
    assert receipts(rows) == ["3 - statement: name: N -> M"]
    assert whose(rows[0]["because"]) == {"name": "CRM 3"}


def test_each_attribute_has_its_own_cause() -> None:
    table = "at | name | status \n 1 | N | A \n 7 | L | C \n 3 | M | . \n 3 | . | B"
    (row,) = restated(table, BOTH, NAMES_TOO, runs=(2, 4))
    assert receipts([row]) == ["3 7 statement: name status: N A -> M B"]
    assert whose(row["because"]) == {"name": "CRM 3", "status": "CRM 3"}
    assert row["because"]["name"]["record_hash"] != row["because"]["status"]["record_hash"]


def test_the_cause_is_the_late_word_that_is_believed_not_the_latest() -> None:
    table = "source | at | status \n CRM | 1 | A \n CORE | 7 | C \n CORE | 3 | B \n CRM | 5 | D"
    rows = restated(table, STATUS, rule(group("status", sources=CORE_OVER_CRM)), runs=(2, 4))
    assert receipts(rows) == ["3 7 statement: status: A -> B"]
    assert whose(rows[0]["because"]) == {"status": "CORE 3"}


def test_two_late_words_for_one_value_are_two_receipts() -> None:
    rows = restated("at | status \n 1 | A \n 7 | C \n 3 | B \n 5 | B", STATUS, ANY, runs=(2, 4))
    assert receipts(rows) == ["3 5 statement: status: A -> B", "5 7 statement: status: A -> B"]
    assert [whose(row["because"])["status"] for row in rows] == ["CRM 3", "CRM 5"]


def test_a_late_statement_older_than_anything_believed_restates_what_was_nothing() -> None:
    (row,) = restated("at | name | status \n 3 | N | A \n 1 | . | B", BOTH, NAMES_TOO, runs=(1, 2))
    assert receipts([row]) == ["1 3 statement: is_deleted status: nothing -> false B"]
    assert (row["before"], row["after"]) == (None, {"status": "B", "is_deleted": False})
    assert whose(row["because"]) == {"is_deleted": "CRM 1", "status": "CRM 1"}


def test_who_brings_an_entity_in_brings_that_it_is_not_deleted_also_without_authority() -> None:
    agreed = rule(group("status"), delete=Authority(sources=CORE_ALONE))
    (row,) = restated("source | at | status \n CORE | 3 | A \n CRM | 1 | -", STATUS, agreed, runs=(1, 2))
    assert receipts([row]) == ["1 3 statement: is_deleted: nothing -> false"]
    assert whose(row["because"]) == {"is_deleted": "CRM 1"}


def test_a_late_delete_restates_the_verdict_until_the_source_came_back() -> None:
    rows = restated("op | at | status \n c | 1 | A \n u | 5 | B \n d | 3 | .", STATUS, ANY, runs=(2, 3))
    assert receipts(rows) == ["3 5 statement: is_deleted: false -> true"]
    assert whose(rows[0]["because"]) == {"is_deleted": "CRM 3"}


def test_a_late_delete_is_why_a_return_is_not_heard_on_what_it_does_not_say() -> None:
    table = "op | at | name | status \n c | 1 | N | A \n u | 5 | M | . \n d | 3 | . | ."
    rows = restated(table, BOTH, NAMES_TOO, runs=(2, 3))
    assert receipts(rows) == [
        "3 5 statement: is_deleted: false -> true",
        "5 - statement: status: A -> -",
    ]
    assert whose(rows[1]["because"]) == {"status": "CRM 3"}


def test_a_late_return_is_why_an_earlier_life_is_no_longer_heard() -> None:
    table = "op | at | name | status \n c | 1 | N | A \n d | 2 | . | . \n u | 5 | L | C \n u | 3 | M | ."
    rows = restated(table, BOTH, NAMES_TOO, runs=(3, 4))
    assert receipts(rows) == ["3 5 statement: is_deleted name status: true N A -> false M -"]
    assert whose(rows[0]["because"]) == {"is_deleted": "CRM 3", "name": "CRM 3", "status": "CRM 3"}


def test_a_late_null_gives_the_attribute_to_another_and_is_the_cause() -> None:
    agreed = rule(group("name"), group("status", sources=CORE_OVER_CRM))
    table = "source | at | name | status \n CRM | 1 | . | A \n CORE | 2 | . | B \n CORE | 9 | N | . \n CORE | 4 | . | - \n CORE | 6 | . | ."
    rows = restated(table, BOTH, agreed, runs=(3, 5))
    assert receipts(rows) == ["4 - statement: status: B -> A"]
    assert [whose(row["because"]) for row in rows] == [{"status": "CORE 4"}]


def test_a_truncate_that_finds_a_late_statement_is_restated_because_of_that_statement() -> None:
    table = (
        "key | source | op | at | status \n C1 | CORE | c | 1 | B \n . | CRM | t | 3 | . \n C1 | CORE | u | 5 | C \n C1 | CRM | c | 2 | A"
    )
    agreed = rule(group("status", sources=CORE_OVER_CRM), delete=Authority(sources=CRM_ALONE))
    rows = restated(table, STATUS, agreed, runs=(3, 4))
    assert receipts(rows) == ["3 - statement: is_deleted: false -> true"]
    assert whose(rows[0]["because"]) == {"is_deleted": "CRM 2"}


CRM_FIRST = rule(group("status", sources=CRM_OVER_CORE))
CORE_FIRST = rule(group("status", sources=CORE_OVER_CRM), version=2, since=after_run(3))
TWO_VOICES = "source | at | status \n CRM | 1 | A \n CORE | 2 | B \n CRM | 4 | B \n CRM | 5 | C \n CORE | 3 | D"


def test_a_new_rule_restates_what_it_believes_otherwise_of_the_same_statements() -> None:
    rows = restated(TWO_VOICES, STATUS, CRM_FIRST, CORE_FIRST, runs=(2, 3))
    assert receipts(rows) == ["2 - rule: status: A -> B"]
    assert (rows[0]["because"], rows[0]["rule_version"], rows[0]["rule_version_before"]) == ({}, 2, 1)


def test_first_the_rule_then_the_statements_under_the_new_rule() -> None:
    late_rule = rule(group("status", sources=CORE_OVER_CRM), version=2, since=after_run(5))
    rows = restated(TWO_VOICES, STATUS, CRM_FIRST, late_rule, runs=(4, 5))
    assert receipts(rows) == [
        "2 4 rule: status: A -> B",
        "5 - rule: status: C -> B",
        "3 - statement: status: B -> D",
    ]
    assert [row["rule_version_before"] for row in rows] == [1, 1, 1]
    assert whose(rows[2]["because"]) == {"status": "CORE 3"}


def test_a_rule_that_hears_nobody_any_more_ends_the_belief() -> None:
    nobody = rule(group("status", sources={"KYC": 1}), version=2, since=after_run(2))
    (row,) = restated("at | status \n 1 | A", STATUS, ANY, nobody, runs=(1, 2))
    assert receipts([row]) == ["1 - rule: is_deleted status: false A -> nothing"]


def test_the_first_rule_restates_nothing_by_itself() -> None:
    first = rule(group("status"), since=after_run(2))
    assert restated("at | status \n 1 | A \n 2 | B", STATUS, first, runs=(1, 2)) == []
    assert restated("at | status \n 1 | A \n 2 | B", STATUS, first, runs=(0, 1)) == []


@SOME
@given(statements, st.sampled_from(RULES), st.integers(0, 9))
def test_receipts_tell_both_histories_as_they_are_and_only_where_they_differ(said: Sequence[Said], agreed: Rule, run: int) -> None:
    names = terms(*ATTRIBUTES)
    rows = assertions(said, names)
    before, after = after_run(run), after_run(10)
    then, now = (belief_history(rows, names, [agreed], known_at=known_at) for known_at in (before, after))
    for row in restatements(rows, names, [agreed], before=before, after=after):
        assert row["before"] == _state(then, row)
        assert row["after"] == _state(now, row)
        old, new = row["before"] or {}, row["after"] or {}
        assert all(old.get(name) != new.get(name) for name in row["changed"])
        assert sorted(row["because"]) == row["changed"]
        assert all(word["source_event_ts"] <= row["valid_from"] for word in row["because"].values())


def _state(history: Sequence[Row], receipt: Row) -> Row | None:
    """What the history holds where the receipt begins."""
    start = receipt["valid_from"]
    begun = [row for row in history if row["bk"] == receipt["bk"] and row["valid_from"] <= start]
    return {name: begun[-1][name] for name in receipt["changed"]} if begun else None
