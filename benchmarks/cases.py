"""The cases, each a function from a bench to the lines it adds to the table."""

import json
import shutil
import statistics
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final

from benchmarks import peers
from benchmarks.bench import Act, Bench, Row
from benchmarks.curation import curation
from benchmarks.worlds import (
    BELIEVED,
    CHANGES,
    FIRST,
    SNAPSHOTS,
    TIMELINE,
    Mix,
    World,
    entity_world,
    load_history,
    write_history,
    write_snapshot,
)

Case = Callable[[Bench], list[Row]]
STATEMENTS_A_RUN = 1_000_000
IN_ORDER, HALF_LATE = Mix(), Mix(late=0.5)


def in_order(bench: Bench) -> list[Row]:
    """A batch in which everything is later than what is held."""
    found = _against_merge(bench, "in-order", bench.size.rows, IN_ORDER)
    title = f"{bench.size.rows:,} rows, in order"
    return [Row(title, found["karat"], found["MERGE"], 1.5), Row(title, found["karat"], found["upsert"], against="upsert")]


def half_late(bench: Bench) -> list[Row]:
    """A batch of which half is late."""
    found = _against_merge(bench, "half-late", bench.size.rows, HALF_LATE)
    title = f"{bench.size.rows:,} rows, half late, 10 % partial, 5 % deletes"
    return [Row(title, found["karat"], found["MERGE"], 2.0), Row(title, found["karat"], found["upsert"], against="upsert")]


