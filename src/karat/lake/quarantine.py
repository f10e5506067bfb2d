"""Refused rows with their reason: the same row is recorded once, however often it is read again."""

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout
from karat.state.commits import Commit
from karat.temporal.columns import REASON, col

_TEXT, _TIME = T.StringType(), T.TimestampType()
QUARANTINE: Final = T.StructType(
    [
        T.StructField("reason", _TEXT),
        T.StructField("rule", _TEXT),
        T.StructField("feed", _TEXT),
        T.StructField("source_path", _TEXT),
        T.StructField("source_file", _TEXT),
        T.StructField("original", _TEXT),
        T.StructField("ingest_ts", _TIME),
        T.StructField("ingest_run_id", _TEXT),
        T.StructField("quarantine_id", _TEXT),
        T.StructField("replayed_by", _TEXT),
    ]
)
"""The shape of every quarantine."""


@dataclass(frozen=True)
class RefusedBy:
    """Who refuses rows: the table they were meant for, where they came from, and when."""

    target: TableName
    quarantine: TableName
    feed: str
    source_path: str
    refused_at: Column


def record_refused(refused: DataFrame, by: RefusedBy, tables: DeltaTables, commit: Commit) -> int:
    """Record rows that have a `REASON`; returns how many were not on record yet. Written before the data, so that none is ever lost."""
    stage = f"{commit.stage}/quarantine"
    if not tables.exists(by.quarantine):
        tables.create(by.quarantine, QUARANTINE, Layout(), Commit(stage, 0, commit.run_id, commit.config_hash))
    state = tables.state(by.quarantine, stage)
    rows = _records(refused, by, commit).dropDuplicates(["quarantine_id"])
    on_record = tables.read(by.quarantine, state.version).select("quarantine_id")
    new = rows.join(on_record, "quarantine_id", "left_anti").select(*QUARANTINE.names)
    if not new.take(1):
        return 0  # an append would commit even though it adds nothing
    # Another run that records the same rows uses the same number: one of the two is computed again.
    return tables.append(new, by.quarantine, replace(commit, stage=stage, sequence=state.next_number)).inserted


def _records(refused: DataFrame, by: RefusedBy, commit: Commit) -> DataFrame:
    """Grain: one row per refused row, with the whole original as JSON."""
    original = F.to_json(F.struct(*(col(name) for name in refused.columns if name != REASON)), {"ignoreNullFields": "false"})
    return refused.select(
        F.col(REASON).alias("reason"),
        F.regexp_extract(REASON, "^([^:]+):", 1).alias("rule"),
        F.lit(by.feed).alias("feed"),
        F.lit(by.source_path).alias("source_path"),
        F.lit(None).cast("string").alias("source_file"),
        original.alias("original"),
        by.refused_at.cast("timestamp").alias("ingest_ts"),
        F.lit(commit.run_id).alias("ingest_run_id"),
        F.sha2(F.concat_ws("|", F.lit(str(by.target)), F.col(REASON), original), 256).alias("quarantine_id"),
        F.lit(None).cast("string").alias("replayed_by"),
    )
