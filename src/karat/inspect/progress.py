"""Runs, live and past, from their structured logs alone: no store, no Spark.

A log may be torn at its end, because its run is writing or was killed, and may hold lines nobody can read; those are counted, not fatal.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from karat.errors import ConfigError
from karat.telemetry.events import Rows, Status
from karat.telemetry.log import log_path, newest_first

Record = dict[str, Any]
RunState = Literal["running", "interrupted", "succeeded", "failed"]
StageState = Literal["waiting", "running", "interrupted"] | Status

SILENCE: Final = 90.0
"""Seconds without a line after which a run without an end counts as interrupted: three heartbeats of the default length.

On the machine of the run its process is asked as well: where there is none any more, nobody waits.
"""
_POLL: Final = 0.2
_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class StageProgress:
    """A stage of a run: where it stands, and once it ended, what came of it."""

    stage: str
    state: StageState = "waiting"
    started_at: datetime | None = None
    finished_at: datetime | None = None
    seconds: float | None = None
    rows: Rows = field(default_factory=Rows)
    error: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunSummary:
    """A run as its log tells it; the stages in the order they were planned."""

    run_id: str
    project: str
    state: RunState
    started_at: datetime | None
    finished_at: datetime | None
    seconds: float | None
    counts: dict[str, int]
    stages: tuple[StageProgress, ...]
    corrupt: int
    """Lines that could not be read."""
    note: str | None = None
    """How a run without an end ended: the signal that interrupted it, or when it last gave a sign of life."""
    process: tuple[str, int] | None = None
    """The machine and the process that run it."""


@dataclass(frozen=True)
class Failure:
    """A stage that failed in some run."""

    run_id: str
    stage: str
    at: datetime | None
    error: str


def list_runs(folder: Path, *, silence: float = SILENCE) -> list[RunSummary]:
    """Every run that has a log, the most recently written first."""
    return [_summary(path, silence) for path in newest_first(folder) if path.exists()]


def read_run(folder: Path, run_id: str | None = None, *, silence: float = SILENCE) -> RunSummary:
    """One run, or the latest."""
    return _summary(_log_of(folder, run_id), silence)


def failures(folder: Path) -> list[Failure]:
    """Every failed stage of every run that has a log, the latest run first."""
    return [
        Failure(run.run_id, stage.stage, stage.finished_at, stage.error or "no error was given")
        for run in list_runs(folder)
        for stage in run.stages
        if stage.state == "failed"
    ]


def follow(folder: Path, run_id: str | None = None, *, poll: float = _POLL, silence: float = SILENCE) -> Iterator[Record]:
    """The records of a run (the latest, waiting for a first one) as they are written, until it finished or fell silent."""
    while run_id is None and not newest_first(folder):
        time.sleep(poll)
    path = _log_of(folder, run_id)
    read = 0
    while True:
        with path.open("rb") as log:
            log.seek(read)
            fresh = log.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        read += len(whole)
        for record in _records(whole):
            if record is not None:
                yield record
                if record["event"] == "RunFinished":
                    return
        if not fresh and _summary(path, silence).state != "running":
            return
        time.sleep(poll)


def _log_of(folder: Path, run_id: str | None) -> Path:
    if run_id is not None:
        path = log_path(folder, run_id)
        if path.exists():
            return path
        message = f"no log of run {run_id} in {folder}"
        raise ConfigError(message, remedy="`karat progress` lists the runs that have one")
    if logs := newest_first(folder):
        return logs[0]
    message = f"no run has left a log in {folder}"
    raise ConfigError(message, remedy="start one with `karat run`")


def _summary(path: Path, silence: float) -> RunSummary:
    """The log folded record by record; a record whose fields make no sense counts as unreadable."""
    run = RunSummary(path.stem, "", "running", None, None, None, {}, (), 0)
    beats: list[datetime] = []
    for record in _records(path.read_bytes()):
        try:
            run = _fold(run, record) if record is not None else _one_more_corrupt(run)
            if record is not None and record["event"] == "Heartbeat":
                beats.append(_time(record["at"]))
        except _UNREADABLE:
            run = _one_more_corrupt(run)
    last = path.stat().st_mtime
    silent = time.time() - last > _patience(beats, silence) or _has_died(run)
    return _lost(run, datetime.fromtimestamp(last, UTC)) if run.state == "running" and silent else run


def _records(lines: bytes) -> Iterator[Record | None]:
    """One record per line, None for a line that is none; the last line may be torn and is then left out."""
    *whole, last = lines.split(b"\n")
    for line in whole:
        yield _record(line)
    if last and (record := _record(last)) is not None:
        yield record


def _record(line: bytes) -> Record | None:
    try:
        record = json.loads(line)
    except _UNREADABLE:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("event"), str) else None


def _fold(run: RunSummary, record: Record) -> RunSummary:
    """The run after one more record; kinds a newer Karat may have added are passed over."""
    match record["event"]:
        case "RunStarted":
            stages = tuple(StageProgress(stage) for stage in record["stages"])
            process = (str(record["host"]), int(record["pid"])) if record.get("pid") and record.get("host") else None
            begun = replace(run, run_id=record["run_id"], project=record["project"], stages=stages, process=process)
            return replace(begun, started_at=_time(record["at"]))
        case "StageStarted":
            return _with(run, StageProgress(record["stage"], "running", started_at=_time(record["at"])))
        case "StageFinished":
            return _with(run, _finished_stage(run, record))
        case "RunFinished":
            signal = record.get("interrupted")
            state: RunState = "interrupted" if signal else "succeeded" if record["ok"] else "failed"
            ended = replace(run, state=state, note=f"by {signal}" if signal else None, finished_at=_time(record["at"]))
            return replace(ended, seconds=float(record["seconds"]), counts=dict(record["counts"]))
        case _:
            return run


def _finished_stage(run: RunSummary, record: Record) -> StageProgress:
    started = next((stage.started_at for stage in run.stages if stage.stage == record["stage"]), None)
    known = {name: int(count) for name, count in record["rows"].items() if name in Rows.__dataclass_fields__}
    return StageProgress(
        stage=record["stage"],
        state=record["status"],
        started_at=started,
        finished_at=_time(record["at"]),
        seconds=float(record["seconds"]),
        rows=Rows(**known),
        error=record.get("error"),
        notes=tuple(record.get("notes", ())),
    )


def _with(run: RunSummary, stage: StageProgress) -> RunSummary:
    """The run with the stage in its place, or at the end when it was not planned."""
    stages = {known.stage: known for known in run.stages} | {stage.stage: stage}
    return replace(run, stages=tuple(stages.values()))


def _one_more_corrupt(run: RunSummary) -> RunSummary:
    return replace(run, corrupt=run.corrupt + 1)


def _lost(run: RunSummary, last_sign: datetime) -> RunSummary:
    """A run that ended without saying so."""
    stages = tuple(replace(stage, state="interrupted") if stage.state == "running" else stage for stage in run.stages)
    return replace(run, state="interrupted", stages=stages, note=f"no sign of life since {last_sign:%Y-%m-%d %H:%M:%S} UTC")


def _has_died(run: RunSummary) -> bool:
    """Whether the run's process was on this machine and is there no more."""
    if run.process is None or run.process[0] != socket.gethostname():
        return False
    try:
        os.kill(run.process[1], 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _patience(beats: list[datetime], silence: float) -> float:
    """How long this run may be silent: its heartbeats may be set further apart than usual."""
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(beats)]
    return max([silence, *(3 * gap for gap in gaps)])


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
