"""Versions, rule by rule: what opens one, what is absorbed, and the chains they sit in."""

import pytest

from karat.reference import reconstruct, timeline
from tests.unit.reference.histories import assertions, history, lines, row, shown, terms

STATUS = terms("status")


def test_a_repeated_value_is_one_version() -> None:
    rows = history("at | status \n 1 | A \n 2 | A \n 3 | B", STATUS)
    assert shown(rows, "from to status seen last") == ["1 3 A 2 2", "3 - B 1 3"]


def test_a_late_value_splits_the_version_it_falls_into() -> None:
    rows = history("at | status \n 1 | A \n 3 | A \n 2 | B", STATUS)
    assert shown(rows, "from to status current") == ["1 2 A false", "2 3 B false", "3 - A true"]


def test_a_late_first_value_moves_the_start_of_a_version() -> None:
    rows = history("at | status \n 5 | A \n 1 | A", STATUS)
    assert shown(rows, "from to status seen last run") == ["1 - A 2 5 run-002"]


def test_a_late_delete_closes_what_it_follows() -> None:
    rows = history("op | at | status \n c | 1 | A \n u | 3 | B \n d | 2 | .", STATUS)
    assert shown(rows, "from to status deleted") == ["1 2 A false", "2 3 A true", "3 - B false"]


def test_a_delete_that_comes_before_its_insert_is_remembered() -> None:
    table = "op | at | status \n d | 2 | . \n c | 1 | A"
    assert shown(history(table, terms(late_partials="propagate")), "from to status deleted") == ["1 2 A false", "2 - A true"]
    assert shown(history(table, STATUS), "from to status deleted") == ["1 2 A false", "2 - - true"], "pinned: nothing was known then"


def test_two_deletes_are_one() -> None:
    rows = history("op | at | status \n c | 1 | A \n d | 2 | . \n d | 3 | .", STATUS)
    assert shown(rows, "from to status deleted seen last") == ["1 2 A false 1 1", "2 - A true 2 3"]


def test_a_key_that_comes_back_opens_a_new_version() -> None:
    rows = history("op | at | status \n c | 1 | A \n d | 2 | . \n c | 3 | A", STATUS)
    assert shown(rows, "from to status deleted") == ["1 2 A false", "2 3 A true", "3 - A false"]


def test_null_is_a_value_and_the_empty_text_is_another() -> None:
    rows = history("at | status \n 1 | A \n 2 | - \n 3 | - \n 4 |  \n 5 | A", STATUS)
    assert shown(rows, "from to status") == ["1 2 A", "2 4 -", "4 5 ", "5 - A"]


def test_blanks_around_a_text_are_no_change_and_its_case_is() -> None:
    said = [{"at": "1", "status": "a"}, {"at": "2", "status": " a "}, {"at": "3", "status": "A"}]
    assert shown(timeline(assertions(said, STATUS), STATUS), "from to status") == ["1 3 a", "3 - A"]


def test_copies_in_later_runs_count_and_change_nothing() -> None:
    rows = history("at | file | status | copies \n 1 | b | A | 2 \n 1 | a | A | 1 \n 1 | b | A | 3", STATUS)
    assert shown(rows, "from to status seen file run") == ["1 - A 6 b run-001"]
    assert shown(rows, "ingest_ts first_seen_ts last_seen_ts") == ["2026-06-09 01:00 2026-06-09 01:00 2026-06-09 03:00"]


def test_a_copy_between_other_statements_does_not_split_them() -> None:
    rows = history("at | status \n 1 | A \n 2 | B \n 1 | A", STATUS)
    assert shown(rows, "from to status seen") == ["1 2 A 2", "2 - B 1"]


@pytest.mark.parametrize("files", ["abc", "bac", "cab", "acb", "bca", "cba"])
def test_a_statement_stands_where_its_smallest_file_puts_it(files: str) -> None:
    said = {"a": {"at": "1", "status": "A"}, "b": {"at": "1", "status": "B"}, "c": {"at": "1", "status": "A"}}
    rows = timeline(assertions([{**said[file], "file": file} for file in files], STATUS), STATUS)
    assert shown(rows, "status current seen") == ["A false 2", "B true 1"]


def test_two_sources_that_say_the_same_stay_two() -> None:
    rows = history("source | at | status \n CRM | 1 | A \n CORE | 2 | A \n CRM | 3 | A", STATUS)
    assert shown(rows, "source from to source_to") == ["CRM 1 2 3", "CORE 2 3 -", "CRM 3 - -"]


