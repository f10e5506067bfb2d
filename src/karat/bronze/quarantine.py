"""Refused rows of an entity's feeds, each with its reason and the original, on record once."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.context import StageContext
from karat.bronze.feeds import FeedBatch
from karat.contract.columns import KIND, ORIGINAL, REASON, RULE
from karat.lake.context import RunStamp
from karat.lake.quarantine import QUARANTINE
from karat.lake.tables import Layout
from karat.temporal.columns import FEED, SOURCE_FILE, SOURCE_PATH
from karat.temporal.moments import moment


def keep_refused(batch: DataFrame, snapshots: Sequence[FeedBatch], context: StageContext) -> int:
    """The refused rows of the batch, and files that claim to be a full extract and are empty.

    Returns how many were not on record.
    """
    table, tables, stage = context.entity.quarantine, context.tables, f"{context.stage}/quarantine"
    tables.create(table, QUARANTINE, Layout(), context.run.commit(stage, 0))
    state = tables.state(table, stage)
    stamp = context.run.stamp
    rows = _records(batch.where(F.col(KIND) == "refused"), stamp)
    for snapshot in snapshots:
        rows = rows.unionByName(_empty_files(batch, snapshot, stamp))
    known = tables.read(table, state.version).select("quarantine_id")
    new = rows.join(known, "quarantine_id", "left_anti")
    if not new.take(1):
        return 0
    return tables.append(new, table, context.run.commit(stage, state.next_number)).inserted


def _records(refused: DataFrame, stamp: RunStamp) -> DataFrame:
    """Grain: one row per refused row; the same row twice in one file is two."""
    said = F.concat_ws("|", F.col(FEED), F.col(SOURCE_PATH), F.col(REASON), F.col(ORIGINAL))
    numbered = refused.withColumn("__karat_said", said).withColumn(
        "__karat_number", F.row_number().over(Window.partitionBy("__karat_said").orderBy(F.col(RULE)))
    )
    identity = F.sha2(F.concat_ws("|", F.col("__karat_said"), F.col("__karat_number").cast("string")), 256)
    return numbered.select(
        F.col(REASON).alias("reason"),
        F.col(RULE).alias("rule"),
        F.col(FEED).alias("feed"),
        F.col(SOURCE_PATH),
        F.col(SOURCE_FILE),
        F.col(ORIGINAL).alias("original"),
        *_marks(stamp),
        identity.alias("quarantine_id"),
        F.lit(None).cast("string").alias("replayed_by"),
    )


def _empty_files(batch: DataFrame, snapshot: FeedBatch, stamp: RunStamp) -> DataFrame:
    """Files of a feed whose absence means deletion that hold no row at all. Grain: one row per such file."""
    names = F.array(*(F.lit(file.path) for file in snapshot.files))
    files = batch.sparkSession.range(1).select(F.explode(names).alias(SOURCE_PATH))
    seen = batch.where(F.col(FEED) == snapshot.feed.feed.name).select(SOURCE_PATH).distinct()
    reason = "an empty snapshot deletes nothing: the file has no rows"
    return files.join(seen, SOURCE_PATH, "left_anti").select(
        F.lit(reason).alias("reason"),
        F.lit("empty snapshot").alias("rule"),
        F.lit(snapshot.feed.feed.name).alias("feed"),
        F.col(SOURCE_PATH),
        F.substring_index(SOURCE_PATH, "/", -1).alias(SOURCE_FILE),
        F.lit("").alias("original"),
        *_marks(stamp),
        F.sha2(F.concat_ws("|", F.lit(reason), F.col(SOURCE_PATH)), 256).alias("quarantine_id"),
        F.lit(None).cast("string").alias("replayed_by"),
    )


def _marks(stamp: RunStamp) -> list[Column]:
    return [moment(stamp.started_at).alias("ingest_ts"), F.lit(stamp.run_id).alias("ingest_run_id")]
