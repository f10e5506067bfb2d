"""Statements of a source without a key: truncate, absence from a complete snapshot; and presence, which brings back."""

from itertools import permutations

from karat.reference import timeline
from tests.unit.reference.histories import assertions, history, lines, shown, terms

STATUS = terms("status")
VERSIONS = "key from to status op deleted"
TRUNCATED = """
    key | source | op | at | status
    C1  | CRM    | c  | 1  | A
    C2  | CRM    | c  | 1  | B
    C2  | CRM    | d  | 2  | .
    C1  | CORE   | c  | 2  | C
    C3  | CRM    | c  | 4  | D
    .   | CRM    | t  | 3  | .
"""


def test_a_truncate_deletes_what_its_source_holds_live_whenever_it_arrives() -> None:
    agreed = terms(late_partials="propagate")
    for arrival in permutations(lines(TRUNCATED)):
        rows = timeline(assertions(arrival, agreed), agreed)
        assert shown(rows, "key source from to source_to status op deleted") == [
            "C1 CRM 1 2 3 A c false",
            "C1 CORE 2 3 - C c false",
            "C1 CRM 3 - - A t true",
            "C2 CRM 1 2 2 B c false",
            "C2 CRM 2 - - B d true",
            "C3 CRM 4 - - D c false",
        ]


def test_an_older_statement_that_arrives_after_a_truncate_is_closed_by_it() -> None:
    rows = history("op | at | status | file \n t | 3 | . | sweep \n u | 2 | A | late", STATUS)
    assert shown(rows, VERSIONS) == ["C1 2 3 A u false", "C1 3 - A t true"]
    assert shown(rows, "file run seen") == ["late run-002 1", "sweep run-001 1"]


def test_a_truncate_that_arrives_twice_is_one_delete_seen_twice() -> None:
    rows = history("op | at | status \n c | 1 | A \n t | 3 | . \n t | 3 | .", STATUS)
    assert shown(rows, "from to deleted seen run") == ["1 3 false 1 run-001", "3 - true 2 run-002"]


def test_a_second_truncate_finds_nothing_to_delete() -> None:
    rows = history("op | at | status \n c | 1 | A \n t | 3 | . \n t | 5 | .", STATUS)
    assert shown(rows, "from to deleted seen last") == ["1 3 false 1 1", "3 - true 1 3"]


def test_a_truncate_says_nothing_to_a_source_that_never_spoke_of_the_key() -> None:
    assert shown(history("source | op | at | status \n CRM | c | 1 | A \n CORE | t | 2 | .", STATUS), "from to") == ["1 -"]


def test_a_truncate_and_an_upsert_of_one_moment_go_by_their_sequence() -> None:
    table = "op | at | seq | status \n c | 1 | 1 | A \n t | 2 | 2 | . \n u | 2 | 3 | B"
    assert shown(history(table, STATUS), VERSIONS) == ["C1 1 2 A c false", "C1 2 2 A t true", "C1 2 - B u false"]


def test_a_sweep_carries_the_last_known_attributes_even_when_pinned() -> None:
    agreed = terms("name", "status")
    rows = history("op | at | name | status \n c | 1 | N | A \n t | 3 | . | . \n u | 2 | . | B", agreed)
    assert shown(rows, "from name status deleted") == ["1 N A false", "2 N B false", "3 N B true"]
    assert shown([rows[-1]["inherited"]["status"]], "source source_event_ts") == ["CRM 2"]
    assert rows[-1]["inherited"]["status"]["record_hash"] == rows[1]["record_hash"]


SNAPSHOTS = """
    key | load | op     | at | snapshot | status
    C1  | FULL | -      | 1  | 1        | A
    C2  | FULL | -      | 1  | 1        | B
    .   | FULL | absent | 1  | 1        | .
    C1  | FULL | -      | 2  | 2        | A
    .   | FULL | absent | 2  | 2        | .
"""


def test_absence_from_a_complete_snapshot_is_a_delete_whenever_its_parts_arrive() -> None:
    for arrival in permutations(lines(SNAPSHOTS)):
        rows = timeline(assertions(arrival, STATUS), STATUS)
        assert shown(rows, f"{VERSIONS} seen") == ["C1 1 - A - false 2", "C2 1 2 B - false 1", "C2 2 - B absent true 1"]


