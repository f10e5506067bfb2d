"""Karat beside the same work by hand, case by case, and one table at the end.

    python -m benchmarks.run [--scale 1.0] [--rows N] [--only CASE,CASE] [--rounds 3]
                             [--verify] [--jobs [--plans N]] [--keep FOLDER] [--readme]

All in one Spark session of this process, on equal tables, in turns; medians after a warm-up. Times on a shared machine say
little, ratios within one run more. `--keep` builds the shared table in a folder and starts from it the next time; `--jobs`
prints the Spark jobs of the last round of every case; KARAT_DRIVER_MEMORY sets the memory.
"""

import argparse
import os
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.bench import Bench, Row, Size
from benchmarks.cases import CASES
from benchmarks.jobs import read_log, told
from karat.config.settings import SparkSettings
from karat.lake.session import build_session

README = Path(__file__).with_name("README.md")
MEMORY = "6g"
_MARKED = re.compile(r"(?<=<!-- results -->\n).*(?=<!-- end of results -->)", re.DOTALL)


def main() -> None:
    given = _options()
    names = given.only.split(",") if given.only else list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        message = f"no case {', '.join(unknown)}; there are: {', '.join(CASES)}"
        raise SystemExit(message)
    root = given.keep or Path(tempfile.mkdtemp(prefix="karat-bench-"))
    root.mkdir(parents=True, exist_ok=True)
    events = Path(tempfile.mkdtemp(prefix="karat-bench-events-"))
    logged: dict[str, object] = {"spark.eventLog.enabled": True, "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": False}
    conf = {"spark.ui.enabled": False, "spark.local.dir": str(root / "scratch"), **(logged if given.jobs else {})}
    os.environ.setdefault("KARAT_DRIVER_MEMORY", MEMORY)
    spark = build_session(SparkSettings.model_validate({"master": "local[2]", "profile": "throughput", "conf": conf}), "karat benchmark")
    size = Size().scaled(given.scale, given.rows)
    bench = Bench(spark, root, size, given.rounds, given.warm_up, verify=given.verify)
    rows: list[Row] = []
    try:
        measure(bench, names, rows)
    finally:
        spark.stop()
        if given.jobs:
            log = read_log(events)
            for window in {window.case: window for window in bench.windows}.values():
                print("\n" + "\n".join(told(log, window, given.plans)))
        shutil.rmtree(events)
        if given.keep is None:
            shutil.rmtree(root)
        print(f"\n{table(rows)}")
    if given.readme:
        write_readme(rows, size)


def measure(bench: Bench, names: Sequence[str], rows: list[Row]) -> None:
    """The lines of these cases, added as they come."""
    for name in names:
        began = time.monotonic()
        found = CASES[name](bench)
        rows += found
        print(f"{name}: {', '.join(f'{row.ratio:.2f} of {row.against}' for row in found)} ({time.monotonic() - began:.0f} s)", flush=True)


def table(rows: Sequence[Row]) -> str:
    """The one table."""
    lines = ["| case | bound | Karat | beside | ratio | |", "|---|---|---|---|---|---|"]
    for row in rows:
        bound = "" if row.bound is None else f"≤ {row.bound:g}"
        lines.append(f"| {row.case} | {bound} | {row.karat:.2f} s | {row.against} {row.peer:.2f} s | {row.ratio:.2f} | {row.verdict} |")
    return "\n".join(lines)


def write_readme(rows: Sequence[Row], size: Size) -> None:
    """The table in the README in place of the one that is there."""
    when = f"{datetime.now(UTC):%Y-%m-%d}, {size.keys:,} keys, {size.keys * size.versions:,} versions, {os.cpu_count()} cores"
    text = README.read_text(encoding="utf-8")
    README.write_text(_MARKED.sub(lambda _: f"{when}\n\n{table(rows)}\n", text), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="1: a million keys, five million versions, batches of 100,000")
    parser.add_argument("--rows", type=int, help="rows of a batch, whatever the scale")
    parser.add_argument("--only", help=f"cases, with commas between them: {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--verify", action="store_true", help="compare every table with its rebuild after its case")
    parser.add_argument("--jobs", action="store_true", help="print what Spark did in the last round of every case")
    parser.add_argument("--plans", type=int, default=0, help="with --jobs: of how many queries the whole plan, longest first")
    parser.add_argument("--keep", type=Path, help="a folder for the shared table, to start from it the next time")
    parser.add_argument("--readme", action="store_true", help="write the table into benchmarks/README.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
