"""What is told about a run that ended, the same to a person and to a program."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from karat.telemetry.events import RunFinished

_LONGEST_ERROR: Final = 4_000


@dataclass(frozen=True)
class FailedStage:
    """A table that failed, with its error's text."""

    stage: str
    error: str


@dataclass(frozen=True)
class Notice:
    """A run that ended."""

    project: str
    run_id: str
    ok: bool
    finished_at: datetime
    seconds: float
    counts: dict[str, int]
    failed: tuple[FailedStage, ...]

    @classmethod
    def of(cls, project: str, run: RunFinished, failed: tuple[FailedStage, ...]) -> "Notice":
        """The run's end with the failures met on the way; an error is cut before it fills a mailbox."""
        cut = tuple(FailedStage(stage.stage, _sendable(stage.error)) for stage in failed)
        return cls(project, run.run_id, run.ok, run.at, run.seconds, run.counts, cut)

    @property
    def headline(self) -> str:
        """One sentence."""
        return f"{self.project}: run {self.run_id} {'succeeded' if self.ok else 'failed'}"

    def as_text(self) -> str:
        """For a mail."""
        counted = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count) or "no tables"
        failed = "".join(f"\n{stage.stage}\n    {stage.error.strip().replace(chr(10), chr(10) + '    ')}\n" for stage in self.failed)
        return f"{self.headline} after {self.seconds:.1f} s.\nTables: {counted}.\n" + (f"\nFailed:\n{failed}" if failed else "")

    def as_json(self) -> bytes:
        """For a program; `text` is what chat services show."""
        fields = {**asdict(self), "finished_at": self.finished_at.isoformat(), "text": self.as_text()}
        return json.dumps(fields).encode("ascii")


def _sendable(error: str) -> str:
    """Not too long, and without halves of surrogate pairs, which no mail can hold."""
    return error[:_LONGEST_ERROR].encode("utf-8", "replace").decode("utf-8")
