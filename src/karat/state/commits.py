"""What Karat's commits record about themselves, and how it is read from a table's log: no Spark, newest commit first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Commit:
    """What a write of data records about itself, in the same commit as the data."""

    stage: str
    sequence: int
    run_id: str
    config_hash: str
    position: Mapping[str, Any] = field(default_factory=dict)
    """How far the source has been consumed, and what the audit needs should this process die right after; JSON."""
    writer: str | None = None
    """The stage that writes it, where that is not the stage that it counts for: two of one run may write the same number."""

    def as_text(self) -> str:
        """Compact JSON, kept as the commit's user metadata."""
        body = {
            "karat": 1,
            "stage": self.stage,
            "sequence": self.sequence,
            "run_id": self.run_id,
            "config_hash": self.config_hash,
            "position": dict(self.position),
            **({} if self.writer is None else {"writer": self.writer}),
        }
        return json.dumps(body, separators=(",", ":"))


@dataclass(frozen=True)
class Checkpoint:
    """The last thing a table's own log says about one stage."""

    sequence: int = 0
    run_id: str | None = None
    position: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    trusted: bool = False
    """Whether the log says where the stage stands; when it is silent, only the control table knows."""
    set_back: bool = False
    """Whether the table was restored since: then the control table knows too much."""
    moved: str | None = None
    """The table's own last move, see `last_move`; None when there is none in the log."""
    untouched: bool = False
    """Whether that move is this commit: nobody else has changed rows since."""
    recent: tuple["Checkpoint", ...] = ()
    """The stage's recent commits, newest first; the control table is mended from those they missed."""


@dataclass(frozen=True)
class Written:
    """What a commit did, by its own metrics; all zero when there was nothing to do."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


QUIET = frozenset({"OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UNSET TBLPROPERTIES"})
"""Operations after which a table holds the same rows in the same columns as before."""

LogEntry = dict[str, Any]
"""A commit as the log tells it: version, operation, operationParameters, operationMetrics, userMetadata."""


def checkpoint_in(history: Sequence[LogEntry], stage: str) -> Checkpoint | None:
    """The stage's last position; a table that was restored stands where the restored version stood."""
    ceiling: int | None = None
    commits: list[Checkpoint] = []
    valid: list[Checkpoint] = []
    for row in history:
        record = ours(row)
        if row.get("operation") == "RESTORE" and (ceiling is None or row["version"] <= ceiling):
            ceiling = _restored_version(row)
        elif record is not None and record["stage"] == stage:
            commits.append(Checkpoint(int(record["sequence"]), record["run_id"], record["position"], metrics(row)))
            if ceiling is None or row["version"] <= ceiling:
                valid.append(commits[-1])
    if not valid and ceiling is None:
        return None
    last = valid[0] if valid else Checkpoint()
    return replace(
        last,
        sequence=max((commit.sequence for commit in commits), default=0),
        trusted=True,
        set_back=ceiling is not None,
        moved=last_move(history),
        untouched=_is_last_move(history, stage),
        recent=tuple(commits),
    )


def last_move(history: Sequence[LogEntry]) -> str | None:
    """The newest commit after which the rows may differ, as version@time: a table made anew at the same version has another time."""
    newest = _newest_move(history)
    return None if newest is None else f"{newest['version']}@{newest.get('timestamp')}"


def settled(history: Sequence[LogEntry], commit: Commit) -> Written | None:
    """What exactly this commit wrote, if it is in the log."""
    for row in history:
        record = ours(row)
        wanted = (commit.stage, commit.sequence, commit.run_id, commit.writer)
        if record is not None and (record["stage"], record["sequence"], record["run_id"], record.get("writer")) == wanted:
            return written_by(metrics(row))
    return None


def written_by(counts: Mapping[str, int]) -> Written:
    """A commit's own counts, whether it was a MERGE, an append or a replacement, which updates nothing."""
    # a replacement counts among its output what stays in the files it takes rows out of
    inserted = counts.get("numTargetRowsInserted", counts.get("numOutputRows", 0) - counts.get("numCopiedRows", 0))
    return Written(inserted, counts.get("numTargetRowsUpdated", 0), counts.get("numTargetRowsDeleted", counts.get("numDeletedRows", 0)))


def ours(row: LogEntry) -> dict[str, Any] | None:
    """The metadata of a commit of ours; None for anybody else's."""
    try:
        record = json.loads(row.get("userMetadata") or "")
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("karat") == 1 else None


def metrics(row: LogEntry) -> Mapping[str, int]:
    """The commit's own counts."""
    return {name: int(value) for name, value in (row.get("operationMetrics") or {}).items() if str(value).isdigit()}


def _newest_move(history: Sequence[LogEntry]) -> LogEntry | None:
    return next((row for row in history if row.get("operation") not in QUIET), None)


def _is_last_move(history: Sequence[LogEntry], stage: str) -> bool:
    newest = _newest_move(history)
    record = None if newest is None else ours(newest)
    return record is not None and record["stage"] == stage


def _restored_version(row: LogEntry) -> int:
    """The version a table was set back to; an unknown one counts as the very beginning, which only makes us read more."""
    version = (row.get("operationParameters") or {}).get("version")
    return int(str(version)) if str(version).isdigit() else -1