def test_an_older_statement_that_arrives_after_an_absence_is_closed_by_it() -> None:
    rows = history("load | op | at | status \n FULL | absent | 3 | . \n PARTIAL | u | 2 | A", STATUS)
    assert shown(rows, VERSIONS) == ["C1 2 3 A u false", "C1 3 - A absent true"]


def test_a_row_of_the_same_snapshot_that_comes_in_a_later_run_takes_the_absence_back() -> None:
    table = """
        load | op     | at | snapshot | status
        FULL | -      | 1  | 1        | A
        FULL | absent | 5  | 5        | .
        FULL | -      | 2  | 5        | B
    """
    assert shown(history(table, STATUS), VERSIONS) == ["C1 1 2 A - false", "C1 2 - B - false"]


def test_being_in_another_feed_s_snapshot_of_that_time_is_no_presence_in_this_one() -> None:
    table = """
        feed | load | op     | at | snapshot | status
        crm  | FULL | -      | 1  | 1        | A
        web  | FULL | -      | 2  | 5        | A
        crm  | FULL | absent | 5  | 5        | .
    """
    assert shown(history(table, STATUS), VERSIONS) == ["C1 1 5 A - false", "C1 5 - A absent true"]


RETURN = """
    load | op     | at | snapshot | status
    FULL | -      | 1  | 1        | A
    FULL | absent | 3  | 3        | .
    FULL | -      | 2  | 5        | B
    FULL | -      | 2  | 6        | B
"""


def test_presence_brings_back_at_the_time_of_the_snapshot() -> None:
    for arrival in permutations(lines(RETURN)):
        rows = timeline(assertions(arrival, STATUS), STATUS)
        assert shown(rows, "from to status op deleted source_event_ts last seen") == [
            "1 2 A - false 1 1 1",
            "2 3 B - false 2 2 2",
            "3 5 B absent true 3 3 1",
            "5 - B - false 2 5 1",
        ]


def test_presence_brings_back_after_an_explicit_delete_too() -> None:
    table = """
        load    | op | at | snapshot | status
        FULL    | -  | 1  | 1        | A
        PARTIAL | d  | 3  | 3        | .
        FULL    | -  | 1  | 4        | A
    """
    assert shown(history(table, STATUS), "from to status deleted seen") == ["1 3 A false 2", "3 4 A true 1", "4 - A false 1"]


def test_presence_says_nothing_while_the_source_holds_the_key_live_or_has_not_spoken() -> None:
    table = """
        source | load    | op | at | snapshot | status
        CORE   | PARTIAL | c  | 1  | 1        | B
        CORE   | PARTIAL | d  | 2  | 2        | .
        CRM    | FULL    | -  | 5  | 3        | A
        CRM    | FULL    | -  | 5  | 7        | A
    """
    assert shown(history(table, STATUS), "source from to status deleted") == ["CORE 1 2 B false", "CORE 2 5 B true", "CRM 5 - A false"]


def test_who_is_back_is_heard_from_the_time_of_the_snapshot() -> None:
    agreed = terms("name", "status", late_partials="propagate")
    table = """
        source | load    | op | at | snapshot | name | status
        CRM    | FULL    | -  | 1  | 1        | N    | A
        CRM    | PARTIAL | d  | 3  | 3        | .    | .
        CRM    | FULL    | -  | 2  | 5        | M    | B
        CORE   | PARTIAL | u  | 4  | 4        | .    | C
        CORE   | PARTIAL | u  | 6  | 6        | .    | D
    """
    rows = history(table, agreed)
    assert shown(rows, "source from name status") == ["CRM 1 N A", "CRM 2 M B", "CRM 3 M B", "CORE 4 - C", "CRM 5 M B", "CORE 6 M D"]
    assert shown([rows[-1]["inherited"]["name"]], "source source_event_ts") == ["CRM 5"]


def test_a_return_inherits_at_the_time_of_the_snapshot_when_propagating_and_as_its_row_did_when_pinned() -> None:
    table = """
        load    | op | at | snapshot | name | status
        FULL    | -  | 1  | 1        | N    | A
        PARTIAL | d  | 3  | 3        | .    | .
        FULL    | -  | 2  | 5        | M    | .
    """
    pinned, propagated = (history(table, terms("name", "status", late_partials=manner)) for manner in ("pinned", "propagate"))
    assert shown(pinned, "from name status deleted") == ["1 N A false", "2 M A false", "3 N A true", "5 M A false"]
    assert shown(propagated, "from name status deleted") == ["1 N A false", "2 M A false", "3 M A true", "5 M - false"]
