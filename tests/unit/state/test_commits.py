"""What a table's log says about a stage, from literal logs: where it stands, and whether anybody has changed rows since."""

from typing import Any

import pytest

from karat.state.commits import Commit, checkpoint_in, last_move

STAGE = "silver.people"
Log = list[dict[str, Any]]


def log(*entries: str) -> Log:
    """A log from the oldest to the newest commit, as the log tells it; a number is the commit of that number of the stage."""
    rows: Log = []
    for version, entry in enumerate(entries):
        number = int(entry) if entry.isdigit() else None
        text = "" if number is None else Commit(STAGE, number, f"run {number}", "-", {"watermark": f"mark {number}"}).as_text()
        operation = entry if number is None else "MERGE"
        parameters = {"version": operation.removeprefix("RESTORE ")} if operation.startswith("RESTORE") else {}
        rows.append(
            {
                "version": version,
                "timestamp": 1000 + version,
                "operation": operation.split(" ")[0] if parameters else operation,
                "operationParameters": parameters,
                "userMetadata": text,
            }
        )
    return rows[::-1]


@pytest.mark.parametrize(
    ("entries", "moved"),
    [
        (["WRITE"], "0@1000"),
        (["WRITE", "MERGE"], "1@1001"),
        (["WRITE", "OPTIMIZE", "VACUUM START", "VACUUM END", "REORG", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"], "0@1000"),
        (["WRITE", "ADD COLUMNS"], "1@1001"),
        (["WRITE", "MERGE", "RESTORE 0"], "2@1002"),
        (["OPTIMIZE"], None),
        ([], None),
    ],
)
def test_a_table_moves_with_every_commit_that_may_change_what_is_read(entries: list[str], moved: str | None) -> None:
    assert last_move(log(*entries)) == moved


def test_a_commit_that_says_nothing_about_itself_is_a_move() -> None:
    assert last_move([{"version": 3}]) == "3@None"


@pytest.mark.parametrize(
    ("entries", "sequence", "mark", "untouched", "set_back"),
    [
        (["0", "1"], 1, "mark 1", True, False),
        (["0", "1", "OPTIMIZE"], 1, "mark 1", True, False),
        (["0", "1", "DELETE"], 1, "mark 1", False, False),
        (["0", "1", "DELETE", "2"], 2, "mark 2", True, False),
        (["0", "1", "2", "RESTORE 1"], 2, "mark 1", False, True),
        (["0", "1", "2", "RESTORE 1", "3"], 3, "mark 3", True, True),
    ],
)
def test_a_stage_stands_where_its_last_commit_left_it_unless_somebody_came_after(
    entries: list[str], sequence: int, mark: str, *, untouched: bool, set_back: bool
) -> None:
    found = checkpoint_in(log(*entries), STAGE)
    assert found is not None
    assert (found.sequence, found.position["watermark"], found.untouched, found.set_back) == (sequence, mark, untouched, set_back)


def test_a_log_without_a_commit_of_the_stage_says_nothing() -> None:
    assert checkpoint_in(log("WRITE", "OPTIMIZE"), STAGE) is None
    assert checkpoint_in(log("0", "1"), "silver.others") is None
