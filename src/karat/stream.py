"""The same run, again and again, whenever something new is there, until it is stopped; the batch at hand is finished first.

Whether something is new is asked in one way for every storage: files are listed, and tables are asked for the last commit of
their log through Spark. Where that fails, the run itself finds out: its stages notice when there is nothing to do.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from karat.plan.stages import Believe, Curate, Land, Load, Stage
from karat.runner.interruption import LOOK_SECONDS, interruptible
from karat.sources.files import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from karat.config.names import TableName
    from karat.lake.delta import DeltaTables
    from karat.project import Project, Report


@dataclass(frozen=True)
class Streamed:
    """How a stream ended: how many batches it ran, and how many of them failed."""

    batches: int
    failed: int


def stream(
    project: "Project", select: Sequence[str], interval: float, run: Callable[[], "Report"], stop: threading.Event | None = None
) -> Streamed:
    """Run when anything selected has moved, then wait for the interval; ends after the batch during which stop was asked for.

    The first signal asks to stop, a second one ends the running batch as it ends a run.
    """
    batches = failed = 0
    seen: object = None
    tables = project.tables()  # a session takes the signals for itself when it starts: it must be there before they are listened to
    with interruptible(patience=1) as interruption:

        def is_stopped() -> bool:
            return interruption.asked or (stop is not None and stop.is_set())

        while not is_stopped():
            now = _marks(project, select, tables)
            if now is None or now != seen:
                report = run()
                batches += 1
                failed += not report.ok
                seen = now if report.ok else None
            _wait(interval, is_stopped)
    return Streamed(batches, failed)


def _marks(project: "Project", select: Sequence[str], tables: "DeltaTables") -> object:
    """What the selected stages would read, as far as listing files and asking logs shows it; None when that fails."""
    try:
        return [_mark(stage, project, tables) for stage in project.plan(select).stages]
    except Exception:  # noqa: BLE001  (the run meets the same failure, and reports it)
        return None


def _mark(stage: Stage, project: "Project", tables: "DeltaTables") -> object:
    """What one stage would read. A belief's reason belongs to it: another rule may come into force with nothing new to read."""
    files = [listed(feed.path, project.spark) for feed in stage.entity.feeds if feed.table is None] if isinstance(stage, Land) else []
    return files, [_version(name, tables) for name in _tables_read(stage)], stage.why if isinstance(stage, Believe) else None


def _tables_read(stage: Stage) -> "Iterator[TableName]":
    match stage:
        case Land():
            yield from (feed.table for feed in stage.entity.feeds if feed.table is not None)
        case Curate():
            yield stage.table.source
        case Believe():
            yield stage.belief.entity.assertions
        case Load():
            yield from (source.table for source in stage.star.sources)
        case _:
            assert_never(stage)


def _version(name: "TableName", tables: "DeltaTables") -> object:
    """The table's last commit; one made anew at the same version has another time. None where there is no table."""
    return tables.version_and_move(name) if tables.exists(name) else None


def _wait(seconds: float, is_stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not is_stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_SECONDS))
