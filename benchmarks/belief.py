"""A belief against the bronze batch that caused it, a table as of a time against a plain window, and `karat why` from a cold start.

    python benchmarks/belief.py [--keys 200000] [--versions 5] [--batch 2000] [--pairs 5]

The tables are those of `bronze.py`; the belief is about all of their attributes. Times on a shared machine mean little; their
ratio within one run means more.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bronze import ATTRIBUTES, Bench, Size, delivered, prepared
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from karat.config.settings import SparkSettings
from karat.lake.session import build_session
from karat.temporal.moments import from_micros

BELIEF = {
    "kind": "belief",
    "name": "thing",
    "entity": "thing",
    "rules": [
        {
            "version": 1,
            "in_force_from": "2020-01-01",
            "groups": {
                "first": {"attributes": ATTRIBUTES[:4], "by": "precedence", "sources": {"CORE": 1}},
                "others": {"attributes": ATTRIBUTES[4:], "by": "recency"},
            },
        }
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("keys", 200_000), ("versions", 5), ("batch", 2_000), ("pairs", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="karat-bench-"))
    spark = build_session(SparkSettings(master="local[2]", profile="throughput", conf={"spark.ui.enabled": False}), "karat benchmark")
    try:
        bench = prepared(spark, root / "belief", Size(given.keys, given.versions, given.batch))
        (bench.folder / "belief.json").write_text(json.dumps(BELIEF))
        began = time.monotonic()
        ran(bench)
        print(f"{given.keys} keys, {given.keys * given.versions} versions: believed for the first time in {time.monotonic() - began:.1f} s")
        for title, late in (("half of it late", 0.5), ("all in order", 0.0)):
            incremental(title, bench, given.pairs, late)
        as_of(bench, given.pairs)
        why(bench, given.pairs)
    finally:
        spark.stop()
        shutil.rmtree(root)


def ran(bench: Bench) -> dict[str, float]:
    """Seconds of each stage; and what the belief wrote."""
    report = bench.project.run()
    if not report.ok:
        raise SystemExit(str([stage.error for stage in report.stages]))
    rows = report.stages[1].rows
    print(f"  [read {rows.read}, periods +{rows.inserted} ~{rows.updated} -{rows.deleted}]", end=" ")
    return {stage.name: stage.seconds for stage in report.stages}


def incremental(title: str, bench: Bench, pairs: int, late: float) -> None:
    """Batch after batch: the belief's stage against the bronze stage of the same run."""
    print(f"\n{title}")
    ratios = []
    tracker = bench.spark.sparkContext.statusTracker()
    for _ in range(pairs + 1):
        delivered(bench, late)
        before = len(tracker.getJobIdsForGroup("silver.thing"))
        took = ran(bench)
        jobs = len(tracker.getJobIdsForGroup("silver.thing")) - before
        print(f"bronze {took['bronze.thing']:.2f} s, belief {took['silver.thing']:.2f} s in {jobs} jobs", flush=True)
        ratios.append(took["silver.thing"] / took["bronze.thing"])
    print(f"  belief / bronze: {statistics.median(ratios[1:]):.2f}")


def as_of(bench: Bench, pairs: int) -> None:
    """The whole table as of a time in the middle, against the last row of each key by a filter and a window."""
    print("\nthe whole table as of a time")
    project = bench.project
    valid_at, known_at = bench.size.end, datetime.now(UTC)
    evidence = project.table("bronze.thing_assertions")
    before = from_micros(evidence.agg(F.max(F.unix_micros("ingest_ts"))).collect()[0][0]) - timedelta(seconds=1)
    latest = Window.partitionBy("bk").orderBy(F.col("source_event_ts").desc())

    def plain() -> DataFrame:  # anew each time: Spark would keep what it has shuffled for the same frame
        told = evidence.where((F.col("ingest_ts") <= known_at) & (F.col("source_event_ts") <= valid_at))
        placed = told.select("bk", "source_event_ts", *ATTRIBUTES).withColumn("place", F.row_number().over(latest))
        return placed.where("place = 1")

    ratios: dict[str, list[float]] = {"as known now": [], "as known before the last batch": []}
    for _ in range(pairs + 1):
        now = drained(lambda: project.as_of("thing", valid_at=valid_at, known_at=known_at))
        once = drained(lambda: project.as_of("thing", valid_at=valid_at, known_at=before))
        theirs = drained(plain)
        print(f"  as known now {now:.2f} s, as known before {once:.2f} s, filter and window {theirs:.2f} s", flush=True)
        for what, ours in zip(ratios, (now, once), strict=True):
            ratios[what].append(ours / theirs)
    for what, found in ratios.items():
        print(f"  {what} / filter and window: {statistics.median(found[1:]):.2f}")


def drained(asked: Callable[[], DataFrame]) -> float:
    """Seconds to ask and to compute all of it; not into the sink `noop`, through which Delta cannot read deletion vectors."""
    began = time.monotonic()
    asked()._jdf.queryExecution().toRdd().count()  # every row with every column, handed to nobody
    return time.monotonic() - began


def why(bench: Bench, pairs: int) -> None:
    """One answer of the command line, the start of its process included."""
    print("\nkarat why, from a cold start")
    command = [str(Path(sys.executable).with_name("karat")), "why", "thing", "--key", "4711", "--attribute", ATTRIBUTES[0]]
    times = []
    for _ in range(pairs):
        began = time.monotonic()
        subprocess.run([*command, "--project", str(bench.folder)], check=True, capture_output=True)  # noqa: S603
        times.append(time.monotonic() - began)
    print(f"  median {statistics.median(times):.2f} s, slowest {max(times):.2f} s")


if __name__ == "__main__":
    main()
