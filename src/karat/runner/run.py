"""Stages to commits: independent tables in parallel, dependents after their sources, one failure stopping nobody else."""

import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar, assert_never

from karat.belief.load import believe
from karat.bronze.load import load as land
from karat.config.resolved import AuditTables  # noqa: TC001  (dict keys at run time read better typed)
from karat.curation.audit import AuditEntry, write_audit
from karat.curation.load import curate
from karat.errors import KaratError, StateConflict
from karat.gold.load import load as load_star
from karat.gold.watermarks import watermark_table, write_watermarks
from karat.lake.context import RunContext
from karat.lake.engine_errors import explained
from karat.lake.outcome import Outcome
from karat.plan.build import Plan
from karat.plan.stages import Believe, Curate, Land, Load, Stage
from karat.runner.interruption import LOOK_SECONDS, Interruption, RunInterrupted, interruptible
from karat.telemetry.events import Heartbeat, RunFinished, RunStarted, StageFinished, StageStarted, Status
from karat.telemetry.sinks import Sink

T = TypeVar("T")

ATTEMPTS: Final = 6
"""How often a stage that met another writer is computed from the beginning."""
FIRST_PAUSE: Final = 1.0
"""Seconds before the second attempt; each further pause is twice as long, and all are shortened at random."""


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
    """How a run ended; not ok when a table failed, was skipped or interrupted, or the audit tables could not be written."""

    results: tuple[Result, ...]
    ok: bool
    interrupted: str | None = None
    """The signal that ended the run."""


def execute(plan: Plan, context: RunContext, sink: Sink) -> Ended:
    """Run every stage of the plan, tell the sink, write the audit tables. Raises nothing a stage can raise."""
    begun = time.monotonic()
    run_id, config = context.stamp.run_id, context.config
    names = tuple(stage.name for stage in plan.stages)
    sink.emit(RunStarted(run_id, _now(), config.settings.project, names, config.hash, os.getpid(), socket.gethostname()))
    broken: tuple[str, ...] = ()
    with interruptible() as interruption:
        runner = _Runner(plan, context, sink, interruption)
        with runner.heartbeat():
            results = runner.walk()
            if not interruption.now:  # the next run writes what is missing in the audit tables
                broken = _audit(context, results, sink, interruption)
        interrupted = interruption.name if interruption.now else None
        failed = (*(result.stage.name for result in results if result.outcome.status == "failed"), *broken)
        counts: Counter[str] = Counter(result.outcome.status for result in results)
        ok = not failed and not counts["skipped"] and interrupted is None
        sink.emit(RunFinished(run_id, _now(), ok, time.monotonic() - begun, dict(counts), failed, interrupted))
    return Ended(results, ok, interrupted)


