"""What a target has made of its source already: while neither moves nor the declaration changes, there is nothing to read.

Reading the lookback again must change nothing, and mostly it would not. But where `dedup_order_columns` does not begin
with the watermark, a row that lost in its batch would win once the one it lost to lies below the lookback. So a run
remembers which version of the source it has consumed, and the same version is not read twice:

    the run changed the target     in the data's own commit, so that a crash before the books forgets nothing
    it changed nothing             in the commit of the control table, beside the version the target had then

OPTIMIZE, VACUUM and the like are no moves. A table made anew, restored or written by somebody else has moved.
"""

from karat.config.resolved import CuratedTable
from karat.lake.delta import DeltaTables
from karat.state.commits import Checkpoint

CONSUMED = "consumed"
"""Where a commit's position says what it has consumed."""


def consumption(table: CuratedTable, tables: DeltaTables) -> str | None:
    """The source as it is now, under the table's declaration; to be asked before reading, so that what arrives meanwhile counts as new."""
    moved = tables.moved(table.source)
    return None if moved is None else f"{moved}#{table.fingerprint}"


def noted(consuming: str | None, target: Checkpoint) -> str | None:
    """What the books note of a run that changed nothing: the consumption holds for the target as it stands, and for no other."""
    return None if consuming is None or target.moved is None else f"{consuming}>{target.moved}"


def is_consumed(consuming: str | None, target: Checkpoint, on_record: str | None) -> bool:
    """Whether the target stands for exactly this: by its own last commit, or by the books."""
    if consuming is None:
        return False
    by_commit = target.untouched and target.position.get(CONSUMED) == consuming
    return by_commit or (on_record is not None and on_record == noted(consuming, target))
