"""What a person sees of a run: live lines on a terminal, plain lines elsewhere, and a summary at the end.

Progress goes to stderr and the summary to stdout, so that a pipe gets the result and nothing else.
"""

import os
import time
from typing import Final, Literal

from rich.console import Console
from rich.live import Live

from karat.telemetry.board import Board, clean, outcome
from karat.telemetry.events import Event, Heartbeat, RunFinished, RunStarted, StageFinished, StageStarted
from karat.telemetry.summary import print_summary

Verbosity = Literal["normal", "quiet", "silent"]
"""`quiet` says only the summary (`--quiet`); `silent` says nothing, for somebody prints JSON (`--json`)."""

_PER_SECOND: Final = 8
_BELOW: Final = 2
"""Lines kept free under the live picture."""


class Terminal:
    """Shows a run to whoever sits there. `out` gets the summary, `err` the progress."""

    def __init__(self, out: Console, err: Console, verbosity: Verbosity = "normal") -> None:
        self._out = out
        self._err = err
        self._voice = verbosity
        self._board = Board(time.monotonic)
        self._live: Live | None = None

    def emit(self, event: Event) -> None:
        """Show what the event changes."""
        if self._voice == "silent":
            return
        self._board.take(event)
        if isinstance(event, RunFinished):
            self._stop_live()
            print_summary(self._out, self._board.finished(), event, plain=not _is_lively(self._out))
        elif self._voice == "normal":
            self._show(event)

    def close(self) -> None:
        """Give the terminal back, also when the run never finished."""
        self._stop_live()

    def _show(self, event: Event) -> None:
        if not _is_lively(self._err):
            for line in plain_lines(event):
                self._err.file.write(f"{line}\n")
            self._err.file.flush()
        elif isinstance(event, RunStarted):
            self._start_live()

    def _start_live(self) -> None:
        self._stop_live()
        self._live = Live(
            console=self._err,
            get_renderable=lambda: self._board.picture(self._err.height - _BELOW),
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=False,  # it would send stdout's lines to stderr
        )
        self._live.start()

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._live = None


def plain_lines(event: Event) -> list[str]:
    """The event for a file or a CI log: no colour, no width, one line each thing."""
    match event:
        case RunStarted():
            return [clean(f"run {event.run_id} of {event.project}: {len(event.stages)} tables").plain]
        case StageStarted():
            return [clean(f"started: {event.stage}").plain]
        case StageFinished():
            notes = (clean(f"note: {event.stage}: {' '.join(note.split())}").plain for note in event.notes)
            return [clean(f"{event.stage} {outcome(event)}").plain, *notes]
        case Heartbeat() if event.running:
            running = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in event.running.items())
            return [clean(f"still running: {running}").plain]
        case RunFinished(interrupted=str(signal)):
            return [f"interrupted by {signal}"]
        case _:
            return []


def _is_lively(console: Console) -> bool:
    """A person's terminal that can move its cursor and was not asked to be plain."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("CI")
    return console.is_terminal and not console.is_dumb_terminal and not plain
