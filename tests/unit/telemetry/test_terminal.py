"""What a person sees: live lines on a terminal, plain lines elsewhere, a summary on stdout."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from karat.telemetry.board import Board
from karat.telemetry.events import Event, Heartbeat, Rows, RunFinished, RunStarted, StageFinished, StageStarted
from karat.telemetry.terminal import Terminal, Verbosity

AT = datetime(2026, 1, 2, tzinfo=UTC)
GOOD: Sequence[Event] = (
    RunStarted("r1", AT, "bank", ("bronze.a", "silver.b"), "abc"),
    StageStarted("r1", AT, "bronze.a"),
    Heartbeat("r1", AT, {"bronze.a": 64.2}),
    StageFinished("r1", AT, "bronze.a", "succeeded", 64.9, Rows(read=1200, inserted=3), notes=("2 rows came late",)),
    StageFinished("r1", AT, "silver.b", "unchanged", 0.5),
    RunFinished("r1", AT, ok=True, seconds=65.4, counts={"succeeded": 1, "unchanged": 1, "failed": 0}),
)
BAD: Sequence[Event] = (
    RunStarted("r2", AT, "bank", ("bronze.a", "silver.b"), "abc"),
    StageStarted("r2", AT, "bronze.a"),
    StageFinished("r2", AT, "bronze.a", "failed", 1.0, error="[CONTRACT] \x1b[31m3 rows\x1b[0m [bold]bad\n  remedy: fix them"),
    StageFinished("r2", AT, "silver.b", "skipped", 0.0, error="bronze.a failed"),
    RunFinished("r2", AT, ok=False, seconds=1.0, counts={"failed": 1, "skipped": 1}, failed=("bronze.a",)),
)


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CI", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@dataclass(frozen=True)
class Seen:
    out: str
    err: str


def console(file: StringIO, *, terminal: bool) -> Console:
    return Console(file=file, force_terminal=terminal, width=100, height=40)


def shown(events: Sequence[Event], *, terminal: bool = False, verbosity: Verbosity = "normal") -> Seen:
    out, err = StringIO(), StringIO()
    sink = Terminal(console(out, terminal=terminal), console(err, terminal=terminal), verbosity)
    for event in events:
        sink.emit(event)
    sink.close()
    return Seen(out.getvalue(), err.getvalue())


def test_off_a_terminal_each_event_is_a_plain_line_on_stderr() -> None:
    assert shown(GOOD).err.splitlines() == [
        "run r1 of bank: 2 tables",
        "started: bronze.a",
        "still running: bronze.a 64 s",
        "bronze.a succeeded: 1,200 read, 3 inserted (64.9 s)",
        "note: bronze.a: 2 rows came late",
        "silver.b unchanged (0.5 s)",
    ]


def test_the_summary_is_a_table_on_stdout() -> None:
    assert shown(GOOD).out.splitlines() == [
        "stage     status      read  inserted  updated  deleted  quarantined  seconds",
        "bronze.a  succeeded  1,200         3        0        0            0     64.9",
        "silver.b  unchanged      0         0        0        0            0      0.5",
        "",
        "Notes:",
        "  bronze.a: 2 rows came late",
        "",
        "Run r1: 1 succeeded, 1 unchanged in 65.4 s.",
    ]


def test_a_failed_run_lists_what_failed_and_why() -> None:
    assert shown(BAD).out.splitlines()[3:] == [
        "",
        "Failed:",
        "  bronze.a: [CONTRACT] 3 rows [bold]bad",
        "      remedy: fix them",
        "",
        "Skipped:",
        "  silver.b: bronze.a failed",
        "",
        "Run r2: 1 failed, 1 skipped in 1.0 s. Failed: bronze.a.",
    ]


def test_a_run_without_changes_ends_by_saying_so() -> None:
    end = RunFinished("r3", AT, ok=True, seconds=1.0, counts={"unchanged": 1})
    events: list[Event] = [StageFinished("r3", AT, "bronze.a", "unchanged", 1.0), end]
    assert shown(events).out.endswith("Run r3: 1 unchanged in 1.0 s. Nothing changed.\n")
    assert shown(events, terminal=True).out.endswith("Nothing changed.\n")


def test_quiet_says_only_the_summary() -> None:
    assert shown(GOOD, verbosity="quiet") == Seen(shown(GOOD).out, "")
    assert shown(GOOD, verbosity="quiet", terminal=True).err == ""


def test_silent_says_nothing() -> None:
    assert shown(GOOD, verbosity="silent") == Seen("", "")


@pytest.mark.parametrize("wish", ["NO_COLOR", "CI", "dumb"])
def test_a_terminal_asked_to_be_plain_gets_no_escape_sequence(wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if wish == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:
        monkeypatch.setenv(wish, "1")
    assert shown(BAD, terminal=True) == shown(BAD)
    assert "\x1b" not in shown(BAD).out + shown(BAD).err


def test_on_a_terminal_the_live_lines_are_wiped_and_the_summary_stays() -> None:
    seen = shown(BAD, terminal=True)
    assert "\x1b[?25l" in seen.err
    assert seen.err.rstrip("\r\n").endswith("\x1b[2K")
    assert seen.err.count("\x1b[?25h") == 1
    assert "✗" in seen.err
    assert "quarantined" in seen.out
    assert "[bold]bad" in seen.out
    assert "\x1b[31m3 rows" not in seen.out + seen.err


def test_a_run_cut_short_gives_the_terminal_back() -> None:
    assert shown(GOOD[:3], terminal=True).err.count("\x1b[?25h") == 1


def picture(board: Board, height: int = 20) -> list[str]:
    paper = Console(file=StringIO(), width=100)
    with paper.capture() as captured:
        paper.print(board.picture(height))
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_the_picture_has_one_line_per_table() -> None:
    now = 100.0
    board = Board(lambda: now)
    for event in (GOOD[0], GOOD[1]):
        board.take(event)
    now = 112.0
    first, second = picture(board)
    assert first.endswith("bronze.a running 12 s")
    assert second == "· silver.b waiting"
    for event in GOOD[3:5]:
        board.take(event)
    assert picture(board) == ["✓ bronze.a succeeded: 1,200 read, 3 inserted (64.9 s)", "= silver.b unchanged (0.5 s)"]


def test_a_low_terminal_shows_the_tables_at_work_and_counts_the_others() -> None:
    board = Board(time.monotonic)
    names = tuple(f"bronze.t{number}" for number in range(10))
    board.take(RunStarted("r1", AT, "bank", names, "abc"))
    board.take(StageFinished("r1", AT, "bronze.t2", "failed", 1.0, error="bad"))
    board.take(StageStarted("r1", AT, "bronze.t8"))
    lines = picture(board, height=4)
    assert [line.split()[1] for line in lines] == ["bronze.t0", "bronze.t2", "bronze.t8", "7"]
    assert lines[-1] == "and 7 more"


def test_a_long_error_stays_on_its_line() -> None:
    board = Board(time.monotonic)
    board.take(StageFinished("r1", AT, "bronze.a", "failed", 1.0, error="very " * 50 + "bad"))
    (line,) = picture(board)
    assert line.endswith("…")
