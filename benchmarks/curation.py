"""Curation: SCD2 from one Delta table into another, beside a MERGE by hand into an equal table."""

import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from pyspark.sql import functions as F

from benchmarks import peers
from benchmarks.bench import Act, Bench, Row
from benchmarks.worlds import ATTRIBUTES, CURATED, FIRST, World, curation_world

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
_STRIDE = 1_000_003
"""A prime that divides no number of keys: so many steps visit as many keys."""


def curation(bench: Bench) -> list[Row]:
    """A batch of changed rows into a table with a history."""
    keys, versions, rows = max(1, bench.size.keys * 3 // 5), bench.size.versions, bench.size.rows
    world = curation_world(bench.spark, bench.room("curation"), (keys, versions))
    for version in range(versions):
        say(world, keys, f"version {version}", version)
        world.run()
    by_hand = world.by_hand
    shutil.copytree(world.table(CURATED), by_hand)
    days = iter(range(versions, versions + bench.warm_up + bench.rounds))

    def prepare() -> Mapping[str, Act]:
        day = next(days)
        say(world, rows, f"batch {day}", day)
        above = f"{FIRST + DAY * day - SECOND:%F %T}"

        def by_karat() -> float:
            bench.run("curation", world)
            return world.stage(CURATED).seconds

        return {"karat": by_karat, "MERGE": lambda: peers.curation_merge(world, by_hand, above)}

    found = bench.compare("curation", prepare)
    _check(bench, world, by_hand)
    bench.room("curation")
    title = f"curation SCD2, {rows:,} rows into {keys * versions:,} versions"
    return [Row(title, found["karat"], found["MERGE"], 1.4)]


def say(world: World, rows: int, words: str, day: int) -> None:
    """Rows about as many keys from all over the table, appended to the source in one commit."""
    rows = min(rows, world.keys)
    keys = world.spark.range(rows, numPartitions=2).select(((F.col("id") * _STRIDE + day) % world.keys).alias("key"))
    values = [F.concat_ws("-", F.lit(name), F.col("key") % 1000, F.lit(words)).alias(name) for name in ATTRIBUTES]
    at = F.timestamp_seconds(F.lit(int((FIRST + DAY * day).timestamp())) + F.col("key") % 80_000).alias("ingestion_ts")
    said = keys.select(F.col("key").cast("string").alias("thing_id"), F.lit("CORE").alias("source_system"), *values, at)
    said.coalesce(2).write.format("delta").mode("append").save(str(world.table("bronze.said")))


def _check(bench: Bench, world: World, by_hand: Path) -> None:
    """In order both ways come to the same rows."""
    if bench.verify and (differences := peers.curated_differences(world, by_hand)):
        message = f"{differences} versions differ between the curated table and the one by hand"
        raise SystemExit(message)
