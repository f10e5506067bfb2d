"""Which version of its source a target was made from: while neither has changed and the declaration is the same, nothing is read.

Reading the lookback again must change nothing, and mostly it would not. But where `dedup_order_columns` does not begin
with the watermark, a row that lost in its batch would win once the one it lost to lies below the lookback. So a run
records which version of the source it has consumed, and the same version is not read twice:

    the run changed the target     in the data's own commit, so that a crash before the audit forgets nothing
    it changed nothing             in the commit of the control table, with the version that the target had then

OPTIMIZE, VACUUM and the like change no rows. A table made anew, restored or written by somebody else has changed.
"""

from dataclasses import dataclass

from karat.config.resolved import CuratedTable
from karat.lake.delta import DeltaTables
from karat.state.commits import Checkpoint

CONSUMED = "consumed"
"""Where a commit's position says which content of the source it has consumed."""


@dataclass(frozen=True)
class SourceVersion:
    """The source as it was when the stage began."""

    number: int
    """The version to read."""
    content: str | None
    """What tells its rows under this declaration from those of another time; None where the log does not say."""


def source_version(table: CuratedTable, tables: DeltaTables) -> SourceVersion | None:
    """The source's version now, from one read of its log; None when there is no such table."""
    if not tables.exists(table.source):
        return None
    number, moved = tables.version_and_move(table.source)
    return SourceVersion(number, None if moved is None else f"{moved}#{table.fingerprint}")


def control_note(version: SourceVersion | None, target: Checkpoint) -> str | None:
    """What the control table notes of a run that changed nothing: it holds for the target as it is, and for no other."""
    if version is None or version.content is None or target.moved is None:
        return None
    return f"{version.content}>{target.moved}"


def is_up_to_date(version: SourceVersion | None, target: Checkpoint, on_record: str | None) -> bool:
    """Whether the target was made from exactly this version: by its own last commit, or by the control table."""
    if version is None or version.content is None:
        return False
    by_commit = target.untouched and target.position.get(CONSUMED) == version.content
    return by_commit or (on_record is not None and on_record == control_note(version, target))
