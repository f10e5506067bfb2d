"""The values that cross the border to the lake: how a table is laid out, how it stood when a stage began, what is written.

A commit carries its checkpoint: the name of the stage, its number in the sequence of that stage's commits, and what it
has consumed. A stage reads the number once, when it begins, and commits with the next one. If another run was faster,
Delta refuses or skips the write, which `DeltaTables` reports as a conflict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from karat.config.names import TableName
from karat.state.commits import Checkpoint
from karat.temporal.changes import SOURCE, TARGET

__all__ = ["SOURCE", "TARGET", "Layout", "Merge", "TableState"]


@dataclass(frozen=True)
class TableState:
    """A table as it was when a stage began."""

    name: TableName
    version: int | None
    """None: there is no such table."""
    checkpoint: Checkpoint

    @property
    def exists(self) -> bool:
        """Whether the table was there."""
        return self.version is not None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written to it: only its creation is in the log."""
        return self.version is None or self.version == 0

    @property
    def next_number(self) -> int:
        """The number of the stage's next commit."""
        return self.checkpoint.sequence + 1


@dataclass(frozen=True)
class Merge:
    """Rows with an action each, and how to find the held row an action is about."""

    rows: DataFrame
    on: str
    action: str | None = None
    """The column that says insert, update, delete, or put, which is an update where something matches and an insert where
    nothing does; None: all rows are put."""
    update: Sequence[str] = ()
    """The columns an update sets; none: an insert-only merge."""
    insert: Sequence[str] = ()
    deletes: bool = False


@dataclass(frozen=True)
class Layout:
    """How a new table is laid out."""

    partition_by: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    """Columns whose smallest and largest value every file notes; none: the first few, as Delta chooses."""
    properties: Mapping[str, str] = field(default_factory=dict)
    cluster_by: tuple[str, ...] = ()
    """Columns of liquid clustering; not together with partitions."""
    identity: str | None = None
    """A column that Delta numbers by itself where a row has none."""
