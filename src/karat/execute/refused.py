"""Refused rows of an entity's feeds, each with its reason and the original: on record once, however often a run is repeated."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.config.resolved import Entity
from karat.contract.columns import KIND, ORIGINAL, REASON, RULE
from karat.curation.quarantine import SCHEMA
from karat.execute.gather import Part
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout
from karat.state.commits import Commit
from karat.temporal.columns import FEED, SOURCE_FILE, SOURCE_PATH
from karat.temporal.moments import moment


def keep_refused(batch: DataFrame, snapshots: Sequence[Part], entity: Entity, tables: DeltaTables, commit: Commit) -> int:
    """The refused rows of the batch, and files that claim to be a full extract and are empty. Returns how many were not on record."""
    stage = f"{commit.stage}/quarantine"
    tables.create(entity.quarantine, SCHEMA, Layout(), Commit(stage, 0, commit.run_id, commit.config_hash))
    rows = _records(batch.where(F.col(KIND) == "refused"), commit)
    for part in snapshots:
        rows = rows.unionByName(_empty_files(batch, part, commit))
    known = tables.read(entity.quarantine).select("quarantine_id")
    new = rows.join(known, "quarantine_id", "left_anti")
    if not new.take(1):
        return 0
    last = tables.checkpoint(entity.quarantine, stage)
    return tables.append(new, entity.quarantine, replace(commit, stage=stage, sequence=last.sequence + 1, position={})).inserted


def _records(refused: DataFrame, commit: Commit) -> DataFrame:
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
        *_marks(commit),
        identity.alias("quarantine_id"),
        F.lit(None).cast("string").alias("replayed_by"),
    )


def _empty_files(batch: DataFrame, part: Part, commit: Commit) -> DataFrame:
    """Files of a feed whose absence means deletion that hold no row at all. Grain: one row per such file."""
    names = F.array(*(F.lit(file.path) for file in part.files))
    files = batch.sparkSession.range(1).select(F.explode(names).alias(SOURCE_PATH))
    seen = batch.where(F.col(FEED) == part.feed.feed.name).select(SOURCE_PATH).distinct()
    reason = "an empty snapshot deletes nothing: the file has no rows"
    return files.join(seen, SOURCE_PATH, "left_anti").select(
        F.lit(reason).alias("reason"),
        F.lit("empty snapshot").alias("rule"),
        F.lit(part.feed.feed.name).alias("feed"),
        F.col(SOURCE_PATH),
        F.substring_index(SOURCE_PATH, "/", -1).alias(SOURCE_FILE),
        F.lit("").alias("original"),
        *_marks(commit),
        F.sha2(F.concat_ws("|", F.lit(reason), F.col(SOURCE_PATH)), 256).alias("quarantine_id"),
        F.lit(None).cast("string").alias("replayed_by"),
    )


def _marks(commit: Commit) -> list[Column]:
    born = datetime.fromisoformat(str(commit.position["started_at"]))
    return [moment(born).alias("ingest_ts"), F.lit(commit.run_id).alias("ingest_run_id")]
