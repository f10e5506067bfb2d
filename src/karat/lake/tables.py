"""The one protocol through which tables are read and committed, and the values that cross it.

A commit carries its checkpoint: the act's name, its number in the sequence of such acts, and what it has consumed.
Committing the same number twice is a no-op, so a rerun can neither lose nor repeat a batch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.state.commits import Checkpoint, Commit, Written

TARGET, SOURCE = "held", "new"
"""What the two sides of a merge are called in its condition."""


@dataclass(frozen=True)
class Merge:
    """Rows with an act each, and how to find the held row an act is about."""

    rows: DataFrame
    on: str
    act: str | None = None
    """The column that says insert, update, delete, or put, which is an update where something matches and an insert where nothing does;
    None: all rows are put."""
    update: Sequence[str] = ()
    """The columns an update sets; none: an insert-only merge."""
    insert: Sequence[str] = ()
    deletes: bool = False


@dataclass(frozen=True)
class Replacement:
    """Rows that take the place of held ones: all of them are written, and every held row that one of them matches is gone."""

    rows: DataFrame
    on: str
    meant: Written | None = None
    """What that comes to, where it is known: rows that match nothing are inserted, held ones that are not written again deleted."""


@dataclass(frozen=True)
class Layout:
    """How a new table is laid out."""

    partition_by: tuple[str, ...] = ()
    bounded: tuple[str, ...] = ()
    """Columns whose least and greatest value every file notes, so that it can stay unopened; none: the format chooses, the first few."""
    properties: Mapping[str, str] = field(default_factory=dict)


class Tables(Protocol):
    """Tables of one lake, through one session."""

    def exists(self, name: TableName) -> bool:
        """Whether the table is there."""

    def read(self, name: TableName) -> DataFrame:
        """The table's rows as they are now."""

    def create(self, name: TableName, schema: T.StructType, layout: Layout, commit: Commit) -> None:
        """An empty table, if it is not there yet."""

    def add_columns(self, name: TableName, fields: Sequence[T.StructField]) -> None:
        """New columns, null in every row that is there."""

    def append(self, rows: DataFrame, to: TableName, commit: Commit) -> Written:
        """Rows added in one commit."""

    def overwrite(self, rows: DataFrame, table: TableName, commit: Commit) -> Written:
        """The table's content replaced in one commit."""

    def merge(self, merge: Merge, into: TableName, commit: Commit) -> Written:
        """Rows inserted, updated and deleted in one commit; none at all when nothing differs."""

    def replace(self, change: Replacement, into: TableName, commit: Commit) -> Written:
        """Rows written in the place of others, in one commit."""

    def insert(self, merge: Merge, into: TableName, commit: Commit) -> Written:
        """The same for a merge all of whose rows are new."""

    def checkpoint(self, name: TableName, stage: str) -> Checkpoint:
        """What the table's log says about the stage."""

    def moved(self, name: TableName) -> str | None:
        """Which of the table's commits last changed its rows, in a form that no other commit shares."""