def test_daily_extracts_of_two_sources_do_not_multiply_versions() -> None:
    table = """
        source | load | op | at | status
        CRM    | FULL | -  | 1  | A
        CORE   | FULL | -  | 2  | B
        CRM    | FULL | -  | 3  | A
        CORE   | FULL | -  | 4  | B
        CRM    | FULL | -  | 5  | C
        CORE   | FULL | -  | 6  | B
    """
    assert shown(history(table, STATUS), "source status from to source_to seen last") == [
        "CRM A 1 2 5 2 3",
        "CORE B 2 5 - 3 6",
        "CRM C 5 - - 1 5",
    ]


def test_a_re_observation_does_not_come_between_two_repeats_of_another_source() -> None:
    table = """
        source | load    | op | at | status
        CRM    | FULL    | -  | 1  | A
        CORE   | PARTIAL | u  | 2  | B
        CRM    | FULL    | -  | 3  | A
        CORE   | PARTIAL | u  | 4  | B
    """
    assert shown(history(table, STATUS), "source status from to seen last") == ["CRM A 1 2 2 3", "CORE B 2 - 2 4"]


def test_an_extract_that_repeats_what_its_source_reported_as_a_change_is_a_re_observation_too() -> None:
    table = """
        source | load    | op | at | status
        CRM    | PARTIAL | u  | 1  | A
        CORE   | PARTIAL | u  | 2  | B
        CRM    | FULL    | -  | 3  | A
        CRM    | PARTIAL | u  | 4  | A
    """
    assert shown(history(table, STATUS), "source status from to seen") == ["CRM A 1 2 2", "CORE B 2 4 1", "CRM A 4 - 1"]


def test_untracked_attributes_ride_along_as_last_said() -> None:
    agreed = terms("status", "note", untracked=frozenset({"note"}))
    rows = history("at | status | note \n 1 | A | x \n 3 | A | y \n 4 | B | . \n 2 | A | late", agreed)
    assert shown(rows, "from to status note") == ["1 4 A y", "4 - B y"]


def test_a_repeated_delete_brings_no_other_attributes_along() -> None:
    agreed = terms("status", "note", untracked=frozenset({"note"}))
    table = """
        source | op | at | status | note
        CRM    | c  | 1  | A      | x
        CRM    | d  | 2  | .      | .
        CORE   | c  | 1  | B      | y
        CRM    | d  | 3  | .      | .
    """
    deleted = history(table, agreed)[-1]
    assert shown([deleted], "source status note seen last") == ["CRM A x 2 3"]
    assert {word["source_system"] for word in deleted["inherited"].values()} == {"CRM"}


def test_a_version_tells_whose_word_its_last_statement_takes() -> None:
    agreed = terms("name", "status")
    rows = history("source | at | name | status \n CRM | 1 | N | A \n CORE | 2 | . | A \n CORE | 3 | N | .", agreed)
    assert shown(rows, "source from to last") == ["CRM 1 2 1", "CORE 2 - 3"]
    assert {name: word["source_system"] for name, word in rows[1]["inherited"].items()} == {"status": "CORE"}


def test_entities_do_not_touch_each_other() -> None:
    rows = history("key | at | status \n C2 | 1 | A \n C1 | 2 | A \n C2 | 3 | B", STATUS)
    assert shown(rows, "key from to status current") == ["C1 2 - A true", "C2 1 3 A false", "C2 3 - B true"]


@pytest.mark.parametrize("late_partials", ["pinned", "propagate"])
def test_an_attribute_added_later_opens_no_version_and_changes_no_hash(late_partials: str) -> None:
    before, grown = (terms(*names, late_partials=late_partials) for names in (("status",), ("status", "added")))
    record = assertions(lines("at | status \n 1 | A \n 2 | B"), before)
    record += reconstruct(record, [row({"at": "3", "status": "B"}, 3, grown)], grown)
    rows = timeline(record, grown)
    assert shown(rows, "from to status added seen") == ["1 2 A - 1", "2 - B - 2"]
    assert [version["attr_hash"] for version in rows] == [old["attr_hash"] for old in record[:2]]


def test_the_rows_have_exactly_the_columns_of_the_timeline() -> None:
    (only,) = timeline(assertions(lines("at | status \n 1 | A"), STATUS), STATUS)
    assert tuple(only) == tuple(
        """
        customer_id status bk sk source_system source_type source_path source_file source_event_ts source_sequence_id
        effective_from effective_to is_current source_effective_to is_source_current is_deleted op load_type entity_type precedence_rank
        inherited attr_hash statement_hash record_hash hash_version time_basis
        ingest_ts ingest_run_id first_seen_ts last_seen_ts seen_count last_event_ts corrects
        """.split()  # noqa: SIM905 - easier to hold against the requirement
    )
