"""A few rows of a large table, picked out without Spark where the table lies on a local disk: docs/decisions/0011.

Spark takes longer to plan such a search than delta-rs takes to do it. What delta-rs cannot read is left to Spark: then there is no answer.
"""

import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.execute.awaited import awaited
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.lake.delta import DeltaTables
from karat.temporal.columns import BK, SK
from karat.temporal.moments import micros_of
from karat.temporal.sql import Sql

_READ_BY_BOTH: Final = frozenset({"deletionVectors"})
"""Features of tables that delta-rs reads as Spark does."""


def picked(tables: DeltaTables, name: TableName, where: Sql, schema: T.StructType) -> DataFrame | None:
    """The rows that meet the condition, in standard SQL, computed; None where only Spark can tell."""
    path = tables.local_path(name)
    if path is None or not str(tables.session.sparkContext.master).startswith("local"):  # other machines could not read the file
        return None
    columns = ", ".join(f'"{column.replace(chr(34), 2 * chr(34))}"' for column in schema.names)
    with tempfile.TemporaryDirectory(prefix="karat-picked-") as folder:
        file = Path(folder) / "rows.parquet"
        try:
            table = DeltaTable(path)
            if not _READ_BY_BOTH.issuperset(table.protocol().reader_features or ()) or _is_mapped(table):
                return None
            copy = f"COPY (SELECT {columns} FROM held WHERE {where}) TO {_text(str(file))} STORED AS PARQUET"  # noqa: S608  (names and keys of our own)
            awaited(QueryBuilder().register("held", table).execute(copy))
        except Exception:  # noqa: BLE001  (whatever it cannot do, Spark can)
            return None
        # the times in the file are what they seem, however long ago
        rows = tables.session.read.schema(schema).option("datetimeRebaseMode", "CORRECTED").parquet(str(file))
        with interpreted(tables.session):
            return kept(rows, now=True)


def of_keys(keys: Iterable[bytes], *, or_of_none: bool = False) -> Sql:
    """Whether a row is about one of the keys, by `sk`; or about none, as what a source says of everything is."""
    if or_of_none:  # a join is one of all conditions, none of several
        return f"{SK} IN ({', '.join(map(_bytes, keys))}) OR {BK} IS NULL"
    return one_of(SK, keys)


def one_of(column: str, values: Iterable[bytes]) -> Sql:
    """Whether a column's bytes are among these."""
    rows = ", ".join(f"({_bytes(value)})" for value in values)  # joined to: a list would be looked through for every row
    return f"{column} IN (SELECT value FROM (VALUES {rows}) AS wanted(value))"  # noqa: S608  (bytes of our own)


def not_before(column: str, at: datetime) -> Sql:
    """Whether a column's time is this or later."""
    return f"{column} >= arrow_cast({micros_of(at)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _bytes(value: bytes) -> Sql:
    return f"X'{value.hex()}'"


def _text(value: str) -> Sql:
    return "'" + value.replace("'", "''") + "'"


def _is_mapped(table: DeltaTable) -> bool:
    """Whether columns have other names in the files; `delta.columnMapping.mode` says so."""
    return table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none"