class _Runner:
    """The state of one walk over a plan: what has ended, what is running."""

    def __init__(self, plan: Plan, context: RunContext, sink: Sink, interruption: Interruption) -> None:
        self.plan, self.context, self.sink, self.interruption = plan, context, sink, interruption
        self.results: dict[str, Result] = {}
        self.running: dict[str, float] = {}

    def walk(self) -> tuple[Result, ...]:
        """Every stage's result, in the order of the plan."""
        parallel = self.context.config.settings.runtime.max_parallel_tables
        waiting = {stage.name: stage for stage in self.plan.stages}
        at_work: dict[Future[Result], Stage] = {}
        pool = ThreadPoolExecutor(parallel, thread_name_prefix="karat")
        try:
            while at_work or (waiting and not self.interruption.now):
                # only what a thread is free for is handed over: nothing waits in a queue that a signal could not reach
                for stage in self._ready(waiting)[: parallel - len(at_work)]:
                    at_work[pool.submit(self._act, waiting.pop(stage.name))] = stage
                finished, _ = wait(at_work, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._ended(future.result())
                    del at_work[future]
                if self.interruption.now:
                    self._cancel()
        except RunInterrupted:  # not even the end of the running stages is waited for
            with suppress(Exception):  # the signal may have come in the middle of a call to Spark
                self._cancel()
            for stage in at_work.values():
                self._ended(Result(stage, Outcome("interrupted"), 0.0, self._stopped()))
        except BaseException:
            self._cancel()
            raise
        finally:
            pool.shutdown(wait=not at_work, cancel_futures=True)
        for stage in waiting.values():
            self._ended(Result(stage, Outcome("skipped"), 0.0, KaratError(f"not started: interrupted by {self.interruption.name}")))
        return tuple(self.results[stage.name] for stage in self.plan.stages if stage.name in self.results)

    def _ready(self, waiting: dict[str, Stage]) -> list[Stage]:
        """The stages that may start now; those that never will are skipped, which may release others to be skipped."""
        if self.interruption.now:
            return []
        ready = []
        for name, stage in list(waiting.items()):
            if not self.plan.waits_for[name] <= self.results.keys():
                continue
            if reason := self._reason_to_skip(stage):
                del waiting[name]
                self._ended(Result(stage, Outcome("skipped"), 0.0, KaratError(reason)))
            else:
                ready.append(stage)
        return ready

    def _reason_to_skip(self, stage: Stage) -> str | None:
        unready = {"failed", "skipped", "interrupted"}
        broken = [name for name in sorted(self.plan.waits_for[stage.name]) if self.results[name].outcome.status in unready]
        if broken:
            return f"skipped because {', '.join(broken)} did not succeed"
        if self.context.config.settings.runtime.fail_fast and any(result.error for result in self.results.values()):
            return "skipped because another table failed and fail_fast is set"
        return None

    def _act(self, stage: Stage) -> Result:
        """One stage on its thread, its jobs in a group of its own."""
        begun = time.monotonic()
        self.running[stage.name] = begun
        self.sink.emit(StageStarted(self.context.stamp.run_id, _now(), stage.name))
        try:
            spark = self.context.spark.sparkContext
            spark.setJobGroup(self._job_group(stage.name), f"karat {stage.kind} {stage.name} ({self.context.stamp.run_id})")
            outcome = with_retries(partial(_dispatch, stage, self.context), stage.name, self.interruption)
            return Result(stage, outcome, time.monotonic() - begun, outcome.problem)
        except Exception as failure:  # noqa: BLE001  (whatever a table does, the others go on)
            mark = self.context.control_entry(stage.name).watermark
            stopped = self.interruption.now
            outcome = Outcome("interrupted" if stopped else "failed", watermark_before=mark, watermark_after=mark)
            return Result(stage, outcome, time.monotonic() - begun, self._stopped() if stopped else explained(failure), failure)
        finally:
            self.running.pop(stage.name, None)

    def _ended(self, result: Result) -> None:
        self.results[result.stage.name] = result
        self.sink.emit(_finished(result, self.context.stamp.run_id))

    def _stopped(self) -> KaratError:
        message = f"interrupted by {self.interruption.name}"
        return KaratError(message, remedy="what was committed before stays, and the next run goes on from there")

    def _job_group(self, name: str) -> str:
        """A group of this run alone: a cancelled group takes no job any more."""
        return f"{self.context.stamp.run_id}/{name}"

    def _cancel(self) -> None:
        """End the jobs of the running stages, also those that they would start later."""
        spark = self.context.spark.sparkContext._jsc.sc()  # noqa: SLF001  (pyspark cancels the jobs of the moment only)
        for name in dict(self.running):
            spark.cancelJobGroupAndFutureJobs(self._job_group(name))

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """A sign of life every so often, for as long as the run lasts."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self.context.config.settings.runtime.heartbeat_seconds):
                now = time.monotonic()
                running = {name: round(now - since, 1) for name, since in dict(self.running).items()}
                self.sink.emit(Heartbeat(self.context.stamp.run_id, _now(), running))

        thread = threading.Thread(target=beat, name="karat-heartbeat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


def with_retries(act: Callable[[], T], name: str, interruption: Interruption) -> T:
    """What the act returns. Where another writer came first, it is done again from the beginning, after growing pauses."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return act()
        except StateConflict as conflict:
            if attempt == ATTEMPTS or not _paused(FIRST_PAUSE * 2 ** (attempt - 1), interruption):
                message = f"{name} was tried {attempt} times, and another run came first each time: {conflict.message}"
                remedy = "another run works on the same table: wait for its end or stop it, then run again; what was committed stays"
                raise StateConflict(message, remedy=remedy) from conflict


def _paused(seconds: float, interruption: Interruption) -> bool:
    """Wait up to so long, at random, so that two runs do not meet again; false when a signal ended the wait."""
    until = time.monotonic() + seconds * random.uniform(0.5, 1)  # noqa: S311  (no secret)
    while time.monotonic() < until and not interruption.now:
        time.sleep(LOOK_SECONDS)
    return not interruption.now


def _dispatch(stage: Stage, context: RunContext) -> Outcome:
    match stage:
        case Curate():
            return curate(stage, context)
        case Land():
            return land(stage, context)
        case Believe():
            return believe(stage, context)
        case Load():
            return load_star(stage, context)
        case _:
            assert_never(stage)


def _audit(context: RunContext, results: tuple[Result, ...], sink: Sink, interruption: Interruption) -> tuple[str, ...]:
    """What a run writes after its data: control and audit rows of curated tables, and the versions that the star has read.

    Returns the tables that could not be written; no data is lost by it.
    """
    entries: dict[AuditTables, list[AuditEntry]] = {}
    for result in results:
        if isinstance(result.stage, Curate):
            error = result.error.message if result.error else None
            entry = AuditEntry(result.stage.name, result.outcome, result.seconds, error)
            entries.setdefault(result.stage.table.audit_tables, []).append(entry)
    acts = {str(tables.control): partial(write_audit, context, tables, of_tables) for tables, of_tables in entries.items()}
    versions = {result.stage.name: dict(result.outcome.versions) for result in results if result.outcome.versions}
    if versions:
        acts[str(watermark_table(context))] = partial(write_watermarks, context, versions)
    broken = []
    for name, act in acts.items():
        try:
            with_retries(act, name, interruption)
        except Exception as failure:  # noqa: BLE001  (the data is committed; say what is missing and go on)
            broken.append(name)
            cause = explained(failure)
            sink.emit(StageFinished(context.stamp.run_id, _now(), name, "failed", 0.0, error=str(cause), summary=cause.notice))
    return tuple(broken)


def _finished(result: Result, run_id: str) -> StageFinished:
    outcome, error = result.outcome, result.error
    status: Status = outcome.status
    mark = outcome.watermark_after
    return StageFinished(
        run_id,
        _now(),
        result.stage.name,
        status,
        result.seconds,
        outcome.rows,
        error=str(error) if error else None,
        watermark=mark.isoformat() if mark else outcome.position,
        notes=outcome.notes,
        summary=error.notice if error else None,
    )


def _now() -> datetime:
    return datetime.now(UTC)
