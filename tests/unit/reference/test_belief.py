"""Who competes for an attribute, who wins it, who deletes, and who is believed in at all."""

from karat.reference import Authority, Rule, believed, conflicts
from tests.unit.reference.beliefs import (
    CORE_ALONE,
    CORE_OVER_CRM,
    CRM_ALONE,
    CRM_OVER_CORE,
    NOW,
    after_run,
    belief,
    group,
    rule,
    whose,
)
from tests.unit.reference.histories import MARCH, assertions, lines, moment, shown, terms

STATUS = terms("status")
BOTH = terms("name", "status")
ANY = rule(group("status"))
LATEST = rule(group("status", by="recency"))
NAMES_TOO = rule(group("name", "status"))


def status(table: str, *rules: Rule, at: str | None = None) -> list[str]:
    """`status because` of the one entity."""
    rows = belief(table, STATUS, *rules, at=at)
    return [f"{row['status']} {whose(row['because']).get('status')}" for row in rows]


def test_a_row_has_key_attributes_verdict_rule_and_the_statement_behind_each_attribute() -> None:
    (said,) = rows = assertions(lines("at | name | status \n 1 | . | A"), BOTH)
    assert believed(rows, BOTH, [NAMES_TOO], known_at=NOW) == [
        {
            "customer_id": "C1",
            "bk": "C1",
            "name": None,
            "status": "A",
            "is_deleted": False,
            "rule_version": 1,
            "because": {"status": {"source_system": "CRM", "source_event_ts": moment("1"), "record_hash": said["record_hash"]}},
        }
    ]


def test_the_higher_rank_wins_by_precedence_and_the_later_word_by_recency() -> None:
    table = "source | rank | at | status \n CORE | 2 | 1 | B \n CRM | 1 | 2 | A"
    assert (status(table, ANY), status(table, LATEST)) == (["B CORE 1"], ["A CRM 2"])


def test_the_rule_s_ranks_stand_above_the_rows_own() -> None:
    table = "source | rank | at | status \n CORE | 2 | 1 | B \n CRM | 1 | 2 | A"
    assert status(table, rule(group("status", sources=CRM_OVER_CORE))) == ["A CRM 2"]


def test_between_equal_ranks_the_later_word_wins() -> None:
    assert status("source | at | status \n CORE | 1 | B \n CRM | 2 | A", rule(group("status", sources={"CRM": 1, "CORE": 1}))) == [
        "A CRM 2"
    ]


def test_between_words_of_one_time_the_higher_rank_wins_by_recency() -> None:
    table = "source | at | status \n CORE | 2 | B \n CRM | 2 | A"
    assert status(table, rule(group("status", by="recency", sources=CORE_OVER_CRM))) == ["B CORE 2"]


def test_between_equal_ranks_of_one_time_the_rows_own_rank_decides_then_the_later_in_the_order() -> None:
    equals = rule(group("status", sources={"CRM": 1, "CORE": 1}))
    assert status("source | rank | seq | at | status \n CORE | 2 | 1 | 2 | B \n CRM | 1 | 9 | 2 | A", equals) == ["B CORE 2"]
    assert status("source | rank | seq | at | status \n CORE | 1 | 1 | 2 | B \n CRM | 1 | 9 | 2 | A", equals) == ["A CRM 2"]
    assert status("source | rank | seq | at | status \n CORE | 1 | 9 | 2 | B \n CRM | 1 | 1 | 2 | A", equals) == ["B CORE 2"]


def test_a_source_that_is_not_allowed_is_not_heard() -> None:
    table = "source | at | status \n CRM | 1 | A \n CORE | 2 | B"
    assert status(table, rule(group("status", sources=CRM_ALONE))) == ["A CRM 1"]


def test_what_a_row_merely_inherited_is_not_its_source_s_word() -> None:
    table = "source | at | name | status \n CRM | 1 | N | A \n CORE | 2 | M | ."
    assert assertions(lines(table), BOTH)[1]["status"] == "A"  # CORE's row carries it
    (row,) = belief(table, BOTH, rule(group("name"), group("status", sources=CORE_ALONE)))
    assert (row["status"], whose(row["because"])) == (None, {"name": "CORE 2"})


