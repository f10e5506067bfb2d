"""What a stage did and how far it has got."""

from dataclasses import dataclass, field
from datetime import datetime

from karat.errors import KaratError
from karat.state.commits import Checkpoint
from karat.telemetry.events import Rows, Status


@dataclass(frozen=True)
class Outcome:
    """How a stage ended."""

    status: Status
    rows: Rows = field(default_factory=Rows)
    watermark_before: datetime | None = None
    watermark_after: datetime | None = None
    previous: Checkpoint = field(default_factory=Checkpoint)
    """The target's last commit before this one: the control table is mended from it when a crash left them behind."""
    consumed: str | None = None
    """What the control table is to note, where no commit of the target says what was consumed."""
    position: str | None = None
    """How far the stage has consumed what it reads, for the mirror, where that is no time."""
    versions: tuple[tuple[str, int], ...] = ()
    """Each source with the version that the target has consumed, where sources are read by version."""
    notes: tuple[str, ...] = ()
    """What an operator should hear although nothing failed."""
    problem: KaratError | None = None
    """What failed in a part of the stage while the rest went on."""
