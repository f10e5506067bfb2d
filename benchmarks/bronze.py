"""A bronze batch against a hand-written SCD2 MERGE and a plain upsert of the same batch, side by side in one run.

    python benchmarks/bronze.py [--keys 200000] [--versions 5] [--batch 2000] [--pairs 5] [--tenfold] [--snapshot]

The batch: random keys, half of them late by 1 to 30 days, 5 % deletes, 10 % partial; then the same all in order. Karat lands the
evidence and repairs the timeline; the MERGE by hand keeps no evidence and gets the late half wrong. Times on a shared machine mean
little; their ratio within one run, the jobs and the rows mean more.
"""

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from delta import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from karat import Project
from karat.bronze.arrival import complete_as_said
from karat.bronze.difference import differences
from karat.bronze.identity import HASH_FORMAT, identified, with_hashes
from karat.bronze.shape import assertion_columns, timeline_columns
from karat.bronze.timeline import timeline
from karat.config.settings import SparkSettings
from karat.execute.evidence import prepare, terms_of
from karat.lake.delta import DeltaTables
from karat.lake.session import build_session
from karat.state.commits import Commit
from karat.temporal.columns import CORRECTS
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import micros_of

if TYPE_CHECKING:
    from collections.abc import Callable

ATTRIBUTES = [f"attribute_{number}" for number in range(1, 9)]
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(days=30)
"""Between two versions of a key."""
ENTITY = {
    "kind": "entity",
    "name": "thing",
    "key": ["thing_id"],
    "attributes": dict.fromkeys(ATTRIBUTES, "string"),
    "feeds": [
        {
            "name": "core",
            "source_system": "CORE",
            "precedence_rank": 1,
            "from": {"kind": "files", "path": "data/core/*.ndjson", "format": "json"},
            "load_type": "PARTIAL",
            "event_time": "at",
            "op": "op",
        }
    ],
}


@dataclass(frozen=True)
class Size:
    """How large the table and the batch are."""

    keys: int
    versions: int
    batch: int

    @property
    def end(self) -> datetime:
        """When the last version of every key began."""
        return FIRST + STEP * (self.versions - 1)