def small(bench: Bench) -> list[Row]:
    """A small batch, for which the fixed cost counts."""
    rows = max(1, bench.size.rows // 50)
    found = _against_merge(bench, "small", rows, HALF_LATE)
    return [Row(f"{rows:,} rows, half late", found["karat"], found["MERGE"], 2.5)]


def large(bench: Bench) -> list[Row]:
    """A batch six times as large, by the row."""
    base, rows = bench.base(), bench.size.rows
    larger = min(6 * rows, base.keys)

    def prepare() -> Mapping[str, Act]:
        def of(count: int) -> Act:
            def act() -> float:
                base.deliver(count, HALF_LATE)
                return bench.run("large" if count == larger else "large, as before", base)

            return act

        return {"karat": of(larger), "as before": of(rows)}

    found = bench.compare("large", prepare)
    _done(bench, base)
    scale = larger / rows
    return [Row(f"{larger:,} rows, half late: cost of {rows:,} rows", found["karat"] / scale, found["as before"], 1.0, f"{rows:,} rows")]


def swept(bench: Bench) -> list[Row]:
    """The batch half late, for an entity whose source once told a truncate and ten complete snapshots."""
    base = bench.base()
    other = base.copy(bench.room("swept"))
    _tell_snapshots_and_truncate(other)
    other.run()
    other.forget_files()

    def prepare() -> Mapping[str, Act]:
        other.deliver_again(base.deliver(bench.size.rows, HALF_LATE))
        return {"karat": lambda: bench.run("swept", other), "without": lambda: bench.run("swept, without", base)}

    found = bench.compare("swept", prepare)
    _done(bench, base, other)
    shutil.rmtree(other.folder)
    title = f"{bench.size.rows:,} rows, half late, behind a truncate and ten complete snapshots"
    return [Row(title, found["karat"], found["without"], 1.3, "none behind")]


def tenfold(bench: Bench) -> list[Row]:
    """The same batch on a table with ten times the versions of every key."""
    keys, versions = max(1, bench.size.keys // 10), bench.size.versions
    once = entity_world(bench.spark, bench.room("once"), (keys, versions))
    tenfold = entity_world(bench.spark, bench.room("tenfold"), (keys, 10 * versions))
    for world in (once, tenfold):
        load_history(world, versions_a_run=max(1, STATEMENTS_A_RUN // keys))
    rows = max(1, bench.size.rows // 2)

    def prepare() -> Mapping[str, Act]:
        once.deliver(rows, HALF_LATE)
        tenfold.deliver(rows, HALF_LATE)
        return {"karat": lambda: bench.run("tenfold", tenfold), "once": lambda: bench.run("tenfold, once", once)}

    found = bench.compare("tenfold", prepare)
    _done(bench, once, tenfold)
    shutil.rmtree(once.folder)
    shutil.rmtree(tenfold.folder)
    return [
        Row(
            f"{rows:,} rows, half late, {keys:,} keys with {10 * versions} versions",
            found["karat"],
            found["once"],
            1.5,
            f"{versions} versions",
        )
    ]


def snapshots(bench: Bench) -> list[Row]:
    """A complete snapshot every day; a later one must not cost more than the second."""
    keys = max(1, bench.size.keys // 5)
    world = entity_world(bench.spark, bench.room("snapshots"), (keys, 1), [SNAPSHOTS])
    took: list[float] = []
    for day in range(1, bench.days + bench.rounds):
        write_snapshot(world, day, range(keys), 0.02, FIRST)
        took.append(bench.run("snapshots", world))
        world.forget_files()
    print("  snapshots: " + ", ".join(f"{seconds:.1f}" for seconds in took) + " s", flush=True)
    bench.check(world, "thing")
    shutil.rmtree(world.folder)
    early, late = (statistics.median(took[first : first + bench.rounds]) for first in (1, bench.days - 1))
    return [Row(f"complete snapshot of {keys:,} keys, 2 % changed: day {bench.days}", late, early, 1.3, "day 2")]


def belief(bench: Bench) -> list[Row]:
    """What is believed after a batch, beside the batch itself."""
    world = bench.base().copy(bench.room("belief"))
    (world.folder / "belief.json").write_text(json.dumps(BELIEVED), encoding="utf-8")
    world.run()

    def prepare() -> Mapping[str, Act]:
        world.deliver(bench.size.rows, HALF_LATE)
        bench.run("belief", world)
        return {"karat": lambda: world.stage("silver.thing").seconds, "bronze": lambda: world.stage(TIMELINE).seconds}

    found = bench.compare("belief", prepare)
    bench.check(world, "thing", "silver.thing")
    shutil.rmtree(world.folder)
    return [Row(f"belief of {bench.size.rows:,} rows, half late", found["karat"], found["bronze"], 1.3, "its bronze stage")]


def first_load(bench: Bench) -> list[Row]:
    """Everything there is, into tables that are not there yet."""
    versions = bench.size.versions
    keys = max(1, bench.size.keys // versions)

    def prepare() -> Mapping[str, Act]:
        world = entity_world(bench.spark, bench.room("first"), (keys, versions))
        files = write_history(world, range(versions))

        def by_karat() -> float:
            took = bench.run("first-load", world)
            bench.check(world, "thing")
            return took

        return {"karat": by_karat, "by hand": lambda: peers.first_load(world, world.by_hand, files)}

    found = bench.compare("first-load", prepare)
    bench.room("first")
    return [Row(f"first load of {keys * versions:,} statements", found["karat"], found["by hand"], 2.0, "by hand")]


def _against_merge(bench: Bench, case: str, rows: int, mix: Mix) -> dict[str, float]:
    base = bench.base()
    by_hand = base.by_hand

    def prepare() -> Mapping[str, Act]:
        files = [base.deliver(rows, mix)]
        return {
            "karat": lambda: bench.run(case, base),
            "MERGE": lambda: peers.scd2_merge(base, by_hand / "scd2", files),
            "upsert": lambda: peers.upsert(base, by_hand / "upsert", files),
        }

    found = bench.compare(case, prepare)
    _done(bench, base)
    return found


def _done(bench: Bench, *worlds: World) -> None:
    for world in worlds:
        world.forget_files()
        bench.check(world, "thing")
    bench.remember()


def _tell_snapshots_and_truncate(world: World) -> None:
    """Ten days of snapshots of a few keys and a truncate after them, all before the first version of anything."""
    thing = world.folder / "thing.json"
    declared = json.loads(thing.read_text(encoding="utf-8"))
    thing.write_text(json.dumps({**declared, "feeds": [CHANGES, SNAPSHOTS]}), encoding="utf-8")
    (world.folder / "data" / "extract").mkdir(parents=True)
    for day in range(1, 11):
        write_snapshot(world, day, range(max(1, world.keys // 100)), 0.02, FIRST - timedelta(days=20))
    truncate = json.dumps({"op": "t", "at": (FIRST - timedelta(days=5)).isoformat()})
    Path(world.folder / "data" / "core" / "truncate.ndjson").write_text(truncate + "\n", encoding="utf-8")


CASES: Final[Mapping[str, Case]] = MappingProxyType(
    {
        "in-order": in_order,
        "half-late": half_late,
        "swept": swept,
        "large": large,
        "tenfold": tenfold,
        "snapshots": snapshots,
        "small": small,
        "curation": curation,
        "belief": belief,
        "first-load": first_load,
    }
)
