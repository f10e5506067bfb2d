"""What the store remembers, as plain values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from karat.telemetry.events import Rows, Status


@dataclass(frozen=True)
class Watermark:
    """How far a stage has consumed its source, and which run brought it there."""

    stage: str
    position: str
    run_id: str
    updated_at: datetime


@dataclass(frozen=True)
class RunRecord:
    """A run; the last four are None or empty until it finished."""

    run_id: str
    project: str
    started_at: datetime
    config_hash: str
    finished_at: datetime | None
    ok: bool | None
    seconds: float | None
    counts: dict[str, int]


@dataclass(frozen=True)
class StageRecord:
    """A stage of one run; `running` also when its run was killed."""

    run_id: str
    stage: str
    status: Status | Literal["running"]
    started_at: datetime
    finished_at: datetime | None
    seconds: float | None
    rows: Rows
    error: str | None
    notes: tuple[str, ...]
