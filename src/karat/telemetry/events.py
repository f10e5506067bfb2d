"""What happened, as typed values: emitted at the borders of runs and stages, read by every sink.

An event carries only plain values, so that a line of the log can be written and read back without Karat.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Literal

Status = Literal["succeeded", "unchanged", "skipped", "failed", "interrupted"]
"""How a stage ended; `interrupted` when a signal ended the run while the stage was at work."""


@dataclass(frozen=True)
class Rows:
    """How many rows a stage met and what became of them, from the commit's own metrics."""

    read: int = 0
    landed: int = 0
    copies: int = 0
    quarantined: int = 0
    ignored: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    closed: int = 0
    """Versions that ended."""
    skeletons: int = 0
    """Members that facts made, or made reach back, before their source told of them."""
    bytes: int = 0
    """What the commits of the stage added to its table."""

    def keys(self) -> Iterator[str]:
        """The names of the counts; with `[]`, rows can be used as the mapping they print as."""
        return (field.name for field in fields(self))

    def __getitem__(self, name: str) -> int:
        return int(getattr(self, name))


@dataclass(frozen=True)
class RunStarted:
    """A run was born: its stages in the order they were planned."""

    run_id: str
    at: datetime
    project: str
    stages: tuple[str, ...]
    config_hash: str
    pid: int | None = None
    """The process that runs it, so that its death can be seen from the same machine."""
    host: str | None = None


@dataclass(frozen=True)
class StageStarted:
    """A stage began to act."""

    run_id: str
    at: datetime
    stage: str


@dataclass(frozen=True)
class Heartbeat:
    """Stages still at work, and for how long: silence would look like a hang."""

    run_id: str
    at: datetime
    running: dict[str, float]


@dataclass(frozen=True)
class StageFinished:
    """A stage ended: succeeded, unchanged, skipped (and why), failed (with the error's text) or interrupted."""

    run_id: str
    at: datetime
    stage: str
    status: Status
    seconds: float
    rows: Rows = field(default_factory=Rows)
    error: str | None = None
    watermark: str | None = None
    """The position the stage has now consumed its source up to, as text; None when it has none."""
    notes: tuple[str, ...] = ()
    """What an operator should hear although nothing failed."""
    summary: str | None = None
    """The error without the engine's own text, which may quote values of the data: what notices carry."""


@dataclass(frozen=True)
class RunFinished:
    """A run ended; `ok` means no stage failed, none was skipped because another failed, and no signal ended the run."""

    run_id: str
    at: datetime
    ok: bool
    seconds: float
    counts: dict[str, int]
    """How many stages ended with each status."""
    failed: tuple[str, ...] = ()
    interrupted: str | None = None
    """The signal that ended the run before its time, such as SIGTERM."""


Event = RunStarted | StageStarted | Heartbeat | StageFinished | RunFinished


def as_record(event: Event) -> dict[str, object]:
    """The event as JSON-ready values: its kind, then its fields, times in ISO 8601."""
    record: dict[str, object] = {"event": type(event).__name__}
    for name, value in asdict(event).items():
        record[name] = value.isoformat() if isinstance(value, datetime) else value
    return record
