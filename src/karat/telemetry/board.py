"""What a run looks like right now: the events so far, folded into one line per table."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from rich.console import RenderableType
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from karat.telemetry.events import Event, Rows, RunStarted, StageFinished, StageStarted, Status

State = Literal["waiting", "running"] | Status

COLOURS: Final[dict[State, str]] = {
    "waiting": "dim",
    "running": "cyan",
    "succeeded": "green",
    "unchanged": "dim",
    "skipped": "yellow",
    "failed": "bold red",
    "interrupted": "yellow",
}
_MARKS: Final[dict[State, str]] = {"waiting": "·", "succeeded": "✓", "unchanged": "=", "skipped": "-", "failed": "✗", "interrupted": "!"}
_INTEREST: Final[tuple[State, ...]] = ("running", "failed", "interrupted", "skipped", "waiting", "succeeded", "unchanged")
_CONTROL: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Line:
    """One table of the run."""

    stage: str
    state: State = "waiting"
    began: float = 0.0
    finished: StageFinished | None = None


class Board:
    """Every table of the run in the order it was planned, or met."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lines: dict[str, Line] = {}
        self._spinner = Spinner("dots", style=COLOURS["running"])

    def take(self, event: Event) -> None:
        """Fold one event in; a new run wipes the board."""
        match event:
            case RunStarted():
                self._lines = {stage: Line(stage) for stage in event.stages}
            case StageStarted():
                self._lines[event.stage] = Line(event.stage, "running", began=self._clock())
            case StageFinished():
                line = self._lines.get(event.stage, Line(event.stage))
                self._lines[event.stage] = replace(line, state=event.status, finished=event)
            case _:
                pass

    def finished(self) -> list[StageFinished]:
        """The tables that ended, in the board's order."""
        return [line.finished for line in self._copy() if line.finished is not None]

    def picture(self, height: int) -> Table:
        """One line per table; where the terminal is too low, the interesting ones and a count of the others."""
        lines = self._copy()
        hidden = len(lines) - height
        if hidden > 0:
            hidden += 1
            chosen = sorted(lines, key=lambda line: _INTEREST.index(line.state))[: max(height - 1, 0)]
            lines = [line for line in lines if line in chosen]
        grid = Table.grid(padding=(0, 2, 0, 0))
        for _ in ("mark", "stage", "state"):
            grid.add_column(no_wrap=True, overflow="ellipsis")
        for line in lines:
            grid.add_row(self._mark(line), clean(line.stage), Text(self._state(line), style=COLOURS[line.state]))
        if hidden > 0:
            grid.add_row("", Text(f"and {hidden} more", style="dim"), "")
        return grid

    def _copy(self) -> list[Line]:
        """The painter runs in a thread of its own, while stages come and go."""
        return list(self._lines.copy().values())

    def _mark(self, line: Line) -> RenderableType:
        return self._spinner if line.state == "running" else Text(_MARKS[line.state], style=COLOURS[line.state])

    def _state(self, line: Line) -> str:
        if line.finished is not None:
            return outcome(line.finished)
        return f"running {self._clock() - line.began:.0f} s" if line.state == "running" else line.state


def outcome(event: StageFinished) -> str:
    """How a table ended, in a few words: what became of its rows, or the first line of its error."""
    words: list[str] = [event.status]
    if event.error:
        words.append(clean(event.error).plain.strip().partition("\n")[0])
    elif counted := row_counts(event.rows):
        words.append(counted)
    return f"{': '.join(words)} ({event.seconds:.1f} s)"


def row_counts(rows: Rows) -> str:
    """The counts that are not zero, in one line."""
    counts = {
        "read": rows.read,
        "inserted": rows.inserted,
        "updated": rows.updated,
        "deleted": rows.deleted,
        "quarantined": rows.quarantined,
    }
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def clean(text: str) -> Text:
    """The text to print as it stands: no markup is read in it, and nothing in it can steer a terminal."""
    return Text(_CONTROL.sub("", text))
