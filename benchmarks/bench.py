"""What every case works with: sizes, rounds, the table all of them share, and how two ways of doing the same are compared."""

import json
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.peers import current_rows
from benchmarks.worlds import TIMELINE, World, entity_world, load_history

Act = Callable[[], float]
"""Does one round's work and returns the seconds it took."""


@dataclass(frozen=True)
class Size:
    """How large the shared table and its batches are."""

    keys: int = 1_000_000
    versions: int = 5
    rows: int = 100_000

    def scaled(self, scale: float, rows: int | None = None) -> "Size":
        """The same proportions at another scale; `rows` sets the batch by itself."""
        return Size(max(1, int(self.keys * scale)), self.versions, rows or max(1, int(self.rows * scale)))


@dataclass(frozen=True)
class Row:
    """One line of the table: a case, what was asked of it, and what was measured."""

    case: str
    karat: float
    peer: float
    bound: float | None = None
    """The largest ratio that is good enough; None: only told."""
    against: str = "MERGE"

    @property
    def ratio(self) -> float:
        """Karat's time as a multiple of the peer's."""
        return self.karat / self.peer

    @property
    def verdict(self) -> str:
        """Whether the bound holds."""
        return "" if self.bound is None else "met" if self.ratio <= self.bound else "missed"


@dataclass(frozen=True)
class Window:
    """When a run of Karat happened, for the jobs in it."""

    case: str
    began: float
    ended: float


@dataclass
class Bench:
    """One run of the benchmarks in one Spark session, below one folder."""

    spark: SparkSession
    folder: Path
    size: Size = field(default_factory=Size)
    rounds: int = 3
    warm_up: int = 1
    days: int = 10
    """The day of snapshots that is compared with the second."""
    verify: bool = False
    """Whether every table is compared with a rebuild from its evidence once its case is over."""
    windows: list[Window] = field(default_factory=list)
    _base: World | None = None

    def base(self) -> World:
        """The shared world, built through Karat once; with equal tables for the work by hand."""
        if self._base is None:
            folder, size = self.folder / "base", (self.size.keys, self.size.versions)
            world = entity_world(self.spark, folder, size)
            clock = world.by_hand / "clock.json"
            if clock.exists():
                world.hours = json.loads(clock.read_text(encoding="utf-8"))
            else:
                took = load_history(world)
                print(f"loaded {size[0] * size[1]:,} versions in {took:.0f} s", flush=True)
                shutil.copytree(world.table(TIMELINE), world.by_hand / "scd2")
                current_rows(world, world.by_hand / "upsert")
            self._base = world
            self.remember()
        return self._base

    def remember(self) -> None:
        """Notes how far the shared world is, so that a later run may start from it."""
        if self._base is not None:
            (self._base.by_hand / "clock.json").write_text(json.dumps(self._base.hours), encoding="utf-8")

    def room(self, name: str) -> Path:
        """An empty folder for a case, and for its work by hand."""
        for folder in (self.folder / f"{name}_by_hand", self.folder / name):
            shutil.rmtree(folder, ignore_errors=True)
        return folder

    def run(self, case: str, world: World) -> float:
        """One run of Karat, and when it was."""
        began = time.time()
        took = world.run()
        self.windows.append(Window(case, began, time.time()))
        return took

    def compare(self, case: str, prepare: Callable[[], Mapping[str, Act]]) -> dict[str, float]:
        """The medians of several ways to do the same, in turns, over as many rounds; the first rounds only warm up."""
        found: list[dict[str, float]] = []
        for number in range(self.warm_up + self.rounds):
            acts = list(prepare().items())
            if number % 2:
                acts.reverse()
            times = {name: act() for name, act in acts}
            print(f"  {case}: " + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in sorted(times.items())), flush=True)
            found.append(times)
        measured = found[self.warm_up :]
        return {name: statistics.median(times[name] for times in measured) for name in measured[0]}

    def check(self, world: World, *names: str) -> None:
        """Ends the benchmark where a table is not what a rebuild from its evidence gives."""
        for name in names if self.verify else ():
            verified = world.project.verify(name)
            if not verified.equal:
                message = f"{name} differs from its rebuild: {verified}"
                raise SystemExit(message)
