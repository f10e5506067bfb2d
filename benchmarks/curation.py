"""Curation of a batch against a hand-written SCD2 MERGE of the same batch on an equal table, side by side in one run.

    python benchmarks/curation.py [--keys 200000] [--versions 5] [--batch 2000] [--pairs 5]

Times on a shared machine mean little; their ratio within one run, the jobs and the files mean more.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from delta import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from karat import Project
from karat.config.resolved import CuratedTable
from karat.config.settings import SparkSettings
from karat.curation.shape import target_schema
from karat.lake import delta
from karat.lake.delta import DeltaTables
from karat.lake.session import build_session
from karat.lake.tables import Layout, Merge
from karat.state.commits import Commit, Written
from karat.temporal.columns import DIFF_HASH, PK_HASH
from karat.temporal.hashing import hash_of

ATTRIBUTES = [f"attribute_{number}" for number in range(1, 9)]
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Size:
    """How large the table and the batch are."""

    keys: int
    versions: int
    batch: int


def main() -> None:
    """Build two equal tables, then alternate Karat and the hand-written MERGE."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("keys", 200_000), ("versions", 5), ("batch", 2_000), ("pairs", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    size = Size(given.keys, given.versions, given.batch)
    folder = Path(tempfile.mkdtemp(prefix="karat-bench-"))
    spark = build_session(SparkSettings(master="local[2]", conf={"spark.ui.enabled": False}), "karat benchmark")
    try:
        project = prepare(folder, spark, size)
        print(f"{size.keys} keys, {size.keys * size.versions} versions, batches of {size.batch}; table built")
        report([measure(project, spark, size, number) for number in range(given.pairs + 1)][1:])
    finally:
        spark.stop()
        shutil.rmtree(folder)


def prepare(folder: Path, spark: SparkSession, size: Size) -> Project:
    """A project whose target already holds all versions, and the same table again for the hand-written MERGE."""
    table = {
        "source_table": "bronze.thing", "target_table": "silver.thing", "scd_type": 2, "business_key_columns": ["thing_id"],
        "source_system_column": "source_system", "watermark_column": "ingestion_ts", "lookback_interval": "1 SECOND",
        "track_columns": ATTRIBUTES,
    }  # fmt: skip
    (folder / "karat.yml").write_text("project: bench\n")
    (folder / "curation.json").write_text(json.dumps({"kind": "curation", "tables": [table]}))
    project = Project.open(folder, spark=spark)
    curated, tables = project.config.curated[0], DeltaTables(spark.newSession(), project.config.lake)
    tables.session.conf.set("spark.sql.session.timeZone", "UTC")
    rows = versions(tables.session, size, curated)
    highest = FIRST_DAY.replace(day=1 + size.versions)
    commit = Commit("silver.thing", 1, "built", "-", {"watermark": highest.isoformat()})
    layout = Layout((curated.current,), {"delta.enableDeletionVectors": "true", "karat.hash": curated.hash})
    schema = target_schema(rows.drop(curated.start, curated.end, curated.current).schema, curated)
    tables.create(curated.target, schema, layout, Commit("silver.thing", 0, "built", "-"))
    tables.append(rows.select(*schema.names), curated.target, commit)
    shutil.copytree(tables.address(curated.target), folder / "byhand")
    return project


def versions(session: SparkSession, size: Size, table: CuratedTable) -> DataFrame:
    """`size.versions` versions of every key, a day each, the last one open. Grain: (key, version)."""
    every = session.range(size.keys * size.versions, numPartitions=4).select(
        (F.col("id") % size.keys).alias("key"), F.floor(F.col("id") / size.keys).cast("int").alias("version")
    )
    stated = every.select(
        *statement(F.col("key"), F.col("version").cast("string")), moment_of(F.col("version")).alias("ingestion_ts"), "version"
    )
    hashed = stated.withColumns(
        {PK_HASH: hash_of(table.entity_key, stated.schema, table.hash), DIFF_HASH: hash_of(ATTRIBUTES, stated.schema, table.hash)}
    )
    last = F.col("version") == size.versions - 1
    return hashed.withColumns(
        {
            table.start: F.col("ingestion_ts"),
            table.end: F.when(last, F.lit("9999-12-31 23:59:59").cast("timestamp")).otherwise(moment_of(F.col("version") + 1)),
            table.current: last,
        }
    ).drop("version")


def statement(key: Column, said: Column) -> list[Column]:
    """A key and eight attributes that depend on what is said."""
    attributes = [F.concat_ws("-", F.lit(name), key % 1000, said).alias(name) for name in ATTRIBUTES]
    return [key.cast("string").alias("thing_id"), F.lit("CORE").alias("source_system"), *attributes]


def moment_of(day: Column) -> Column:
    """Midnight of the day."""
    return F.timestamp_seconds(F.lit(int(FIRST_DAY.timestamp())) + day * 86_400)