def test_a_word_s_time_is_when_it_was_said_not_when_its_source_spoke_last() -> None:
    table = "source | at | name | status \n CRM | 1 | . | A \n CORE | 2 | . | B \n CRM | 3 | N | ."
    (row,) = belief(table, BOTH, rule(group("name", "status", by="recency")))
    assert whose(row["because"]) == {"name": "CRM 3", "status": "CORE 2"}


def test_a_full_row_asserts_every_attribute_also_the_unchanged_one() -> None:
    table = (
        "source | load | op | at | name | status \n CRM | FULL | - | 1 | N | A \n CORE | FULL | - | 2 | M | B \n CRM | FULL | - | 3 | N | A"
    )
    (row,) = belief(table, BOTH, rule(group("name", "status", by="recency")))
    assert whose(row["because"]) == {"name": "CRM 3", "status": "CRM 3"}


def test_a_null_does_not_compete_and_its_source_does_not_fall_back() -> None:
    table = "source | rank | at | status \n CORE | 2 | 1 | B \n CRM | 1 | 2 | A \n CORE | 2 | 3 | -"
    assert status(table, ANY) == ["A CRM 2"]


def test_a_null_competes_where_nulls_count() -> None:
    table = "source | rank | at | status \n CORE | 2 | 1 | B \n CRM | 1 | 2 | A \n CORE | 2 | 3 | -"
    assert status(table, rule(group("status", nulls="count"))) == ["None CORE 3"]


def test_who_has_only_said_null_is_believed_in_without_a_word() -> None:
    assert status("at | status \n 1 | -", ANY) == ["None None"]


def test_an_attribute_of_no_group_is_null() -> None:
    (row,) = belief("at | name | status \n 1 | N | A", BOTH, ANY)
    assert (row["name"], row["status"], whose(row["because"])) == (None, "A", {"status": "CRM 1"})


def test_who_came_back_is_heard_only_since() -> None:
    table = "op | at | name | status \n c | 1 | N | A \n d | 2 | . | . \n u | 3 | M | ."
    (row,) = belief(table, BOTH, NAMES_TOO)
    assert (row["name"], row["status"], row["is_deleted"]) == ("M", None, False)


def test_who_deleted_stands_behind_the_life_that_it_ended_however_often_it_says_so() -> None:
    table = "op | at | name | status \n c | 1 | N | A \n d | 2 | . | . \n u | 3 | . | B \n d | 4 | . | . \n d | 5 | . | ."
    (row,) = belief(table, BOTH, NAMES_TOO)
    assert (row["name"], row["status"], row["is_deleted"]) == (None, "B", True)


def test_a_delete_says_nothing_of_attributes_whatever_it_carries() -> None:
    rows = assertions(lines("key | op | at | status \n C1 | c | 1 | A \n C1 | d | 2 | . \n C2 | d | 2 | ."), STATUS)
    rows[1:] = [{**row, "status": "X", "asserted_columns": ["status"]} for row in rows[1:]]
    assert shown(believed(rows, STATUS, [ANY], known_at=NOW), "key status deleted") == ["C1 A true"]


def test_one_source_s_return_does_not_silence_another() -> None:
    table = """
        source | op | at | name | status
        CORE   | c  | 1  | M    | B
        CRM    | c  | 1  | N    | A
        CRM    | d  | 2  | .    | .
        CRM    | u  | 3  | L    | .
    """
    (row,) = belief(table, BOTH, rule(group("name", "status", sources=CRM_OVER_CORE)))
    assert (row["name"], row["status"]) == ("L", "B")


