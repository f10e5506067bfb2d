"""Delta behind the protocol: by path under the lake's root, or by name in a catalog.

The transaction id and the commit's metadata travel as session settings, so every stage works on a session of its own.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from delta import DeltaTable
from delta.exceptions import DeltaConcurrentModificationException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.errors import InternalError, SourceUnavailable, StateConflict
from karat.execute.beside import through
from karat.execute.kept import WRITTEN_AS_KEPT
from karat.lake.tables import SOURCE, TARGET, Layout, Merge, Replacement
from karat.state.commits import Checkpoint, Commit, LogEntry, Written, checkpoint_in, last_move, settled
from karat.state.local_tables import is_local, is_table, local_history, local_id, local_rows, local_schema
from karat.temporal.columns import quoted

RECENT = 50
"""How many commits are looked at first for a checkpoint; the whole log only if it is not among them."""

ALWAYS = {"delta.enableChangeDataFeed": "true"}
_CARRIED: Final = (
    "spark.sql.session.timeZone",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.shuffle.partitions",
    *WRITTEN_AS_KEPT,
)
"""Settings of a session that the work on tables depends on."""
_NO_OPTIONS: Final[Mapping[str, str]] = MappingProxyType({})
UNUSUAL_IN_A_NAME = " ,;{}()\n\t="
"""Letters Parquet does not take in a column's name; column mapping makes them possible."""