def measure(project: Project, spark: SparkSession, size: Size, number: int) -> dict[str, float]:
    """One batch, by Karat and by hand, in turns."""
    day = F.lit(size.versions + 1 + number)
    keys = spark.range(size.batch).select((F.abs(F.hash(F.col("id") + number * size.batch)) % size.keys).alias("key")).distinct()
    batch = keys.select(*statement(F.col("key"), F.lit(f"batch {number}")), moment_of(day).alias("ingestion_ts"))
    batch.coalesce(1).write.format("delta").mode("append").save(f"{project.config.lake}/bronze/thing")
    found: dict[str, float] = {}
    acts = [lambda: by_karat(project, spark, found), lambda: by_hand(project, spark, number, size, found)]
    for act in acts if number % 2 else reversed(acts):
        act()
    print(f"batch {number}: karat {found['karat']:.2f} s, by hand {found['by hand']:.2f} s, with books {found['whole run']:.2f} s")
    return found


def by_karat(project: Project, spark: SparkSession, found: dict[str, float]) -> None:
    """`project.run`; the stage alone and the whole run with its books."""
    jobs = _Jobs(spark)
    began = time.monotonic()
    report = project.run()
    found["whole run"] = time.monotonic() - began
    stage = report.stages[0]
    if stage.status != "succeeded":
        message = f"the stage {stage.status}: {stage.error}"
        raise SystemExit(message)
    found.update(
        {"karat": stage.seconds, "rows": stage.rows.inserted + stage.rows.updated, "jobs": jobs.all(), "jobs beyond": jobs.beyond_merge()}
    )


class _Jobs:
    """Spark jobs of the stage's job group, and those of its MERGE alone."""

    def __init__(self, spark: SparkSession) -> None:
        self.tracker = spark.sparkContext.statusTracker()
        self.before, self.merge = self._now(), 0
        merge = DeltaTables.merge

        def counted(tables: DeltaTables, act: Merge, into: object, commit: Commit) -> Written:
            begun = self._now()
            written = merge(tables, act, into, commit)  # type: ignore[arg-type]
            self.merge = max(self.merge, self._now() - begun)
            return written

        delta.DeltaTables.merge = counted  # type: ignore[method-assign,assignment]
        self.restore = merge

    def _now(self) -> int:
        return len(self.tracker.getJobIdsForGroup("silver.thing"))

    def all(self) -> int:
        delta.DeltaTables.merge = self.restore  # type: ignore[method-assign]
        return self._now() - self.before

    def beyond_merge(self) -> int:
        return self.all() - self.merge


def by_hand(project: Project, spark: SparkSession, number: int, size: Size, found: dict[str, float]) -> None:
    """The textbook: new rows beside the current ones, changed ones twice, one MERGE."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    group = f"by hand {number}"
    spark.sparkContext.setJobGroup(group, group)
    began = time.monotonic()
    latest = Window.partitionBy("thing_id", "source_system").orderBy(F.col("ingestion_ts").desc())
    above = F.col("ingestion_ts") > moment_of(F.lit(size.versions + number))
    source = session.read.format("delta").load(f"{project.config.lake}/bronze/thing").where(above)
    updates = source.withColumn("place", F.row_number().over(latest)).where("place = 1").drop("place")
    held = DeltaTable.forPath(session, f"{project.config.folder}/byhand")
    same = (F.col("new.thing_id") == F.col("held.thing_id")) & (F.col("new.source_system") == F.col("held.source_system"))
    differs = " OR ".join(f"NOT (held.{name} <=> new.{name})" for name in ATTRIBUTES)
    current = held.toDF().where("is_current")
    changed = updates.alias("new").join(current.alias("held"), same).where(differs).selectExpr("NULL AS merge_key", "new.*")
    staged = changed.unionByName(updates.selectExpr("thing_id AS merge_key", "*"))
    values = {name: f"new.{name}" for name in ["thing_id", "source_system", *ATTRIBUTES, "ingestion_ts"]}
    period = {"effective_start_date": "new.ingestion_ts", "effective_end_date": "TIMESTAMP '9999-12-31 23:59:59'", "is_current": "true"}
    (
        held.alias("held")
        .merge(staged.alias("new"), "held.thing_id = new.merge_key AND held.source_system = new.source_system AND held.is_current = true")
        .whenMatchedUpdate(differs, set={"is_current": "false", "effective_end_date": "new.ingestion_ts"})
        .whenNotMatchedInsert(values={**values, **period})
        .execute()
    )
    found["by hand"] = time.monotonic() - began
    found["jobs by hand"] = len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def report(pairs: list[dict[str, float]]) -> None:
    """The medians and their ratio."""
    middle = {name: statistics.median(pair[name] for pair in pairs) for name in pairs[0]}
    ratio = statistics.median(pair["karat"] / pair["by hand"] for pair in pairs)
    print(
        f"\nmedian of {len(pairs)} pairs: karat {middle['karat']:.2f} s, by hand {middle['by hand']:.2f} s, ratio {ratio:.2f} (mark: 1.30)"
    )
    print(f"whole run with control and audit: {middle['whole run']:.2f} s")
    print(f"jobs: {middle['jobs']:.0f} in the stage, {middle['jobs beyond']:.0f} outside its MERGE; {middle['jobs by hand']:.0f} by hand")
    print(f"jobs beyond the hand-written MERGE: {middle['jobs'] - middle['jobs by hand']:.0f} (mark: 6)")
    print(f"rows written per batch: {middle['rows']:.0f}")


if __name__ == "__main__":
    main()
