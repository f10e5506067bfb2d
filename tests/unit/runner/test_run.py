"""The order of a run without Spark: what starts when, what is skipped, what a signal ends."""

import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.config.load import load
from karat.errors import SourceUnavailable
from karat.lake.context import ControlEntry, RunStamp
from karat.lake.outcome import Outcome
from karat.plan.build import Plan, build_plan
from karat.runner import run as runner
from karat.telemetry.events import Event, RunFinished, RunStarted, StageFinished, StageStarted
from tests.support.projects import curated, project_folder

NAMES = ("silver.a", "silver.b", "silver.c")
STAMP = RunStamp("r1", datetime(2026, 1, 2, tzinfo=UTC))


class Jobs:
    """What the runner asks of Spark: groups of jobs, and their end."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.groups: list[str] = []

    def setJobGroup(self, group: str, _description: str) -> None:  # noqa: N802  (Spark's name)
        self.groups.append(group)

    @property
    def _jsc(self) -> "Jobs":
        return self

    def sc(self) -> "Jobs":
        return self

    def cancelJobGroupAndFutureJobs(self, group: str) -> None:  # noqa: N802  (Spark's name)
        assert group in self.groups
        self.cancelled.set()


class Events:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.seen: list[Event] = []

    def emit(self, event: Event) -> None:
        self.seen.append(event)

    def close(self) -> None:
        """Nothing is open."""

    def ended(self) -> dict[str, str]:
        return {event.stage: event.status for event in self.seen if isinstance(event, StageFinished)}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Events, Jobs]]:
    """A run of three tables whose acts are given; the audit tables are left out."""

    def execute(acts: dict[str, Callable[[Jobs], None]], *, parallel: int = 1, **runtime: object) -> tuple[Any, Events, Jobs]:
        karat = {"runtime": {"max_parallel_tables": parallel, **runtime}}
        source = {"silver.c": "silver.b"}
        config = load(project_folder(tmp_path, [curated(name, source.get(name, "bronze.x")) for name in NAMES], karat=karat))
        jobs, events = Jobs(), Events()
        context: Any = SimpleNamespace(
            config=config, stamp=STAMP, control_entry=lambda _: ControlEntry(), spark=SimpleNamespace(sparkContext=jobs)
        )

        def dispatch(stage: Any, _context: object) -> Outcome:  # noqa: ANN401  (a stage of any kind)
            acts.get(stage.name, lambda _: None)(jobs)
            return Outcome("succeeded")

        monkeypatch.setattr(runner, "_dispatch", dispatch)
        monkeypatch.setattr(runner, "write_audit", lambda *_: None)
        plan: Plan = build_plan(config, {}, (), STAMP.started_at)
        return runner.execute(plan, context, events), events, jobs

    return execute


def fails(_jobs: Jobs) -> None:
    message, summary = "the value 4711 cannot be cast", "the engine refused a value (CAST)"
    raise SourceUnavailable(message, summary=summary)


def test_a_failure_stops_what_depends_on_it_and_nothing_else(run: Callable[..., Any]) -> None:
    ended, events, _ = run({"silver.b": fails})
    assert (ended.ok, ended.interrupted) == (False, None)
    assert events.ended() == {"silver.a": "succeeded", "silver.b": "failed", "silver.c": "skipped"}
    (failed,) = [event for event in events.seen if isinstance(event, StageFinished) and event.status == "failed"]
    assert "4711" in str(failed.error)
    assert failed.summary == "[SOURCE_UNAVAILABLE] the engine refused a value (CAST)"


def test_after_a_failure_nothing_starts_when_asked_so(run: Callable[..., Any]) -> None:
    _, events, _ = run({"silver.a": fails}, fail_fast=True)
    assert events.ended() == {"silver.a": "failed", "silver.b": "skipped", "silver.c": "skipped"}


def test_a_run_says_which_process_it_is(run: Callable[..., Any]) -> None:
    _, events, jobs = run({})
    (started,) = [event for event in events.seen if isinstance(event, RunStarted)]
    assert (started.pid, bool(started.host)) == (os.getpid(), True)
    assert jobs.groups == [f"r1/{name}" for name in NAMES], "a group of this run alone"


@pytest.mark.parametrize("parallel", [1, 2])
def test_after_a_signal_nothing_starts_and_what_runs_is_cancelled(run: Callable[..., Any], parallel: int) -> None:
    def works_until_cancelled(jobs: Jobs) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        assert jobs.cancelled.wait(30)
        message = "Job cancelled"
        raise SourceUnavailable(message)

    ended, events, _ = run({"silver.a": works_until_cancelled, "silver.b": lambda jobs: jobs.cancelled.wait(30)}, parallel=parallel)
    assert (ended.ok, ended.interrupted) == (False, "SIGTERM")
    started = {event.stage for event in events.seen if isinstance(event, StageStarted)}
    assert "silver.c" not in started
    assert len(started) <= parallel
    assert events.ended()["silver.a"] == "interrupted"
    assert events.ended()["silver.c"] == "skipped"
    (finished,) = [event for event in events.seen if isinstance(event, RunFinished)]
    assert (finished.ok, finished.interrupted, finished.failed) == (False, "SIGTERM", ())


def test_a_second_signal_does_not_wait_for_what_runs(run: Callable[..., Any]) -> None:
    release = threading.Event()

    def hangs(_jobs: Jobs) -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        release.wait(60)

    begun = time.monotonic()
    ended, events, _ = run({"silver.a": hangs})
    took = time.monotonic() - begun
    release.set()
    assert took < 30
    assert ended.interrupted == "SIGINT"
    assert events.ended() == {"silver.a": "interrupted", "silver.b": "skipped", "silver.c": "skipped"}
