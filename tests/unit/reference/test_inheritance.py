"""Attributes not said: whose word a partial statement takes, on arrival and when propagating."""

from karat.reference import reconstruct, timeline
from tests.unit.reference.histories import assertions, history, lines, row, shown, terms

TWO = terms("name", "status")
PROPAGATED = terms("name", "status", late_partials="propagate")


def test_its_own_word_comes_first_even_if_another_s_is_newer() -> None:
    rows = history("source | at | name | status \n CRM | 1 | N | A \n CORE | 2 | N | B \n CRM | 3 | M | .", TWO)
    assert shown(rows, "source name status") == ["CRM N A", "CORE N B", "CRM M A"]


def test_the_latest_word_of_the_others_comes_second() -> None:
    table = """
        source | at | name | status
        CRM    | 1  | N    | A
        WEB    | 2  | O    | .
        CORE   | 3  | .    | B
    """
    rows = history(table, TWO)
    assert shown(rows, "source name status") == ["CRM N A", "WEB O A", "CORE O B"]
    assert shown([rows[2]["inherited"]["name"]], "source source_event_ts") == ["WEB 2"]
    assert rows[2]["inherited"]["name"]["record_hash"] == rows[1]["record_hash"]


def test_what_nobody_said_is_unknown() -> None:
    (found,) = history("at | name | status \n 1 | N | .", TWO)
    assert (found["status"], found["inherited"]) == (None, {})


def test_a_null_that_was_asserted_is_inherited_as_one() -> None:
    rows = history("source | at | name | status \n CORE | 1 | O | B \n CRM | 2 | N | - \n CRM | 3 | M | .", TWO)
    assert shown(rows, "source name status") == ["CORE O B", "CRM N -", "CRM M -"]
    assert shown([rows[2]["inherited"]["status"]], "source source_event_ts") == ["CRM 2"]


def test_only_what_was_asserted_is_handed_on() -> None:
    table = """
        source | at | name | status
        CRM    | 1  | N    | A
        CORE   | 2  | .    | B
        CRM    | 3  | M    | .
        CORE   | 4  | .    | C
    """
    rows = history(table, TWO)
    assert shown(rows, "source name status") == ["CRM N A", "CORE N B", "CRM M A", "CORE M C"], "CORE never said N: it was CRM's"


def test_a_revival_hears_nothing_its_source_said_before_the_delete() -> None:
    rows = history("op | at | name | status \n c | 1 | N | A \n d | 2 | . | . \n u | 3 | M | .", TWO)
    assert shown(rows, "from name status deleted") == ["1 N A false", "2 N A true", "3 M - false"]


def test_a_deleted_source_is_not_heard_by_others_and_the_others_are_still_heard_by_it() -> None:
    table = """
        source | op | at | name | status
        WEB    | c  | 1  | O    | .
        CRM    | c  | 2  | N    | A
        CRM    | d  | 3  | .    | .
        CORE   | u  | 4  | .    | B
        CRM    | c  | 5  | .    | C
    """
    assert shown(history(table, TWO), "source name status deleted") == [
        "WEB O - false",
        "CRM N A false",
        "CRM N A true",
        "CORE O B false",
        "CRM O C false",
    ]


def test_a_delete_carries_by_the_same_rule() -> None:
    rows = history("source | op | at | name | status \n CORE | c | 1 | O | B \n CRM | c | 2 | N | . \n CRM | d | 3 | . | .", TWO)
    assert shown(rows[-1:], "source name status deleted") == ["CRM N B true"]


def test_partials_of_one_batch_inherit_from_each_other_in_order() -> None:
    rows = history("run | at | name | status \n 1 | 2 | . | B \n 1 | 1 | N | A \n 1 | 3 | M | .", TWO)
    assert shown(rows, "from name status") == ["1 N A", "2 N B", "3 M B"]


def test_a_statement_on_record_keeps_what_it_inherited_when_pinned_and_inherits_again_when_propagating() -> None:
    table = "at | name | status \n 1 | N | A \n 3 | M | . \n 2 | . | B"
    assert shown(history(table, TWO), "from name status") == ["1 N A", "2 N B", "3 M A"]
    assert shown(history(table, PROPAGATED), "from name status") == ["1 N A", "2 N B", "3 M B"]


def test_propagating_can_make_two_versions_one() -> None:
    table = "at | name | status \n 1 | N | A \n 3 | N | . \n 4 | N | B \n 2 | . | B"
    assert shown(history(table, TWO), "from name status") == ["1 N A", "2 N B", "3 N A", "4 N B"]
    assert shown(history(table, PROPAGATED), "from to name status last") == ["1 2 N A 1", "2 - N B 4"]


def test_a_sweep_on_record_silences_its_source_for_what_arrives_later() -> None:
    rows = history("source | op | at | name | status \n CRM | c | 1 | N | A \n CRM | t | 2 | . | . \n CORE | u | 3 | . | B", TWO)
    assert shown(rows, "source name status deleted") == ["CRM N A false", "CRM N A true", "CORE - B false"]


def test_a_copy_is_reconstructed_from_what_is_known_by_then_and_the_timeline_keeps_the_first() -> None:
    on_record = assertions(lines("at | name | status \n 2 | M | . \n 1 | N | A \n 2 | M | ."), TWO)
    assert shown(on_record, "name status") == ["M -", "N A", "M A"]
    assert shown(timeline(on_record, TWO), "from name status seen") == ["1 N A 1", "2 M - 2"]


def test_reconstruction_fills_only_what_arrives_in_the_order_it_came_and_leaves_keyless_rows_alone() -> None:
    prior = [row({"at": "1", "name": "N", "status": "A"}, 1, TWO)]
    sweep = row({"at": "9", "op": "t"}, 2, TWO)
    arriving = [row({"at": "3", "name": "M"}, 2, TWO), sweep, row({"at": "2", "status": "B"}, 2, TWO)]
    found = reconstruct(prior, arriving, TWO)
    assert shown(found, "key name status") == ["C1 M B", "- - -", "C1 N B"]
    assert found[1] == sweep
    assert prior[0]["attr_hash"] is None, "what is on record is not touched"


def test_a_complete_statement_keeps_the_hash_it_was_stored_with() -> None:
    old = {**row({"at": "1", "name": "N", "status": "A"}, 1, PROPAGATED), "attr_hash": b"of another time"}
    assert timeline([old], PROPAGATED)[0]["attr_hash"] == b"of another time"
