"""The same work written by hand, as a data engineer would without a framework: the textbook's MERGE, upsert and first load.

Each starts from the same files as Karat, parses them, and takes the latest row of every key. None of them keeps evidence,
refuses bad rows, or places late ones: a late row closes the version that is current.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from delta import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.worlds import ATTRIBUTES, CURATED, TIMELINE, World

Values = dict[str, str | Column]
_DIFFERS = " OR ".join(f"NOT (held.{name} <=> new.{name})" for name in ATTRIBUTES)


def timed(act: Callable[[SparkSession], None], spark: SparkSession) -> float:
    """The seconds that it takes in a session of its own."""
    session = spark.newSession()
    began = time.monotonic()
    act(session)
    return time.monotonic() - began


def scd2_merge(world: World, table: Path, files: Sequence[Path]) -> float:
    """The textbook: new rows beside the current ones, changed ones twice, one MERGE into a table equal to the timeline."""

    def act(session: SparkSession) -> None:
        held = DeltaTable.forPath(session, str(table))
        updates = _latest(_messages(session, files), "thing_id", "at")
        current = held.toDF().where("is_source_current AND is_current")
        changed = updates.alias("new").join(current.alias("held"), F.expr("new.thing_id = held.thing_id")).where(_DIFFERS)
        staged = changed.selectExpr("NULL AS merge_key", "new.*").unionByName(updates.selectExpr("thing_id AS merge_key", "*"))
        values: Values = {name: f"new.{name}" for name in ("thing_id", *ATTRIBUTES)}
        closed: Values = {"is_current": "false", "is_source_current": "false", "effective_to": "new.at"}
        period: Values = {"effective_from": "new.at", "is_current": "true", "is_source_current": "true", "is_deleted": "new.op = 'd'"}
        (
            held.alias("held")
            .merge(staged.alias("new"), "held.thing_id = new.merge_key AND held.is_source_current = true AND held.is_current = true")
            .whenMatchedUpdate(_DIFFERS, set=closed)
            .whenNotMatchedInsert(values={**values, **period})
            .execute()
        )

    return timed(act, world.spark)


def upsert(world: World, table: Path, files: Sequence[Path]) -> float:
    """The plainest thing: update what is there, insert what is not."""

    def act(session: SparkSession) -> None:
        updates = _latest(_messages(session, files), "thing_id", "at")
        values: Values = {name: f"new.{name}" for name in ("thing_id", *ATTRIBUTES)}
        (
            DeltaTable.forPath(session, str(table))
            .alias("held")
            .merge(updates.alias("new"), "held.thing_id = new.thing_id")
            .whenMatchedUpdate(set=values)
            .whenNotMatchedInsert(values=values)
            .execute()
        )

    return timed(act, world.spark)


def first_load(world: World, table: Path, files: Sequence[Path]) -> float:
    """Parsed, deduplicated, and windowed into periods; one write."""

    def act(session: SparkSession) -> None:
        said = _messages(session, files).dropDuplicates(["thing_id", "at"])
        following = F.lead("at").over(Window.partitionBy("thing_id").orderBy("at"))
        periods = said.withColumns({"effective_from": F.col("at"), "effective_to": following})
        versions = periods.withColumns({"is_current": F.col("effective_to").isNull(), "is_deleted": F.col("op") == "d"})
        versions.drop("at", "op").write.format("delta").partitionBy("is_current").save(str(table))

    return timed(act, world.spark)


def curation_merge(world: World, table: Path, above: str) -> float:
    """SCD2 from one Delta table into another by a watermark: latest row a key, one MERGE."""

    def act(session: SparkSession) -> None:
        source = session.read.format("delta").load(str(world.table("bronze.said")))
        updates = _latest(source.where(F.col("ingestion_ts") > F.lit(above).cast("timestamp")), "thing_id", "ingestion_ts")
        held = DeltaTable.forPath(session, str(table))
        same = "new.thing_id = held.thing_id AND new.source_system = held.source_system"
        changed = updates.alias("new").join(held.toDF().where("is_current").alias("held"), F.expr(same)).where(_DIFFERS)
        staged = changed.selectExpr("NULL AS merge_key", "new.*").unionByName(updates.selectExpr("thing_id AS merge_key", "*"))
        values: Values = {name: f"new.{name}" for name in ("thing_id", "source_system", *ATTRIBUTES, "ingestion_ts")}
        period: Values = {
            "effective_start_date": "new.ingestion_ts",
            "effective_end_date": "TIMESTAMP '9999-12-31 23:59:59'",
            "is_current": "true",
        }
        on = "held.thing_id = new.merge_key AND held.source_system = new.source_system AND held.is_current = true"
        (
            held.alias("held")
            .merge(staged.alias("new"), on)
            .whenMatchedUpdate(_DIFFERS, set={"is_current": "false", "effective_end_date": "new.ingestion_ts"})
            .whenNotMatchedInsert(values={**values, **period})
            .execute()
        )

    return timed(act, world.spark)


def current_rows(world: World, table: Path) -> None:
    """A table of the timeline's current rows, for the upsert."""
    rows = world.spark.newSession().read.format("delta").load(str(world.table(TIMELINE))).where("is_current")
    rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(str(table))


def curated_differences(world: World, table: Path) -> int:
    """How many versions differ between the curated table and the one by hand."""
    session = world.spark.newSession()
    names = ("thing_id", *ATTRIBUTES, "effective_start_date", "effective_end_date", "is_current")
    ours, by_hand = (session.read.format("delta").load(str(path)).select(*names) for path in (world.table(CURATED), table))
    return ours.exceptAll(by_hand).count() + by_hand.exceptAll(ours).count()


def _messages(session: SparkSession, files: Sequence[Path]) -> DataFrame:
    fields = ", ".join(f"{name} string" for name in ("thing_id", "op", "at", *ATTRIBUTES))
    return session.read.schema(fields).json([str(path) for path in files]).withColumn("at", F.col("at").cast("timestamp"))


def _latest(rows: DataFrame, key: str, time_column: str) -> DataFrame:
    latest = Window.partitionBy(key).orderBy(F.col(time_column).desc())
    return rows.withColumn("place", F.row_number().over(latest)).where("place = 1").drop("place")