def test_a_truncate_ends_a_life_and_a_snapshot_row_begins_another_at_its_snapshot_s_time() -> None:
    table = """
        key | load    | op | at | snapshot | status
        C1  | FULL    | -  | 1  | 1        | A
        .   | PARTIAL | t  | 3  | 3        | .
        C1  | FULL    | -  | 2  | 5        | B
    """
    at = {day: shown(belief(table, STATUS, ANY, at=day), "status deleted") for day in ("1", "2", "3", "5")}
    assert at == {"1": ["A false"], "2": ["B false"], "3": ["B true"], "5": ["B false"]}
    assert status(table, ANY) == ["B CRM 5"]


def test_absence_from_a_complete_snapshot_deletes() -> None:
    table = "key | load | op | at | status \n C1 | FULL | - | 1 | A \n C2 | FULL | - | 2 | B \n . | FULL | absent | 2 | ."
    assert shown(belief(table, STATUS, ANY), "key status deleted") == ["C1 A true", "C2 B false"]


def test_only_an_authority_deletes_and_an_update_of_another_revives_nothing() -> None:
    core_deletes = rule(group("status"), delete=Authority(sources=CORE_ALONE))
    table = "source | op | at | status \n CRM | c | 1 | A \n CORE | d | 2 | . \n CRM | u | 3 | B"
    assert shown(belief(table, STATUS, core_deletes), "status deleted") == ["B true"]
    assert shown(belief(table, STATUS, core_deletes, at="1"), "status deleted") == ["A false"]
    assert shown(belief("source | op | at | status \n CRM | c | 1 | A \n CRM | d | 2 | .", STATUS, core_deletes), "status deleted") == [
        "A false"
    ]


TWO_AUTHORITIES = "source | op | at | status \n CRM | c | 1 | A \n CORE | c | 1 | A \n CORE | d | 2 | . \n CRM | u | 3 | B"


def test_of_several_authorities_the_highest_that_has_spoken_decides() -> None:
    assert shown(belief(TWO_AUTHORITIES, STATUS, rule(group("status"), delete=Authority(sources=CORE_OVER_CRM))), "deleted") == ["true"]
    assert shown(belief(TWO_AUTHORITIES, STATUS, rule(group("status"), delete=Authority(sources=CRM_OVER_CORE))), "deleted") == ["false"]
    core_silent = "source | op | at | status \n CRM | c | 1 | A \n CRM | d | 2 | ."
    assert shown(belief(core_silent, STATUS, rule(group("status"), delete=Authority(sources=CORE_OVER_CRM))), "deleted") == ["true"]


def test_of_several_authorities_the_latest_decides_by_recency() -> None:
    latest = rule(group("status"), delete=Authority("recency", CORE_OVER_CRM))
    assert shown(belief(TWO_AUTHORITIES, STATUS, latest, at="2"), "deleted") == ["true"]
    assert shown(belief(TWO_AUTHORITIES, STATUS, latest), "deleted") == ["false"]


def test_an_authority_speaks_with_everything_it_says_also_with_what_it_may_not_say() -> None:
    table = "source | op | at | name | status \n CRM | c | 1 | N | A \n CORE | d | 2 | . | . \n CORE | u | 3 | M | ."
    agreed = rule(group("name", "status", sources=CRM_ALONE), delete=Authority(sources=CORE_ALONE))
    assert shown(belief(table, BOTH, agreed), "name status deleted") == ["N A false"]


def test_an_entity_is_believed_in_once_an_allowed_source_has_said_what_can_be_believed() -> None:
    table = """
        key | source | op | at | name | status
        C1  | CORE   | c  | 1  | .    | A
        C2  | CRM    | c  | 1  | N    | .
        C3  | CRM    | d  | 1  | .    | .
        C4  | CRM    | c  | 1  | .    | -
        C5  | CRM    | c  | 1  | .    | A
        C5  | CRM    | d  | 2  | .    | .
        C5  | CRM    | u  | 3  | N    | .
    """
    crm_on_status = rule(group("status", sources=CRM_ALONE))
    assert shown(belief(table, BOTH, crm_on_status), "key status") == ["C4 -", "C5 -"]
    assert shown(belief(table, BOTH, crm_on_status, at="2"), "key status deleted") == ["C4 - false", "C5 A true"]


