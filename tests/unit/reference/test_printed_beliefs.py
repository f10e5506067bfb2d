"""What silver believes of the worked examples of the requirements, as printed: at every instant, and because of whom."""

from itertools import permutations

import pytest

from karat.reference import Authority, Rule, believed
from tests.unit.reference.beliefs import CORE_ALONE, CRM_ALONE, NOW, after_run, belief, group, lost, rule, told, whose
from tests.unit.reference.histories import assertions, lines, moment, shown, terms
from tests.unit.reference.test_printed_histories import CONFLICT, ONE_SOURCE, TWO_SOURCES

STATUS = terms("status")
WHOLE = terms("name", "address", "status")
HIGHEST_RANK = rule(group("status"))
COMPOSED = (group("status"), group("name", "address", by="recency", sources=CRM_ALONE))
CRM_DELETES = rule(*COMPOSED, delete=Authority(sources=CRM_ALONE))
CORE_DELETES = rule(*COMPOSED, delete=Authority(sources=CORE_ALONE))


@pytest.mark.parametrize(
    ("at", "status", "because"),
    [
        ("2026-03-02 12:00", "Restricted", "CORE 2026-03-02 10:00"),
        ("2026-03-02 19:00", "Active", "CORE 2026-03-02 18:00"),
        ("2026-03-03 10:00", "Active", "CORE 2026-03-02 18:00"),
    ],
)
def test_precedence_between_two_sources_is_as_printed(at: str, status: str, because: str) -> None:
    (row,) = belief(CONFLICT, STATUS, HIGHEST_RANK, at=at)
    assert (row["status"], row["is_deleted"]) == (status, False)
    assert whose(row["because"]) == {"status": because}


def test_before_the_late_clearance_arrived_the_restriction_was_believed() -> None:
    (row,) = belief(CONFLICT, STATUS, HIGHEST_RANK, at="2026-03-03 10:00", known_at=after_run(3))
    assert (row["status"], whose(row["because"])) == ("Restricted", {"status": "CORE 2026-03-02 10:00"})


def test_the_conflict_stays_explainable() -> None:
    assert lost(CONFLICT, STATUS, HIGHEST_RANK, "status") == [
        "CRM 2026-03-01 09:00 Active: superseded",
        "CORE 2026-03-02 10:00 Restricted: superseded",
        "CORE 2026-03-02 18:00 Active: won",
        "CRM 2026-03-03 09:00 Active: rank",
    ]


@pytest.mark.parametrize(
    ("at", "case", "printed"),
    [
        ("2026-03-02 12:00", CRM_DELETES, "Restricted 12 Market Street false"),
        ("2026-03-02 12:00", CORE_DELETES, "Restricted 12 Market Street false"),
        ("2026-03-02 19:00", CRM_DELETES, "Active 12 Market Street false"),
        ("2026-03-02 19:00", CORE_DELETES, "Active 12 Market Street false"),
        ("2026-03-03 10:00", CRM_DELETES, "Active 18 King Street false"),
        ("2026-03-03 10:00", CORE_DELETES, "Active 18 King Street false"),
        ("2026-03-04 13:00", CRM_DELETES, "Active 18 King Street true"),
        ("2026-03-04 13:00", CORE_DELETES, "Active 18 King Street false"),
    ],
)
def test_composing_from_two_sources_and_deleting_by_authority_are_as_printed(at: str, case: Rule, printed: str) -> None:
    assert shown(belief(TWO_SOURCES, WHOLE, case, at=at), "status address deleted") == [printed]


def test_each_attribute_of_a_composed_belief_has_its_own_author() -> None:
    (row,) = belief(TWO_SOURCES, WHOLE, CRM_DELETES)
    assert whose(row["because"]) == {"name": "CRM 2026-03-01 09:00", "address": "CRM 2026-03-03 09:00", "status": "CORE 2026-03-02 18:00"}


def test_the_printed_instants_are_one_history() -> None:
    assert shown(told(TWO_SOURCES, WHOLE, CRM_DELETES), "valid_from valid_to name address status deleted current") == [
        "2026-03-01 09:00 2026-03-02 10:00 Jane Carter 12 Market Street Active false false",
        "2026-03-02 10:00 2026-03-02 18:00 Jane Carter 12 Market Street Restricted false false",
        "2026-03-02 18:00 2026-03-03 09:00 Jane Carter 12 Market Street Active false false",
        "2026-03-03 09:00 2026-03-04 12:00 Jane Carter 18 King Street Active false false",
        "2026-03-04 12:00 - Jane Carter 18 King Street Active true true",
    ]


def test_a_delete_that_is_not_adopted_opens_no_period() -> None:
    assert shown(told(TWO_SOURCES, WHOLE, CORE_DELETES), "valid_from valid_to deleted current")[-1] == "2026-03-03 09:00 - false true"


def test_the_printed_beliefs_do_not_depend_on_the_order_of_arrival() -> None:
    expected = "Active 18 King Street true"
    for arrival in permutations(lines(TWO_SOURCES)):
        rows = believed(assertions(arrival, WHOLE), WHOLE, [CRM_DELETES], known_at=NOW)
        assert shown(rows, "status address deleted") == [expected]


def test_one_source_s_point_in_time_is_as_printed() -> None:
    rows = belief(ONE_SOURCE, WHOLE, rule(group("name", "address", "status")), at="2026-03-02 16:00")
    assert shown(rows, "name address status deleted") == ["Jane Carter 12 Market Street Restricted false"]


def test_one_source_s_deleted_customer_shows_what_it_said_last_not_what_its_rows_inherited() -> None:
    rows = belief(ONE_SOURCE, WHOLE, rule(group("name", "address", "status")))
    assert shown(rows, "name address status deleted") == ["Jane Carter 18 King Street Restricted true"]


def test_the_examples_are_about_one_customer_whose_key_is_shown() -> None:
    (row,) = belief(CONFLICT, STATUS, HIGHEST_RANK)
    assert (row["customer_id"], row["bk"], row["rule_version"]) == ("C1", "C1", 1)
    assert moment("2026-03-02 18:00") == row["because"]["status"]["source_event_ts"]
