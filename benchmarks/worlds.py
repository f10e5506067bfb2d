"""Worlds to measure in: a project, the files it reads, and runs over them.

Every key has eight attributes and a version a month, stated by one source. A batch is a file of JSON messages about
random keys; a share of them may be late by one to thirty days, partial, or deletes. The same seed gives the same files.
"""

import json
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from karat.project import Report, StageReport

ATTRIBUTES = tuple(f"attribute_{number}" for number in range(1, 9))
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
STEP = timedelta(days=30)
"""Between two versions of a key."""
TIMELINE, BELIEF, CURATED = "bronze.thing", "silver.thing", "silver.curated"
_MESSAGES_A_FILE = 250_000

CHANGES = {
    "name": "core",
    "source_system": "CORE",
    "precedence_rank": 1,
    "from": {"kind": "files", "path": "data/core/*.ndjson", "format": "json"},
    "load_type": "PARTIAL",
    "event_time": "at",
    "op": "op",
}
SNAPSHOTS = {
    "name": "extract",
    "source_system": "CORE",
    "precedence_rank": 1,
    "from": {"kind": "files", "path": "data/extract/*.ndjson", "format": "json"},
    "load_type": "FULL",
    "event_time": "at",
    "snapshot_of": "day",
    "absence_means": "deleted",
}
BELIEVED = {
    "kind": "belief",
    "name": "thing",
    "entity": "thing",
    "rules": [
        {
            "version": 1,
            "in_force_from": "2026-01-01",
            "groups": {"all": {"attributes": list(ATTRIBUTES), "by": "recency", "sources": ["CORE"]}},
            "delete": {"sources": ["CORE"], "by": "recency"},
        }
    ],
}
CURATION = {
    "kind": "curation",
    "tables": [
        {
            "source_table": "bronze.said",
            "target_table": CURATED,
            "scd_type": 2,
            "business_key_columns": ["thing_id"],
            "source_system_column": "source_system",
            "watermark_column": "ingestion_ts",
            "lookback_interval": "1 SECOND",
            "track_columns": list(ATTRIBUTES),
        }
    ],
}


@dataclass(frozen=True)
class Mix:
    """What a batch consists of, as shares of its rows."""

    late: float = 0.0
    partial: float = 0.10
    deletes: float = 0.05


@dataclass
class World:
    """A project in a folder of its own, with its lake and the clock of what its sources say."""

    spark: SparkSession
    folder: Path
    keys: int
    versions: int
    hours: int = 0
    """How many hours of batches lie behind it."""
    reports: list[Report] = field(default_factory=list)
    changed_on: dict[int, int] = field(default_factory=dict)
    """Of keys in snapshots: the day since which they say the same."""

    @property
    def project(self) -> Project:
        return Project.open(self.folder, spark=self.spark)

    @property
    def now(self) -> datetime:
        """Later than everything that was said so far."""
        return FIRST + STEP * (self.versions - 1) + timedelta(days=1, hours=self.hours)

    def table(self, name: str) -> Path:
        """Where a table of the lake is."""
        return self.folder / "lake" / name.replace(".", "/")

    @property
    def by_hand(self) -> Path:
        """Where the work by hand has its tables: not below the project, which would read their logs as declarations."""
        return self.folder.with_name(f"{self.folder.name}_by_hand")

    def copy(self, folder: Path) -> "World":
        """An equal world that goes its own way from here."""
        shutil.copytree(self.folder, folder)
        return World(self.spark, folder, self.keys, self.versions, self.hours)

    def run(self) -> float:
        """`project.run`, the whole of it. Returns the seconds it took; a failure ends the benchmark."""
        project = self.project
        began = time.monotonic()
        report = project.run()
        took = time.monotonic() - began
        if not report.ok:
            raise SystemExit("; ".join(f"{stage.name}: {stage.error}" for stage in report.stages if stage.error)) from next(
                (stage.failure for stage in report.stages if stage.failure), None
            )
        self.reports.append(report)
        return took

    def stage(self, name: str) -> StageReport:
        """How a stage of the last run ended."""
        return next(stage for stage in self.reports[-1].stages if stage.name == name)

    def deliver(self, rows: int, mix: Mix) -> Path:
        """The next batch: one message about each of `rows` random keys, or of all where there are fewer."""
        self.hours += 1
        lines = _batch(self, rows, mix, random.Random(self.hours))  # noqa: S311  (a batch, not a secret)
        return _written(self.folder / "data" / "core" / f"batch-{self.hours:03d}.ndjson", lines)

    def deliver_again(self, batch: Path) -> Path:
        """A batch of another world, for this one."""
        self.hours += 1
        return Path(shutil.copy(batch, self.folder / "data" / "core" / batch.name))

    def forget_files(self) -> None:
        """The files that were read already are removed, to spare the disk."""
        for path in (self.folder / "data").rglob("*.ndjson"):
            path.unlink()


