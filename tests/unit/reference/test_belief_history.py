"""Beliefs over valid time: a row per change of what is believed, because of who said it last."""

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from karat.reference import Authority, Row, Rule, belief_history, believed, explained
from tests.unit.reference.beliefs import CORE_ALONE, CORE_OVER_CRM, CRM_ALONE, NOW, after_run, group, rule, told, whose
from tests.unit.reference.histories import assertions, lines, shown, terms
from tests.unit.reference.test_laws import ATTRIBUTES, SOME, Said, changes, extracts, sweeps

STATUS = terms("status")
BOTH = terms("name", "status")
ANY = rule(group("status"))
PERIODS = "valid_from valid_to status deleted current"


def test_a_row_per_change_from_when_the_entity_is_believed_in_until_further_notice() -> None:
    table = "op | at | status \n c | 1 | A \n u | 3 | B \n d | 5 | ."
    assert shown(told(table, STATUS, ANY), PERIODS) == ["1 3 A false false", "3 5 B false false", "5 - B true true"]


def test_what_is_said_again_opens_nothing_but_is_whose_word_it_is() -> None:
    rows = told(
        "source | at | status \n CRM | 1 | A \n CORE | 2 | A \n CRM | 3 | A \n CRM | 4 | B", STATUS, rule(group("status", by="recency"))
    )
    assert shown(rows, PERIODS) == ["1 4 A false false", "4 - B false true"]
    assert [whose(row["because"])["status"] for row in rows] == ["CRM 3", "CRM 4"]


def test_a_loser_s_word_opens_nothing() -> None:
    rows = told("source | rank | at | status \n CORE | 2 | 1 | A \n CRM | 1 | 2 | B", STATUS, ANY)
    assert shown(rows, PERIODS) == ["1 - A false true"]


def test_of_several_statements_of_one_instant_only_the_last_state_counts() -> None:
    rows = told("op | at | seq | status \n c | 1 | 1 | A \n u | 2 | 1 | B \n d | 2 | 2 | . \n u | 2 | 3 | C", STATUS, ANY)
    assert shown(rows, PERIODS) == ["1 2 A false false", "2 - C false true"]


def test_history_starts_when_an_allowed_source_speaks_not_when_anybody_does() -> None:
    agreed = rule(group("status", sources=CRM_ALONE), delete=Authority(sources=CORE_ALONE))
    rows = told("source | op | at | status \n CORE | c | 1 | B \n CORE | d | 2 | . \n CRM | c | 3 | A", STATUS, agreed)
    assert shown(rows, PERIODS) == ["3 - A true true"]


def test_a_late_statement_splits_the_period_it_falls_into() -> None:
    table = "at | status \n 1 | A \n 3 | A \n 2 | B"
    assert shown(told(table, STATUS, ANY, known_at=after_run(2)), PERIODS) == ["1 - A false true"]
    assert shown(told(table, STATUS, ANY), PERIODS) == ["1 2 A false false", "2 3 B false false", "3 - A false true"]


def test_a_return_takes_back_what_it_does_not_say_again() -> None:
    table = "op | at | name | status \n c | 1 | N | A \n d | 2 | . | . \n u | 3 | N | ."
    rows = told(table, BOTH, rule(group("name", "status")))
    assert shown(rows, f"name {PERIODS}") == ["N 1 2 A false false", "N 2 3 A true false", "N 3 - - false true"]


def test_entities_follow_each_other_by_key() -> None:
    rows = told("key | at | status \n C2 | 1 | A \n C1 | 2 | B \n C1 | 1 | A", STATUS, ANY)
    assert shown(rows, f"key {PERIODS}") == ["C1 1 2 A false false", "C1 2 - B false true", "C2 1 - A false true"]


def test_not_a_number_is_the_same_as_not_a_number() -> None:
    said = assertions(lines("at | status \n 1 | x \n 2 | y \n 3 | z"), STATUS)
    values = (math.nan, -math.nan, 1.0)
    rows = [{**row, "status": value} for row, value in zip(said, values, strict=True)]
    assert shown(belief_history(rows, STATUS, [ANY], known_at=NOW), "valid_from valid_to") == ["1 3", "3 -"]


def test_before_the_first_rule_there_is_no_history() -> None:
    assert told("at | status \n 1 | A", STATUS, rule(group("status"), since=after_run(2)), known_at=after_run(1)) == []


RULES = [
    rule(group("name", "status", sources=CORE_OVER_CRM), group("note", by="recency"), delete=Authority(sources=CORE_ALONE)),
    rule(group("name", by="recency", sources=CRM_ALONE), group("status", nulls="count"), delete=Authority("recency")),
]
statements = st.lists(st.one_of(changes, extracts, sweeps), min_size=1, max_size=9)


@SOME
@given(statements, st.sampled_from(RULES))
def test_the_history_tells_at_every_instant_what_is_believed_then(said: Sequence[Said], agreed: Rule) -> None:
    rows = assertions(said, terms(*ATTRIBUTES))
    history = belief_history(rows, terms(*ATTRIBUTES), [agreed], known_at=NOW)
    for day in {row["source_event_ts"] for row in rows} | {row["snapshot_ts"] for row in rows if row["snapshot_ts"]} | {None}:
        then = [row for row in history if (row["is_current"] if day is None else _holds(row, day))]
        now = believed(rows, terms(*ATTRIBUTES), [agreed], known_at=NOW, valid_at=day)
        assert [_state(row) for row in then] == [_state(row) for row in now]


@SOME
@given(statements, st.sampled_from(RULES), st.sampled_from([*ATTRIBUTES, "is_deleted"]))
def test_the_explanation_believes_what_is_believed_and_tells_every_statement_once(said: Sequence[Said], agreed: Rule, name: str) -> None:
    rows = [row for row in assertions(said, terms(*ATTRIBUTES)) if row["bk"] in {"C1", None}]
    why = explained(rows, terms(*ATTRIBUTES), [agreed], attribute=name, known_at=NOW)
    assert why
    for row in believed(rows, terms(*ATTRIBUTES), [agreed], known_at=NOW):
        assert row[name] == why.value
        assert name == "is_deleted" or (name in row["because"]) == (why.winner is not None)
    statements_told = [why.winner, *(loser.statement for loser in why.losers)] if why.winner else [loser.statement for loser in why.losers]
    orders = [statement.order for statement in statements_told]
    assert len(orders) == len(set(orders))


@SOME
@given(st.lists(st.one_of(changes, extracts), min_size=1, max_size=6), st.sampled_from(RULES))
def test_pinned_and_propagated_timelines_give_the_same_beliefs(said: Sequence[Said], agreed: Rule) -> None:
    pinned, propagated = (terms(*ATTRIBUTES, late_partials=manner) for manner in ("pinned", "propagate"))
    histories = [
        belief_history(assertions(said, agreed_terms), agreed_terms, [agreed], known_at=NOW) for agreed_terms in (pinned, propagated)
    ]
    assert histories[0] == histories[1]


def _holds(row: Row, day: object) -> bool:
    return bool(row["valid_from"] <= day and (row["valid_to"] is None or day < row["valid_to"]))


def _state(row: Row) -> Row:
    return {name: row[name] for name in ("bk", *ATTRIBUTES, "is_deleted", "rule_version")}
