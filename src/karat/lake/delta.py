"""Delta tables by path under the lake's root, or by name in a catalog: read, append, replace, merge, overwrite.

A MERGE takes its transaction number and its metadata from the session, so every stage works on a session of its own.
All other writes take them as options.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from delta import DeltaTable
from delta import exceptions as conflicts
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.errors import InternalError, SourceUnavailable, StateConflict
from karat.lake.tables import SOURCE, TARGET, Layout, Merge, TableState, column_sql
from karat.state.commits import Checkpoint, Commit, LogEntry, Written, checkpoint_in, last_move, settled
from karat.temporal.columns import quoted

RECENT: Final = 50
"""How many commits are searched first for a checkpoint; the whole log only if none of them has it."""
CHANGE_FEED: Final = {"delta.enableChangeDataFeed": "true"}
UNUSUAL_IN_A_NAME: Final = " ,;{}()\n\t="
"""Letters Parquet does not take in a column's name; column mapping makes them possible."""
CONFLICTS: Final = (
    conflicts.ConcurrentAppendException,
    conflicts.ConcurrentDeleteDeleteException,
    conflicts.ConcurrentDeleteReadException,
    conflicts.ConcurrentTransactionException,
    conflicts.ConcurrentWriteException,
    conflicts.DeltaConcurrentModificationException,
    conflicts.MetadataChangedException,
    conflicts.ProtocolChangedException,
)
"""Every way in which Delta reports another writer; none of them is a subclass of the one with the general name."""
_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
_APP: Final = "spark.databricks.delta.write.txnAppId"
_NUMBER: Final = "spark.databricks.delta.write.txnVersion"
_REPLACE_ON: Final = "spark.databricks.delta.replaceOn.dataframe.writer.enabled"
_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class DeltaTables:
    """The tables of one lake through one session."""

    session: SparkSession
    lake: str

    def exists(self, name: TableName) -> bool:
        """Whether a Delta table is there."""
        address = self.address(name)
        if self._by_name(name):
            return bool(self.session.catalog.tableExists(address))
        return bool(DeltaTable.isDeltaTable(self.session, address))

    def state(self, name: TableName, stage: str) -> TableState:
        """The table's version and the stage's checkpoint, from one read of its log."""
        if not self.exists(name):
            return TableState(name, None, Checkpoint(trusted=True))
        recent = self._history(name, RECENT)
        return TableState(name, int(recent[0]["version"]), self._checkpoint_among(recent, name, stage))

    def read(self, name: TableName, version: int | None = None) -> DataFrame:
        """The table's rows, now or as of a version. Raises `SourceUnavailable` when there is no such table."""
        if version is not None:
            return self._read(name, {"versionAsOf": str(version)})
        if not self.exists(name):
            message = f"there is no table {name} in the lake"
            raise SourceUnavailable(message, remedy=f"create it, or mend the name; looked at {self.address(name)}")
        return self._table(name).toDF()

    def schema(self, name: TableName) -> T.StructType:
        """The columns of a table that is there, and their types."""
        return self.read(name).schema

    def create(self, name: TableName, schema: T.StructType, layout: Layout, commit: Commit) -> None:
        """An empty table with its change feed on; its first commit says that nothing has been consumed yet."""
        if self.exists(name):
            return
        if self._by_name(name):
            self.session.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.catalog or '')}.{quoted(name.schema)}")
        mapping = any(letter in field.name for field in schema for letter in UNUSUAL_IN_A_NAME)
        properties = {**CHANGE_FEED, **layout.properties, **({"delta.columnMapping.mode": "name"} if mapping else {})}
        properties |= {"delta.dataSkippingStatsColumns": ",".join(layout.statistics)} if layout.statistics else {}
        columns = ", ".join(column_sql(field, is_identity=field.name == layout.identity) for field in schema)
        partitions = ", ".join(quoted(column) for column in layout.partition_by)
        sql = f"CREATE TABLE IF NOT EXISTS {self._sql_name(name)} ({columns}) USING delta"
        sql += f" PARTITIONED BY ({partitions})" if partitions else ""
        sql += f" CLUSTER BY ({', '.join(map(quoted, layout.cluster_by))})" if layout.cluster_by else ""
        sql += " TBLPROPERTIES (" + ", ".join(f"'{key}' = '{value}'" for key, value in properties.items()) + ")"
        with _reported(name), self._settings({_METADATA: commit.as_text()}):
            try:
                self.session.sql(sql)
            except AnalysisException:
                if not self.exists(name):  # else another run created it at the same moment
                    raise

    def add_columns(self, name: TableName, fields: Sequence[T.StructField]) -> None:
        """New columns at the end, null in every row that is there."""
        added = ", ".join(column_sql(field) for field in fields)
        with _reported(name):
            self.session.sql(f"ALTER TABLE {self._sql_name(name)} ADD COLUMNS ({added})")

    def property(self, name: TableName, key: str) -> str | None:
        """A property of the table, if it is set."""
        rows = self.session.sql(f"SHOW TBLPROPERTIES {self._sql_name(name)}").collect()
        return next((str(row["value"]) for row in rows if row["key"] == key), None)

    def append(self, rows: DataFrame, to: TableName, commit: Commit) -> Written:
        """Rows added in one commit."""
        return self._write(rows, to, commit, "append")

    def overwrite(self, rows: DataFrame, table: TableName, commit: Commit) -> Written:
        """The content replaced in one commit; the schema stays."""
        return self._write(rows, table, commit, "overwrite")

    def can_replace(self) -> bool:
        """Whether this Delta has `replace`: an older one would not know the option, and overwrite the whole table."""
        conf = self.session.conf
        return bool(conf.isModifiable(_REPLACE_ON)) and conf.get(_REPLACE_ON) == "true"

    def replace(self, rows: DataFrame, where: str, table: TableName, commit: Commit) -> Written:
        """Rows added, and in the same commit the held rows removed that meet the condition with any of them.

        In the condition the sides are called `TARGET` and `SOURCE`.
        """
        return self._write(rows, table, commit, "overwrite", {"replaceOn": where, "targetAlias": TARGET})

    def merge(self, merge: Merge, into: TableName, commit: Commit) -> Written:
        """One MERGE, one commit; Delta itself makes none when no row is touched."""
        builder = self._table(into).alias(TARGET).merge(merge.rows.alias(SOURCE), merge.on)
        says = None if merge.action is None else f"{SOURCE}.{quoted(merge.action)}"
        if merge.update:
            builder = builder.whenMatchedUpdate(says and f"{says} IN ('update', 'put')", set=_from_source(merge.update))
        if merge.deletes:
            builder = builder.whenMatchedDelete(f"{says} = 'delete'")
        if merge.insert:
            values = _from_source(merge.insert)
            builder = builder.whenNotMatchedInsert(says and f"{says} IN ('insert', 'put')", values=values)  # type: ignore[arg-type]

        def execute() -> Written | None:
            with self._settings({_APP: commit.stage, _NUMBER: str(commit.sequence), _METADATA: commit.as_text()}):
                found = builder.execute().collect()
            counts = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
            return Written(*(found[0][name] for name in counts)) if found else None

        return self._committed(into, commit, execute)

    def insert(self, merge: Merge, into: TableName, commit: Commit) -> Written:
        """A merge that is known to find no row again, as an append of its rows."""
        held = {field.name.lower(): field for field in self._table(into).toDF().schema}
        fields = [(name, held[name.lower()]) for name in merge.insert]
        # an append converts nothing by itself, as a MERGE would
        cast = (F.col(quoted(name)).cast(field.dataType).alias(field.name) for name, field in fields)
        return self.append(merge.rows.select(*cast), into, commit)

    def commits(self, name: TableName) -> list[LogEntry]:
        """Every commit that the table's log still tells of, newest first."""
        return self._history(name, None)

    def version_and_move(self, name: TableName) -> tuple[int, str | None]:
        """The latest version of a table that is there, and its last move where the recent commits tell of one; one read of its log."""
        recent = self._history(name, RECENT)
        return int(recent[0]["version"]), last_move(recent)

    def version(self, name: TableName) -> int:
        """The table's latest version."""
        return int(self._history(name, 1)[0]["version"])

    def last_commit(self, name: TableName) -> tuple[int, datetime]:
        """The table's latest version, and when it was committed."""
        newest = self._history(name, 1)[0]
        return int(newest["version"]), newest["timestamp"].astimezone(UTC)

    def table_id(self, name: TableName) -> str:
        """What tells a table from another one made later under its name."""
        return str(self._table(name).detail().select("id").collect()[0][0])

    def extent(self, name: TableName) -> tuple[int, int]:
        """How many files the table has now, and how many bytes."""
        row = self._table(name).detail().select("numFiles", "sizeInBytes").collect()[0]
        return int(row["numFiles"]), int(row["sizeInBytes"])

    def compact(self, name: TableName, by: Sequence[str]) -> None:
        """Small files joined; with columns, rows that are close in them are laid close together."""
        optimize = self._table(name).optimize()
        optimize.executeZOrderBy(*by) if by else optimize.executeCompaction()

    def vacuum(self, name: TableName, hours: int) -> None:
        """Files that no version younger than this needs are removed; the table keeps the promise as its own property."""
        retention = f"'delta.deletedFileRetentionDuration' = 'interval {int(hours)} hours'"
        self.session.sql(f"ALTER TABLE {self._sql_name(name)} SET TBLPROPERTIES ({retention})")
        self._table(name).vacuum()

    def address(self, name: TableName) -> str:
        """Where the table is: its path, or its name in the catalog."""
        if self._by_name(name):
            return ".".join(quoted(part) for part in (name.catalog or "", name.schema, name.table))
        return f"{self.lake}/{name.path if name.path is not None else f'{name.schema}/{name.table}'}"

    def _write(self, rows: DataFrame, table: TableName, commit: Commit, mode: str, options: Mapping[str, str] = _NO_OPTIONS) -> Written:
        carried = {"txnAppId": commit.stage, "txnVersion": str(commit.sequence), "userMetadata": commit.as_text()}

        def execute() -> None:
            writer = rows.alias(SOURCE).write.format("delta").mode(mode).options(**carried, **options)
            writer.saveAsTable(self.address(table)) if self._by_name(table) else writer.save(self.address(table))

        return self._committed(table, commit, execute)

    def _committed(self, table: TableName, commit: Commit, execute: Callable[[], Written | None]) -> Written:
        """Write under the commit's number. What the answer does not tell is read from the log."""
        with _reported(table):
            try:
                written = execute()
            except CONFLICTS:
                raise
            except Exception:
                found = self._found_in_log(table, commit)
                if found is None:
                    raise
                return found
        if written is not None:
            return written
        found = self._found_in_log(table, commit)
        if found is None:  # Delta skips a write whose number has been used
            message = f"another run has already written number {commit.sequence} of {commit.stage} into {table}"
            raise StateConflict(message, remedy="the stage starts again from what is there")
        return found

    def _found_in_log(self, table: TableName, commit: Commit) -> Written | None:
        """What exactly this commit wrote, if the log has it."""
        if not self.exists(table):
            return None
        return settled(self._history(table, 1), commit) or settled(self._history(table, RECENT), commit)

    def _checkpoint_among(self, recent: Sequence[LogEntry], name: TableName, stage: str) -> Checkpoint:
        found = checkpoint_in(recent, stage)
        if found is None and len(recent) == RECENT:
            found = checkpoint_in(self._history(name, None), stage)
        # A log that was cleaned up says nothing, but the transaction numbers in it still hold: the clock is above them all.
        return found or Checkpoint(sequence=time.time_ns() // 1000, moved=last_move(recent))

    def _history(self, name: TableName, limit: int | None) -> list[LogEntry]:
        """Commits, newest first."""
        table = self._table(name)
        return [row.asDict() for row in (table.history() if limit is None else table.history(limit)).collect()]

    def _read(self, name: TableName, options: Mapping[str, str]) -> DataFrame:
        reader = self.session.read.format("delta").options(**options)
        return reader.table(self.address(name)) if self._by_name(name) else reader.load(self.address(name))

    def _table(self, name: TableName) -> DeltaTable:
        opened = DeltaTable.forName if self._by_name(name) else DeltaTable.forPath
        return opened(self.session, self.address(name))

    def _sql_name(self, name: TableName) -> str:
        return self.address(name) if self._by_name(name) else f"delta.{quoted(self.address(name))}"

    def _by_name(self, name: TableName) -> bool:
        return name.catalog is not None and name.path is None

    @contextmanager
    def _settings(self, settings: Mapping[str, str]) -> Iterator[None]:
        if self.session.conf.get(_METADATA, ""):
            message = "two commits were begun on one session"
            raise InternalError(message)
        for key, value in settings.items():
            self.session.conf.set(key, value)
        try:
            yield
        finally:
            for key in settings:
                self.session.conf.unset(key)


@contextmanager
def _reported(table: TableName) -> Iterator[None]:
    """A conflict with another writer as one of Karat's own errors, which the runner answers by starting the stage again."""
    try:
        yield
    except CONFLICTS as conflict:
        message = f"another run changed {table} at the same time"
        raise StateConflict(message, remedy="the stage starts again from what is there") from conflict


def _from_source(names: Sequence[str]) -> dict[str, str | Column]:
    """Each column set to the source's column of the same name."""
    return {quoted(name): f"{SOURCE}.{quoted(name)}" for name in names}
