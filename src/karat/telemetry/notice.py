"""The notice that a run ended, the same for people and for programs.

A notice leaves the machine, so it names tables, kinds of errors and where to look, and never repeats the engine's own
text, which quotes values of the data. The whole text of an error is in the run's log.
"""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from karat.telemetry.events import RunFinished, StageFinished

_LONGEST_ERROR: Final = 4_000
_NO_SUMMARY: Final = "it failed; the message of the engine is in the log"


@dataclass(frozen=True)
class FailedStage:
    """A table that failed, and what may leave the machine of its error."""

    stage: str
    error: str

    @classmethod
    def of(cls, event: StageFinished) -> "FailedStage":
        """The failed table of an event; an error without a summary is not repeated at all."""
        return cls(event.stage, _sendable(event.summary or _NO_SUMMARY))


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
    interrupted: str | None = None

    @classmethod
    def of(cls, project: str, run: RunFinished, failed: tuple[FailedStage, ...]) -> "Notice":
        """The run's end with the failures met on the way."""
        return cls(project, run.run_id, run.ok, run.at, run.seconds, run.counts, failed, run.interrupted)

    @property
    def headline(self) -> str:
        """One sentence."""
        ended = f"was interrupted by {self.interrupted}" if self.interrupted else "succeeded" if self.ok else "failed"
        return f"{self.project}: run {self.run_id} {ended}"

    def as_text(self) -> str:
        """For a mail."""
        counted = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count) or "no tables"
        failed = "".join(f"\n{stage.stage}\n    {stage.error.strip().replace(chr(10), chr(10) + '    ')}\n" for stage in self.failed)
        where = f"\nThe whole text: karat progress {self.run_id}, or .karat/logs/{self.run_id}.jsonl in the project.\n"
        return f"{self.headline} after {self.seconds:.1f} s.\nTables: {counted}.\n" + (f"\nFailed:\n{failed}{where}" if failed else "")

    def as_json(self) -> bytes:
        """For a program; `text` is what chat services show."""
        fields = {**asdict(self), "finished_at": self.finished_at.isoformat(), "text": self.as_text()}
        return json.dumps(fields).encode("ascii")


def _sendable(error: str) -> str:
    """Cut before it fills a mailbox, and without halves of surrogate pairs, which no mail can hold."""
    return error[:_LONGEST_ERROR].encode("utf-8", "replace").decode("utf-8")
