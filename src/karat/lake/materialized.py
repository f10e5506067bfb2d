"""Rows that are read more than once in a stage are computed once, and staged under the lake.

The staged rows are files that every executor can read again, so a lost executor costs no more than its own task. They
also end the plan: what is derived from them is planned from the files, however long it took to compute them.

Each set of rows is the one table of a database with a folder of its own. Dropping the database removes the folder, on
every storage. A process that is killed leaves its folders behind, see `remove_leftovers`.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.temporal.sql import literal

STAGING: Final = "spark.karat.staging"
"""The setting of a stage's session that says where rows are staged; by default in Spark's warehouse."""
_DATABASE: Final = "karat_staging_"
_TABLE: Final = "staged"


@dataclass(frozen=True)
class Leftovers:
    """Staged rows that nobody has written to for some time."""

    folders: tuple[str, ...]
    files: int
    bytes: int


@contextmanager
def materialized(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed and staged at once, to the end of the block."""
    session, name = rows.sparkSession, uuid.uuid4().hex
    database = _database(session, name)
    try:
        # hashes and texts of many values fill a dictionary in vain, column by column, before Parquet gives it up
        rows.write.format("parquet").option("parquet.enable.dictionary", "false").saveAsTable(f"{database}.{_TABLE}")
        yield session.table(f"{database}.{_TABLE}")
    finally:
        session.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")


def leftovers(session: SparkSession, hours: int) -> Leftovers:
    """What was staged longer ago than this and is still there: its process has ended without removing it."""
    listing = session.read.format("binaryFile").option("pathGlobFilter", "*.parquet")
    is_old = F.max("modificationTime") < F.current_timestamp() - F.expr(f"INTERVAL {int(hours)} HOURS")
    folder = F.element_at(F.split("path", "/"), -3).alias("folder")
    try:
        files = listing.load(f"{_staging(session)}/*/{_TABLE}")
        sizes = (F.count("*").alias("files"), F.sum("length").alias("bytes"), is_old.alias("is_old"))
        found = [row for row in files.groupBy(folder).agg(*sizes).collect() if row["is_old"]]
    except AnalysisException as missing:
        if missing.getCondition() != "PATH_NOT_FOUND":
            raise
        found = []
    return Leftovers(tuple(row["folder"] for row in found), sum(row["files"] for row in found), sum(row["bytes"] for row in found))


def remove_leftovers(session: SparkSession, found: Leftovers) -> None:
    """The folders removed."""
    for name in found.folders:
        session.sql(f"DROP DATABASE {_database(session, name)} CASCADE")


def _database(session: SparkSession, name: str) -> str:
    """The database of one set of staged rows, there from now on."""
    database = f"spark_catalog.{_DATABASE}{name}"
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database} LOCATION {literal(f'{_staging(session)}/{name}')}")
    return database


def _staging(session: SparkSession) -> str:
    """The folder of everything that is staged."""
    return session.conf.get(STAGING, "") or f"{session.conf.get('spark.sql.warehouse.dir')}/_staging"