@dataclass
class Bench:
    """A project with its tables built, and the same tables again for the work by hand."""

    spark: SparkSession
    folder: Path
    size: Size
    dice: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311  (a batch, not a secret)
    batches: int = 0

    @property
    def project(self) -> Project:
        return Project.open(self.folder, spark=self.spark)

    def session(self) -> SparkSession:
        session = self.spark.newSession()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        return session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("keys", 200_000), ("versions", 5), ("batch", 2_000), ("pairs", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--tenfold", action="store_true", help="also the same batch on a table with ten times the versions")
    parser.add_argument("--snapshot", action="store_true", help="also an unchanged full snapshot of all keys under sightings: lazy")
    given = parser.parse_args()
    size = Size(given.keys, given.versions, given.batch)
    root = Path(tempfile.mkdtemp(prefix="karat-bench-"))
    spark = build_session(SparkSettings(master="local[2]", profile="throughput", conf={"spark.ui.enabled": False}), "karat benchmark")
    try:
        bench = prepared(spark, root / "once", size)
        print(f"{size.keys} keys, {size.keys * size.versions} versions, batches of {size.batch}; tables built")
        compare("half of it late", bench, given.pairs, late=0.5)
        compare("all in order", bench, given.pairs, late=0.0)
        again(bench, given.pairs)
        if given.tenfold:
            larger = prepared(spark, root / "tenfold", Size(size.keys, size.versions * 10, size.batch))
            against_tenfold(bench, larger, given.pairs)
        if given.snapshot:
            snapshot(spark, root / "snapshot", size)
    finally:
        spark.stop()
        shutil.rmtree(root)


def prepared(spark: SparkSession, folder: Path, size: Size) -> Bench:
    """Evidence and timeline of every version, written by the same transforms a run uses; and the tables for the work by hand."""
    (folder / "data" / "core").mkdir(parents=True)
    (folder / "karat.yml").write_text("project: bench\n")
    (folder / "thing.json").write_text(json.dumps(ENTITY))
    bench = Bench(spark, folder, size)
    entity, config = bench.project.config.entities[0], bench.project.config
    tables = DeltaTables(bench.session(), config.lake)
    terms = replace(terms_of(entity, tables, ("CORE",)), swept=False, shown_apart=False)
    opened = Commit("bronze.thing", 0, "built", "-")
    prepare(entity, terms, tables, opened)
    said = statements(tables.session, size).transform(identified, terms).transform(with_hashes, terms).transform(complete_as_said)
    # as a run's own commit has it
    told: dict[str, object] = {"sources": ["CORE"], "sweeps": {}, "apart": [], "clock": micros_of(FIRST), "behind": {}}
    tables.append(said.selectExpr(*assertion_columns(terms)), entity.assertions, Commit("bronze.thing", 1, "built", "-", told))
    versions = in_turn(tables.read(entity.assertions), size, terms)
    laid_out = versions.repartitionByRange(ceil(size.keys * size.versions / 250_000), "effective_from")
    tables.append(laid_out, entity.timeline, Commit("bronze.thing", 1, "built", "-", {"assertions": tables.version(entity.assertions)}))
    shutil.copytree(tables.address(entity.timeline), f"{config.lake}/byhand/scd2")  # an equal table: same files, same properties
    current = tables.read(entity.timeline).where("is_current")
    current.write.format("delta").option("delta.enableDeletionVectors", "true").save(f"{config.lake}/byhand/upsert")
    return bench


def in_turn(said: DataFrame, size: Size, terms: EntitySchema) -> DataFrame:
    """The versions of statements a step apart that each say something else: the next one ends it. As `timeline` has them, and sooner.

    Grain: one row per statement; that they are the same is looked at for some of the keys.
    """
    is_last, at = F.col("source_event_ts") >= F.lit(size.end), F.col("source_event_ts")
    end = F.when(~is_last, at + F.expr(f"INTERVAL {STEP.days} DAYS"))
    chains = {"effective_from": at, "effective_to": end, "is_current": is_last, "source_effective_to": end, "is_source_current": is_last}
    seen = {"first_seen_ts": F.col("ingest_ts"), "last_seen_ts": F.col("ingest_ts"), "seen_count": F.lit(1), "last_event_ts": at}
    nothing = F.lit(None).cast("binary")
    versions = said.withColumns({**chains, **seen, CORRECTS: nothing}).selectExpr(*timeline_columns(terms))
    some = F.col("thing_id").cast("int") % 1009 == 0
    if not differences(timeline(said.where(some), terms), versions.where(some), terms).isEmpty():
        message = "the tables were not built as a run would build them"
        raise SystemExit(message)
    return versions


def statements(session: SparkSession, size: Size) -> DataFrame:
    """`size.versions` full statements about every key, a step apart. Grain: (key, version)."""
    every = session.range(size.keys * size.versions, numPartitions=4).select(
        (F.col("id") % size.keys).alias("key"), F.floor(F.col("id") / size.keys).cast("int").alias("version")
    )
    at = F.timestamp_seconds(F.lit(int(FIRST.timestamp())) + F.col("version") * int(STEP.total_seconds()))
    constants: dict[str, Column] = {
        "source_system": F.lit("CORE"),
        "source_type": F.lit("file"),
        "source_path": F.lit("built"),
        "source_file": F.lit("built"),
        "feed": F.lit("core"),
        "source_sequence_id": F.lit(None).cast("string"),
        "op": F.lit("u"),
        "load_type": F.lit("PARTIAL"),
        "precedence_rank": F.lit(1),
        "is_deleted": F.lit(False),
        "asserted_columns": F.array(*map(F.lit, ATTRIBUTES)),
        "time_basis": F.lit("source"),
        "snapshot_ts": F.lit(None).cast("timestamp"),
        "extra": F.lit(None).cast("map<string,string>"),
        "payload": F.lit(None).cast("string"),
        "extraction_version": F.lit(None).cast("string"),
        "ingest_ts": F.lit("2026-01-01").cast("timestamp"),
        "ingest_run_id": F.lit("built"),
        "batch_seq": F.lit(1),
        "entity_type": F.lit("state"),
        "hash_version": F.lit(HASH_FORMAT),
        "copies": F.lit(1),
    }
    words = [F.concat_ws("-", F.lit(name), F.col("key") % 1000, F.col("version")).alias(name) for name in ATTRIBUTES]
    return every.select(F.col("key").cast("string").alias("thing_id"), *words, at.alias("source_event_ts")).withColumns(constants)


def delivered(bench: Bench, late: float) -> Path:
    """The next batch as a file of messages."""
    bench.batches += 1
    size, dice = bench.size, bench.dice
    now = size.end + timedelta(days=1, hours=bench.batches)
    path = bench.folder / "data" / "core" / f"batch-{bench.batches:03d}.ndjson"
    with path.open("w", encoding="utf-8") as out:
        for key in dice.sample(range(size.keys), size.batch):
            at = now - timedelta(days=dice.uniform(1, 30)) if dice.random() < late else now
            words = {name: f"{name}-{key % 1000}-batch {bench.batches}" for name in ATTRIBUTES}
            kind = dice.random()
            if kind < 0.05:
                words = {}
            elif kind < 0.15:
                words = {name: words[name] for name in ATTRIBUTES[:2]}
            out.write(json.dumps({"thing_id": str(key), "op": "d" if not words else "u", "at": at.isoformat(), **words}) + "\n")
    return path


def compare(title: str, bench: Bench, pairs: int, late: float) -> None:
    """Karat, the SCD2 MERGE and the upsert in turns over the same batches."""
    print(f"\n{title}")
    found = []
    for number in range(pairs + 1):
        batch = delivered(bench, late)
        acts: list[tuple[str, Callable[[], float]]] = [
            ("karat", lambda: by_karat(bench)),
            ("scd2", lambda batch=batch: by_hand(bench, batch)),  # type: ignore[misc]
            ("upsert", lambda batch=batch: upserted(bench, batch)),  # type: ignore[misc]
        ]
        if number % 2:
            acts.reverse()
        times = {name: act() for name, act in acts}
        print("  " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in sorted(times.items())), flush=True)
        found.append(times)
    measured = found[1:]
    for other in ("scd2", "upsert"):
        ratio = statistics.median(times["karat"] / times[other] for times in measured)
        print(f"  karat / {other}: {ratio:.2f}")