def test_nothing_is_believed_before_it_was_said_or_received() -> None:
    table = "at | status \n 2 | A \n 4 | B"
    assert status(table, ANY, at="1") == []
    assert belief(table, STATUS, ANY, known_at=after_run(0)) == []
    assert shown(belief(table, STATUS, ANY, known_at=after_run(1)), "status") == ["A"]
    assert shown(belief(table, STATUS, ANY, known_at=after_run(2)), "status") == ["B"]


def test_what_a_rejected_source_sent_is_evidence_but_no_statement() -> None:
    rows = assertions(lines("source | at | status \n CRM | 1 | A \n CORE | 2 | B"), STATUS)
    rows[1] = {**rows[1], "time_basis": None}
    assert shown(believed(rows, STATUS, [LATEST], known_at=NOW), "status") == ["A"]


def test_the_rule_is_the_last_in_force_at_the_time_of_knowledge() -> None:
    first = rule(group("status", sources=CRM_ALONE), since=after_run(2))
    second = rule(group("status", sources=CORE_ALONE), version=2, since=after_run(4))
    table = "source | at | status \n CRM | 1 | A \n CORE | 1 | B"
    beliefs = {run: shown(belief(table, STATUS, second, first, known_at=after_run(run)), "status rule_version") for run in (1, 2, 3, 4)}
    assert beliefs == {1: [], 2: ["A 1"], 3: ["A 1"], 4: ["B 2"]}


def test_copies_of_a_statement_are_one_word_known_since_the_first_came() -> None:
    table = "source | at | status | file \n CRM | 1 | A | b \n CORE | 1 | B | x \n CRM | 1 | A | a"
    rows = assertions(lines(table), STATUS)
    (row,) = believed(rows, STATUS, [rule(group("status", sources=CRM_OVER_CORE))], known_at=NOW)
    assert row["because"]["status"]["record_hash"] == rows[0]["record_hash"]


def test_conflicts_are_where_the_words_of_allowed_sources_differ() -> None:
    table = """
        key | source | at | name | status
        C1  | CRM    | 1  | N    | A
        C1  | CORE   | 2  | N    | B
        C2  | CRM    | 1  | N    | A
        C2  | CORE   | 2  | M    | -
        C3  | CRM    | 1  | N    | A
        C3  | KYC    | 2  | N    | B
    """
    rows = assertions(lines(table), BOTH)
    agreed = rule(group("name", sources=CRM_ALONE), group("status", sources=CORE_OVER_CRM))
    assert conflicts(rows, BOTH, [agreed], known_at=NOW) == [
        {
            "customer_id": "C1",
            "bk": "C1",
            "attribute": "status",
            "value": "B",
            "candidates": [
                {"source_system": "CORE", "value": "B", "at": moment("2"), "record_hash": rows[1]["record_hash"], "won": True},
                {"source_system": "CRM", "value": "A", "at": moment("1"), "record_hash": rows[0]["record_hash"], "won": False},
            ],
        }
    ]


def test_a_null_conflicts_only_where_nulls_count() -> None:
    rows = assertions(lines("source | at | status \n CRM | 1 | A \n CORE | 2 | -"), STATUS)
    assert conflicts(rows, STATUS, [ANY], known_at=NOW) == []
    (conflict,) = conflicts(rows, STATUS, [rule(group("status", nulls="count"))], known_at=NOW)
    assert (conflict["value"], [each["value"] for each in conflict["candidates"]]) == (None, [None, "A"])


def test_without_a_rule_there_is_neither_belief_nor_conflict() -> None:
    rows = assertions(lines("source | at | status \n CRM | 1 | A \n CORE | 2 | B"), STATUS)
    assert believed(rows, STATUS, [ANY], known_at=MARCH.replace(year=2025)) == []
    assert conflicts(rows, STATUS, [ANY], known_at=MARCH.replace(year=2025)) == []
