"""Refused rows, kept with their reason: the same row is recorded once, however often it is read again."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.resolved import CuratedTable
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout
from karat.state.commits import Commit
from karat.temporal.columns import REASON, col

SCHEMA = T.StructType(
    [
        T.StructField("reason", T.StringType()),
        T.StructField("rule", T.StringType()),
        T.StructField("feed", T.StringType()),
        T.StructField("source_path", T.StringType()),
        T.StructField("source_file", T.StringType()),
        T.StructField("original", T.StringType()),
        T.StructField("ingest_ts", T.TimestampType()),
        T.StructField("ingest_run_id", T.StringType()),
        T.StructField("quarantine_id", T.StringType()),
        T.StructField("replayed_by", T.StringType()),
    ]
)


def quarantine(refused: DataFrame, table: CuratedTable, tables: DeltaTables, commit: Commit) -> int:
    """Record the refused rows; returns how many were not on record yet. Writes before the data does, so none is ever lost."""
    stage = f"{commit.stage}/quarantine"
    tables.create(table.quarantine, SCHEMA, Layout(), Commit(stage, 0, commit.run_id, commit.config_hash))
    last = tables.checkpoint(table.quarantine, stage)
    rows = _records(refused, table, tables, commit).dropDuplicates(["quarantine_id"])
    fresh = rows.join(tables.read(table.quarantine).select("quarantine_id"), "quarantine_id", "left_anti").select(*SCHEMA.names)
    if not fresh.take(1):
        return 0  # an append would commit even though it adds nothing
    # Another run that records the same rows takes the same number: one of the two is computed again.
    return tables.append(fresh, table.quarantine, replace(commit, stage=stage, sequence=last.sequence + 1)).inserted


def _records(refused: DataFrame, table: CuratedTable, tables: DeltaTables, commit: Commit) -> DataFrame:
    """Grain: one row per refused row, with the whole original as JSON."""
    original = F.to_json(F.struct(*(col(name) for name in refused.columns if name != REASON)), {"ignoreNullFields": "false"})
    return refused.select(
        F.col(REASON).alias("reason"),
        F.regexp_extract(REASON, "^([^:]+):", 1).alias("rule"),
        F.lit(str(table.source)).alias("feed"),
        F.lit(tables.address(table.source)).alias("source_path"),
        F.lit(None).cast("string").alias("source_file"),
        original.alias("original"),
        F.lit(str(commit.position["started_at"])).cast("timestamp").alias("ingest_ts"),
        F.lit(commit.run_id).alias("ingest_run_id"),
        F.sha2(F.concat_ws("|", F.lit(str(table.target)), F.col(REASON), original), 256).alias("quarantine_id"),
        F.lit(None).cast("string").alias("replayed_by"),
    )