@dataclass(frozen=True)
class DeltaTables:
    """The tables of one lake through one session. The session must be the caller's own: its settings are used for commits."""

    session: SparkSession
    lake: str

    def apart(self) -> "DeltaTables":
        """The same tables through another session with the same settings: for what is planned or committed beside something else."""
        session = self.session.newSession()
        for key in _CARRIED:
            session.conf.set(key, str(self.session.conf.get(key)))
        return DeltaTables(session, self.lake)

    def exists(self, name: TableName) -> bool:
        """Whether a Delta table is there."""
        if self._by_name(name):
            return bool(self.session.catalog.tableExists(self.address(name)))
        address = self.address(name)  # where delta-rs sees none there may be one still, under a name it takes for something else
        return is_table(address) or bool(DeltaTable.isDeltaTable(self.session, address))

    def read(self, name: TableName) -> DataFrame:
        """The table's rows; an unknown table is the user's to mend."""
        if not self.exists(name):
            message = f"there is no table {name} in the lake"
            raise SourceUnavailable(message, remedy=f"create it, or mend the name; looked at {self.address(name)}")
        return self._table(name).toDF()

    def schema(self, name: TableName) -> T.StructType:
        """The columns of a table that is there, and their types."""
        found = None if self._by_name(name) else local_schema(self.address(name))
        return self.read(name).schema if found is None else T.StructType.fromJson(json.loads(found))

    def create(self, name: TableName, schema: T.StructType, layout: Layout, commit: Commit) -> None:
        """An empty table with its change feed on; its first commit says that nothing has been consumed yet."""
        if self.exists(name):
            return
        if self._by_name(name):
            self.session.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.catalog or '')}.{quoted(name.schema)}")
        mapping = any(letter in field.name for field in schema for letter in UNUSUAL_IN_A_NAME)
        properties = {**ALWAYS, **layout.properties, **({"delta.columnMapping.mode": "name"} if mapping else {})}
        properties |= {"delta.dataSkippingStatsColumns": ",".join(layout.bounded)} if layout.bounded else {}
        columns = ", ".join(_column_sql(field) for field in schema)
        partitions = ", ".join(quoted(column) for column in layout.partition_by)
        sql = f"CREATE TABLE IF NOT EXISTS {self._sql_name(name)} ({columns}) USING delta"
        sql += f" PARTITIONED BY ({partitions})" if partitions else ""
        sql += " TBLPROPERTIES (" + ", ".join(f"'{key}' = '{value}'" for key, value in properties.items()) + ")"
        with self._settings({_METADATA: commit.as_text()}):
            self.session.sql(sql)

    def add_columns(self, name: TableName, fields: Sequence[T.StructField]) -> None:
        """New columns at the end."""
        added = ", ".join(_column_sql(field) for field in fields)
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

    def merge(self, merge: Merge, into: TableName, commit: Commit) -> Written:
        """One MERGE, one commit; Delta itself makes none when no row is touched."""
        builder = self._table(into).alias(TARGET).merge(merge.rows.alias(SOURCE), merge.on)
        says = None if merge.act is None else f"{SOURCE}.{quoted(merge.act)}"
        if merge.update:
            builder = builder.whenMatchedUpdate(says and f"{says} IN ('update', 'put')", set=_from_source(merge.update))
        if merge.deletes:
            builder = builder.whenMatchedDelete(f"{says} = 'delete'")
        builder = builder.whenNotMatchedInsert(says and f"{says} IN ('insert', 'put')", values=_from_source(merge.insert))  # type: ignore[arg-type]

        def act() -> Written | None:
            found = builder.execute().collect()
            return Written(found[0]["num_inserted_rows"], found[0]["num_updated_rows"], found[0]["num_deleted_rows"]) if found else None

        return self._committed(into, commit, act)

    def replace(self, change: Replacement, into: TableName, commit: Commit) -> Written:
        """Rows in the place of others, one commit; what Delta counts must be what was meant."""
        options = {"replaceOn": change.on, "targetAlias": TARGET}
        found = self._write(change.rows, into, commit, "overwrite", options)
        meant = change.meant
        if meant is None:
            return found
        if (found.inserted, found.deleted) != (meant.inserted + meant.updated, meant.updated + meant.deleted):
            message = f"{into}: {found.inserted} rows were written and {found.deleted} taken out, which is not {meant}"
            raise InternalError(message, remedy="report this; `karat maintain rebuild-from-raw` writes what the evidence says")
        return meant

    def insert(self, merge: Merge, into: TableName, commit: Commit) -> Written:
        """A MERGE that is known to find no row again, as what it then is: an append of its rows."""
        held = {field.name.lower(): field for field in self._table(into).toDF().schema}
        fields = [(name, held[name.lower()]) for name in merge.insert]
        # an append converts nothing by itself, as a MERGE would
        rows = merge.rows.select(*(F.col(quoted(name)).cast(field.dataType).alias(field.name) for name, field in fields))
        return self.append(rows, into, commit)

    def checkpoint(self, name: TableName, stage: str) -> Checkpoint:
        """The stage's last position in the table's own log; an absent table has none."""
        if not self.exists(name):
            return Checkpoint(trusted=True)
        recent = self._history(name, RECENT)
        found = checkpoint_in(recent, stage)
        if found is None and len(recent) == RECENT:
            found = checkpoint_in(self._history(name, None), stage)
        # A log that was cleaned up says nothing, but the transaction ids in it still hold: the clock is above them all.
        return found or Checkpoint(sequence=time.time_ns() // 1000, moved=last_move(recent))

    def moved(self, name: TableName) -> str | None:
        """The table's last move; None for an absent table, and where the log's recent commits tell of none."""
        return last_move(self._history(name, RECENT)) if self.exists(name) else None

    def local_rows(self, name: TableName, columns: Sequence[str]) -> list[tuple[Any, ...]] | None:
        """The rows of a small table, where they can be had without a Spark job."""
        return None if self._by_name(name) else local_rows(self.address(name), columns)

    def local_path(self, name: TableName) -> str | None:
        """Where the table lies, if that is on a local disk."""
        address = self.address(name)
        return address if is_local(address) and not self._by_name(name) else None

    def version(self, name: TableName) -> int:
        """The table's latest version."""
        return int(self._history(name, 1)[0]["version"])

    def moment_of(self, name: TableName, version: int) -> str:
        """A version and when it was made: a table that was made anew has other moments."""
        for row in self._history(name, RECENT):
            if row["version"] == version:
                return f"{version}@{row['timestamp']}"
        return str(version)

    def made_at(self, name: TableName) -> str:
        """What tells a table from another one made later under its name."""
        found = None if self._by_name(name) else local_id(self.address(name))
        return found or str(self._table(name).detail().select("id").collect()[0][0])

    def appended(self, name: TableName, after: int, up_to: int) -> DataFrame:
        """The rows that joined the table after one version and up to another."""
        reader = self.session.read.format("delta").options(readChangeFeed="true", startingVersion=after + 1, endingVersion=up_to)
        rows = reader.table(self.address(name)) if self._by_name(name) else reader.load(self.address(name))
        return rows.where("_change_type = 'insert'").drop("_change_type", "_commit_version", "_commit_timestamp")

    def extent(self, name: TableName) -> tuple[int, int]:
        """How many files the table has now, and how many bytes."""
        row = self._table(name).detail().select("numFiles", "sizeInBytes").collect()[0]
        return int(row["numFiles"]), int(row["sizeInBytes"])

    def compact(self, name: TableName, by: Sequence[str]) -> None:
        """Small files joined; with columns, rows that are close in them are laid close together."""
        # a table made before its layout said what files note may note nothing of these columns; close together is worth something still
        self.session.conf.set("spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled", "false")
        optimize = self._table(name).optimize()
        optimize.executeZOrderBy(*by) if by else optimize.executeCompaction()

    def vacuum(self, name: TableName, hours: int) -> None:
        """Files that no version younger than this needs are let go; the table keeps the promise as its own property."""
        self.session.sql(
            f"ALTER TABLE {self._sql_name(name)} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval {int(hours)} hours')"
        )
        self._table(name).vacuum()

    def address(self, name: TableName) -> str:
        """Where the table is: its path, or its name in the catalog."""
        if self._by_name(name):
            return ".".join(quoted(part) for part in (name.catalog or "", name.schema, name.table))
        return f"{self.lake}/{name.path if name.path is not None else f'{name.schema}/{name.table}'}"

    def _write(self, rows: DataFrame, table: TableName, commit: Commit, mode: str, options: Mapping[str, str] = _NO_OPTIONS) -> Written:
        def act() -> Written | None:
            writer = through(self.session, rows).alias(SOURCE).write.format("delta").mode(mode).options(**options)
            writer.saveAsTable(self.address(table)) if self._by_name(table) else writer.save(self.address(table))
            return None

        return self._committed(table, commit, act)

    def _committed(self, table: TableName, commit: Commit, act: Callable[[], Written | None]) -> Written:
        """Act under the commit's transaction id. Whatever cannot be told from the answer is read from the log, never guessed."""
        try:
            with self._settings({_APP: commit.stage, _VERSION: str(commit.sequence), _METADATA: commit.as_text()}):
                written = act()
        except DeltaConcurrentModificationException as conflict:
            message = f"another writer changed {table} at the same time"
            raise StateConflict(message, remedy="the batch is computed again; run one writer per table") from conflict
        except Exception:
            written = self._settled_by_log(table, commit)
            if written is None:
                raise
            return written
        if written is not None:
            return written
        found = self._settled_by_log(table, commit)
        if found is None:
            message = f"another run has already written number {commit.sequence} of {commit.stage} into {table}"
            raise StateConflict(message, remedy="the batch is computed again; run one writer per table")
        return found

    def _settled_by_log(self, table: TableName, commit: Commit) -> Written | None:
        """What our commit did if the log has it; None if it never happened."""
        return settled(self._history(table, RECENT), commit) if self.exists(table) else None

    def _history(self, name: TableName, limit: int | None) -> list[LogEntry]:
        """Commits, newest first: from a local log directly, else through Spark, at the price of a job."""
        found = None if self._by_name(name) else local_history(self.address(name), limit)
        if found is not None:
            return found
        table = self._table(name)
        return [row.asDict() for row in (table.history() if limit is None else table.history(limit)).collect()]

    def _table(self, name: TableName) -> DeltaTable:
        opened = DeltaTable.forName if self._by_name(name) else DeltaTable.forPath
        return opened(self.session, self.address(name))

    def _sql_name(self, name: TableName) -> str:
        return self.address(name) if self._by_name(name) else f"delta.{quoted(self.address(name))}"

    def _by_name(self, name: TableName) -> bool:
        return name.catalog is not None and name.path is None

    @contextmanager
    def _settings(self, settings: dict[str, str]) -> Iterator[None]:
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


def _column_sql(field: T.StructField) -> str:
    """A column as it is declared in SQL."""
    return f"{quoted(field.name)} {field.dataType.simpleString()}" + ("" if field.nullable else " NOT NULL")


def _from_source(names: Sequence[str]) -> dict[str, str | Column]:
    """Each column set to the source's column of the same name."""
    return {quoted(name): f"{SOURCE}.{quoted(name)}" for name in names}


_APP = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