def entity_world(
    spark: SparkSession,
    folder: Path,
    size: tuple[int, int],
    feeds: Sequence[Mapping[str, object]] = (CHANGES,),
    beliefs: Sequence[Mapping[str, object]] = (),
    **declared: object,
) -> World:
    """A project of one entity that has read nothing yet; `size`: keys, and versions of each."""
    entity = {"kind": "entity", "name": "thing", "key": ["thing_id"], "attributes": dict.fromkeys(ATTRIBUTES, "string")}
    _declare(folder, "thing", {**entity, "feeds": list(feeds), **declared})
    for belief in beliefs:
        _declare(folder, "belief", belief)
    for feed in feeds:
        (folder / "data" / ("core" if feed is CHANGES else "extract")).mkdir(parents=True, exist_ok=True)
    return World(spark, folder, *size)


def curation_world(spark: SparkSession, folder: Path, size: tuple[int, int]) -> World:
    """A project of one curated table that has read nothing yet."""
    _declare(folder, "curation", CURATION)
    return World(spark, folder, *size)


def load_history(world: World, versions_a_run: int = 1) -> float:
    """All versions of all keys, in as many runs as that takes. Returns the seconds of the runs."""
    took = 0.0
    for first in range(0, world.versions, versions_a_run):
        write_history(world, range(first, min(first + versions_a_run, world.versions)))
        took += world.run()
        world.forget_files()
    return took


def write_history(world: World, versions: range) -> list[Path]:
    """Full statements about every key, a step apart, as files."""
    size, paths = _MESSAGES_A_FILE, []
    for version in versions:
        at = (FIRST + STEP * version).isoformat()
        for number, first in enumerate(range(0, world.keys, size)):
            keys = range(first, min(first + size, world.keys))
            lines = (_message(key, "u", at, ATTRIBUTES, f"version {version}") for key in keys)
            paths.append(_written(world.folder / "data" / "core" / f"version-{version:03d}-{number:03d}.ndjson", lines))
    return paths


def write_snapshot(world: World, day: int, keys: range, changed: float, since: datetime) -> Path:
    """A complete snapshot of these keys on a day; a share of them says something else than the day before."""
    dice = random.Random(day)  # noqa: S311  (a snapshot, not a secret)
    at = (since + timedelta(days=day)).isoformat()
    new = set(dice.sample(keys, int(len(keys) * changed))) if day > 1 else set(keys)
    world.changed_on.update(dict.fromkeys(new, day))
    lines = (_message(key, None, at, ATTRIBUTES, f"day {world.changed_on[key]}", day=at) for key in keys)
    return _written(world.folder / "data" / "extract" / f"day-{day:03d}.ndjson", lines)


def _batch(world: World, rows: int, mix: Mix, dice: random.Random) -> Iterator[str]:
    now = world.now
    for key in dice.sample(range(world.keys), min(rows, world.keys)):
        at = now - timedelta(days=dice.uniform(1, 30)) if dice.random() < mix.late else now
        kind = dice.random()
        names: Sequence[str] = ATTRIBUTES
        if kind < mix.deletes:
            names = ()
        elif kind < mix.deletes + mix.partial:
            names = ATTRIBUTES[:2]
        yield _message(key, "u" if names else "d", at.isoformat(), names, f"batch {world.hours}")


def _message(key: int, op: str | None, at: str, names: Sequence[str], said: str, **more: str) -> str:
    values = {name: f"{name}-{key % 1000}-{said}" for name in names}
    return json.dumps({"thing_id": str(key), **({} if op is None else {"op": op}), "at": at, **more, **values}) + "\n"


def _written(path: Path, lines: Iterator[str]) -> Path:
    with path.open("w", encoding="utf-8") as out:
        out.writelines(lines)
    return path


def _declare(folder: Path, name: str, declaration: Mapping[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "karat.yml").write_text("project: bench\n", encoding="utf-8")
    (folder / f"{name}.json").write_text(json.dumps(declaration), encoding="utf-8")
