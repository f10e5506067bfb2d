"""The same run, again and again, whenever something new is there, until somebody says stop; a running batch is always finished."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from karat.plan.stages import Believe, Land

if TYPE_CHECKING:
    from karat.project import Project, Report


@dataclass(frozen=True)
class Streamed:
    """How a stream ended: how many batches it ran, and the last of them that failed."""

    batches: int
    failed: int


def stream(
    project: "Project", select: Sequence[str], interval: float, run: Callable[[], "Report"], stop: threading.Event | None = None
) -> Streamed:
    """Run when anything selected has moved, then wait for the interval; ends after the batch during which stop was asked for."""
    batches = failed = 0
    seen: object = None
    _ = project.spark  # a session takes the signals for itself when it starts: it must be there before we take them back
    with _stopped_by_signals(stop or threading.Event()) as asked:
        while not asked.is_set():
            now = _traces(project, select)
            if now != seen or now is None:
                report = run()
                batches += 1
                failed += not report.ok
                seen = now if report.ok else None
            asked.wait(interval)
    return Streamed(batches, failed)


def _traces(project: "Project", select: Sequence[str]) -> object:
    """What the selected stages would read, as its outside shows it; None when that cannot be told without reading."""
    from karat.sources.files import listed  # noqa: PLC0415  (only a stream looks from outside)
    from karat.state.local_tables import local_history  # noqa: PLC0415

    traces: list[object] = []
    for stage in project.plan(select).stages:
        if isinstance(stage, Land):
            traces += [listed(feed.path, project.spark) for feed in stage.entity.feeds if feed.table is None]
        if isinstance(stage, Believe):
            traces.append(stage.why)  # another rule may have come into force, with nothing new to read
        for name in stage.reads:
            path = Path(project.config.lake, *name.split("."))
            if path.is_dir():
                history = local_history(str(path), 1)
                traces.append(history[0]["version"] if history else None)
    return traces


@contextmanager
def _stopped_by_signals(asked: threading.Event) -> Iterator[threading.Event]:
    """The first signal asks to stop after the running batch; outside the main thread nobody can signal us."""
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(_number: int, _frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