def by_karat(bench: Bench) -> float:
    """`project.run`; the whole of it."""
    project = bench.project
    tracker = bench.spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup("bronze.thing"))
    began = time.monotonic()
    report = project.run()
    took = time.monotonic() - began
    stage = report.stages[0]
    if not report.ok:
        raise SystemExit(str(stage.error))
    rows = stage.rows
    jobs = len(tracker.getJobIdsForGroup("bronze.thing")) - before
    print(f"  [{jobs} jobs; read {rows.read}, versions +{rows.inserted} ~{rows.updated} -{rows.deleted}]", end="")
    return took


def read_batch(session: SparkSession, batch: Path) -> DataFrame:
    fields = ", ".join(f"{name} string" for name in ("thing_id", "op", "at", *ATTRIBUTES))
    return session.read.schema(fields).json(str(batch)).withColumn("at", F.col("at").cast("timestamp"))


def by_hand(bench: Bench, batch: Path) -> float:
    """The textbook: new rows beside the current ones, changed ones twice, one MERGE; late rows close what they should not."""
    session = bench.session()
    began = time.monotonic()
    latest = Window.partitionBy("thing_id").orderBy(F.col("at").desc())
    updates = read_batch(session, batch).withColumn("place", F.row_number().over(latest)).where("place = 1").drop("place")
    held = DeltaTable.forPath(session, f"{bench.project.config.lake}/byhand/scd2")
    current = held.toDF().where("is_source_current AND is_current")
    differs = " OR ".join(f"NOT (held.{name} <=> new.{name})" for name in ATTRIBUTES)
    same = F.col("new.thing_id") == F.col("held.thing_id")
    changed = updates.alias("new").join(current.alias("held"), same).where(differs).selectExpr("NULL AS merge_key", "new.*")
    staged = changed.unionByName(updates.selectExpr("thing_id AS merge_key", "*"))
    values = {name: f"new.{name}" for name in ("thing_id", *ATTRIBUTES)}
    period = {"effective_from": "new.at", "is_current": "true", "is_source_current": "true", "is_deleted": "new.op = 'd'"}
    (
        held.alias("held")
        .merge(staged.alias("new"), "held.thing_id = new.merge_key AND held.is_source_current = true AND held.is_current = true")
        .whenMatchedUpdate(differs, set={"is_current": "false", "is_source_current": "false", "effective_to": "new.at"})
        .whenNotMatchedInsert(values={**values, **period})
        .execute()
    )
    return time.monotonic() - began


