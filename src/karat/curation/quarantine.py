"""Refused rows with their reason: the same row is recorded once, however often it is read again."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable
from karat.lake.delta import DeltaTables
from karat.lake.quarantine import QUARANTINE
from karat.lake.tables import Layout
from karat.state.commits import Commit
from karat.temporal.columns import REASON, col


def quarantine(refused: DataFrame, table: CuratedTable, tables: DeltaTables, commit: Commit) -> int:
    """Record the refused rows; returns how many were not on record yet. Written before the data, so that none is ever lost."""
    stage = f"{commit.stage}/quarantine"
    if not tables.exists(table.quarantine):
        tables.create(table.quarantine, QUARANTINE, Layout(), Commit(stage, 0, commit.run_id, commit.config_hash))
    state = tables.state(table.quarantine, stage)
    rows = _records(refused, table, tables, commit).dropDuplicates(["quarantine_id"])
    on_record = tables.read(table.quarantine, state.version).select("quarantine_id")
    new = rows.join(on_record, "quarantine_id", "left_anti").select(*QUARANTINE.names)
    if not new.take(1):
        return 0  # an append would commit even though it adds nothing
    # Another run that records the same rows uses the same number: one of the two is computed again.
    return tables.append(new, table.quarantine, replace(commit, stage=stage, sequence=state.next_number)).inserted


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
