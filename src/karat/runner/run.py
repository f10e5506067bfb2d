"""Stages to commits: independent tables side by side, dependents after their sources, one failure stopping nobody else."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar, assert_never

from karat.belief.load import believe
from karat.config.resolved import CurationBooks  # noqa: TC001  (dict keys at run time read better typed)
from karat.curation.books import Entry, keep_books
from karat.curation.load import curate
from karat.errors import KaratError, StateConflict
from karat.execute.land import land
from karat.lake.context import RunContext
from karat.lake.engine_errors import explained
from karat.lake.outcome import Outcome
from karat.plan.build import Plan
from karat.plan.stages import Believe, Curate, Land, Stage
from karat.telemetry.events import Heartbeat, RunFinished, RunStarted, StageFinished, StageStarted, Status
from karat.telemetry.sinks import Sink

T = TypeVar("T")

ATTEMPTS = 5
"""How often a batch that met another writer is computed again."""
FIRST_PAUSE = 0.5


@dataclass(frozen=True)
class Result:
    """How a stage ended."""

    stage: Stage
    outcome: Outcome
    seconds: float = 0.0
    error: KaratError | None = None
    failure: BaseException | None = field(default=None, repr=False)
    """What was really raised, for --debug."""


@dataclass(frozen=True)
class Ended:
    """How a run ended; not ok when a table failed or was skipped, or the books could not be kept."""

    results: tuple[Result, ...]
    ok: bool


def execute(plan: Plan, world: RunContext, sink: Sink) -> Ended:
    """Run every stage of the plan, tell the sink, keep the books. Raises nothing a stage can raise."""
    begun = time.monotonic()
    run_id = world.stamp.run_id
    names = tuple(stage.name for stage in plan.stages)
    sink.emit(RunStarted(run_id, _now(), world.config.settings.project, names, world.config.hash))
    runner = _Runner(plan, world, sink)
    with runner.heartbeat():
        results = runner.walk()
        broken = _books(world, results, sink)
    failed = (*(result.stage.name for result in results if result.outcome.status == "failed"), *broken)
    counts: Counter[str] = Counter(result.outcome.status for result in results)
    ok = not failed and not counts["skipped"]
    sink.emit(RunFinished(run_id, _now(), ok, time.monotonic() - begun, dict(counts), failed))
    return Ended(results, ok)


class _Runner:
    """The state of one walk over a plan: what has ended, what is at work."""

    def __init__(self, plan: Plan, world: RunContext, sink: Sink) -> None:
        self.plan, self.world, self.sink = plan, world, sink
        self.results: dict[str, Result] = {}
        self.running: dict[str, float] = {}

    def walk(self) -> tuple[Result, ...]:
        settings = self.world.config.settings.runtime
        waiting = {stage.name: stage for stage in self.plan.stages}
        at_work: dict[Future[Result], str] = {}
        with ThreadPoolExecutor(settings.max_parallel_tables, thread_name_prefix="karat") as pool, self._cancelled_when_interrupted():
            while waiting or at_work:
                for name in [name for name in waiting if self.plan.waits_for[name] <= self.results.keys()]:
                    stage = waiting.pop(name)
                    if reason := self._reason_to_skip(stage):
                        self._ended(Result(stage, Outcome("skipped"), 0.0, KaratError(reason)))
                    else:
                        at_work[pool.submit(self._act, stage)] = name
                finished, _ = wait(at_work, return_when=FIRST_COMPLETED)
                for future in finished:
                    del at_work[future]
                    self._ended(future.result())
        return tuple(self.results[stage.name] for stage in self.plan.stages)

    def _reason_to_skip(self, stage: Stage) -> str | None:
        broken = [name for name in sorted(self.plan.waits_for[stage.name]) if self.results[name].outcome.status in {"failed", "skipped"}]
        if broken:
            return f"skipped because {', '.join(broken)} did not succeed"
        if self.world.config.settings.runtime.fail_fast and any(result.error for result in self.results.values()):
            return "skipped because another table failed and fail_fast is set"
        return None

    def _act(self, stage: Stage) -> Result:
        """One stage on its thread, under a job group of its name."""
        begun = time.monotonic()
        self.running[stage.name] = begun
        self.sink.emit(StageStarted(self.world.stamp.run_id, _now(), stage.name))
        try:
            context = self.world.spark.sparkContext
            context.setJobGroup(stage.name, f"karat {stage.kind} {stage.name} ({self.world.stamp.run_id})")
            outcome = _patiently(lambda: _dispatch(stage, self.world))
            return Result(stage, outcome, time.monotonic() - begun, outcome.problem)
        except Exception as failure:  # noqa: BLE001  (whatever a table does, the others go on)
            mark = self.world.recorded_for(stage.name).watermark
            stopped = Outcome("failed", watermark_before=mark, watermark_after=mark)
            return Result(stage, stopped, time.monotonic() - begun, explained(failure), failure)
        finally:
            self.running.pop(stage.name, None)

    def _ended(self, result: Result) -> None:
        self.results[result.stage.name] = result
        self.sink.emit(_finished(result, self.world.stamp.run_id))

    @contextmanager
    def _cancelled_when_interrupted(self) -> Iterator[None]:
        """Ctrl-C ends the running jobs instead of waiting for them; what they had not committed is done by the next run."""
        try:
            yield
        except BaseException:
            for name in dict(self.running):
                self.world.spark.sparkContext.cancelJobGroup(name)
            raise

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """A sign of life every so often, for as long as the run lasts."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self.world.config.settings.runtime.heartbeat_seconds):
                now = time.monotonic()
                running = {name: round(now - since, 1) for name, since in dict(self.running).items()}
                self.sink.emit(Heartbeat(self.world.stamp.run_id, _now(), running))

        thread = threading.Thread(target=beat, name="karat-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def _patiently(act: Callable[[], T]) -> T:
    """The act, computed again from the beginning when another writer came first."""
    for attempt in range(1, ATTEMPTS):
        try:
            return act()
        except StateConflict:
            time.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
    return act()


def _dispatch(stage: Stage, world: RunContext) -> Outcome:
    match stage:
        case Curate():
            return curate(stage, world)
        case Land():
            return land(stage, world)
        case Believe():
            return believe(stage, world)
        case _:
            assert_never(stage)


def _books(world: RunContext, results: tuple[Result, ...], sink: Sink) -> tuple[str, ...]:
    """Control and audit rows for all curated tables. Returns the books that could not be kept: a failure, though no data is lost."""
    accounts: dict[CurationBooks, list[Entry]] = {}
    for result in results:
        if isinstance(result.stage, Curate):
            error = result.error.message if result.error else None
            accounts.setdefault(result.stage.table.books, []).append(Entry(result.stage.name, result.outcome, result.seconds, error))
    broken = []
    for books, entries in accounts.items():
        try:
            _patiently(partial(keep_books, world, books, entries))
        except Exception as failure:  # noqa: BLE001  (the data is committed; say what is missing and go on)
            broken.append(str(books.control))
            sink.emit(StageFinished(world.stamp.run_id, _now(), str(books.control), "failed", 0.0, error=str(explained(failure))))
    return tuple(broken)


def _finished(result: Result, run_id: str) -> StageFinished:
    mark = result.outcome.watermark_after
    status: Status = result.outcome.status
    error = str(result.error) if result.error else None
    watermark = mark.isoformat() if mark else result.outcome.position
    rows, notes = result.outcome.rows, result.outcome.notes
    return StageFinished(run_id, _now(), result.stage.name, status, result.seconds, rows, error, watermark, notes)


def _now() -> datetime:
    return datetime.now(UTC)