def upserted(bench: Bench, batch: Path) -> float:
    """The plainest thing: update what is there, insert what is not."""
    session = bench.session()
    began = time.monotonic()
    values = {name: f"new.{name}" for name in ("thing_id", *ATTRIBUTES)}
    (
        DeltaTable.forPath(session, f"{bench.project.config.lake}/byhand/upsert")
        .alias("held")
        .merge(read_batch(session, batch).alias("new"), "held.thing_id = new.thing_id")
        .whenMatchedUpdate(set=values)
        .whenNotMatchedInsert(values=values)
        .execute()
    )
    return time.monotonic() - began


def again(bench: Bench, pairs: int) -> None:
    """A finished run once more; then batches, each delivered once more."""
    print("\nonce more")
    entity = bench.project.config.entities[0]
    tables = DeltaTables(bench.session(), bench.project.config.lake)
    before = (tables.version(entity.assertions), tables.version(entity.timeline))
    took = by_karat(bench)
    after = (tables.version(entity.assertions), tables.version(entity.timeline))
    print(f"  rerun: {took:.2f} s, {sum(after) - sum(before)} commits")
    ratios = []
    for number in range(pairs + 1):
        first = delivered(bench, 0.5)
        fresh = by_karat(bench)
        shutil.copy(first, first.with_name(f"redelivered-{number}.ndjson"))
        redelivered = by_karat(bench)
        print(f"\n  the batch {fresh:.2f} s, redelivered {redelivered:.2f} s: {redelivered / fresh:.2f}", flush=True)
        ratios.append(redelivered / fresh)
    print(f"  redelivered / the batch: {statistics.median(ratios[1:]):.2f}")


def against_tenfold(bench: Bench, larger: Bench, pairs: int) -> None:
    """The same kind of batch on both tables in turns."""
    print("\nten times the versions")
    ratios = []
    for _ in range(pairs + 1):
        delivered(bench, 0.5)
        delivered(larger, 0.5)
        small, large = by_karat(bench), by_karat(larger)
        print(f"  once {small:.2f} s, tenfold {large:.2f} s")
        ratios.append(large / small)
    print(f"  tenfold / once: {statistics.median(ratios[1:]):.2f}")


def snapshot(spark: SparkSession, folder: Path, size: Size) -> None:
    """A full snapshot of all keys, then the same again a day later."""
    print("\na full snapshot under sightings: lazy, then an unchanged one")
    (folder / "data").mkdir(parents=True)
    (folder / "karat.yml").write_text("project: bench\n")
    feed = {**ENTITY["feeds"][0], "load_type": "FULL", "event_time": "data_date"}  # type: ignore[index]
    feed.pop("op")
    feed["from"] = {"kind": "files", "path": "data/*.parquet/*.parquet", "format": "parquet"}
    (folder / "thing.json").write_text(json.dumps({**ENTITY, "sightings": "lazy", "feeds": [feed]}))
    bench = Bench(spark, folder, size)
    times = []
    for day in range(2):
        said = statements(bench.session(), Size(size.keys, 1, 0)).select("thing_id", *ATTRIBUTES)
        dated = said.withColumn("data_date", F.lit((FIRST + timedelta(days=day)).isoformat()).cast("timestamp"))
        dated.write.parquet(f"{folder}/data/day{day}.parquet")
        times.append(by_karat(bench))
        print(f"  day {day}: {times[-1]:.2f} s")
    print(f"  unchanged / first: {times[1] / times[0]:.2f}")


if __name__ == "__main__":
    main()
