"""A cluster whose executors are processes of their own gives the tables that local mode gives, even when one of them dies at work."""

import json
import os
import random
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from karat import Project
from tests.support.cluster_run import deliver, deliveries, evening
from tests.support.entities import CUSTOMER, entity_project
from tests.support.processes import ROOT, Started, script, wait_until
from tests.support.sessions import FEW_ROWS, SMALL
from tests.support.tables import view

pytestmark = pytest.mark.cluster

CLUSTER = "local-cluster[2,1,1024]"
ROWS, KEYS = 20_000, 4_000
RUN = ("ingest_run_id", "source_path", "record_hash", "inherited")
"""What names the run, or the folder of the project."""
EVIDENCE, TIMELINE = "bronze.customer_assertions", "bronze.customer"
BIG: Mapping[str, Sequence[str]] = {EVIDENCE: RUN, TIMELINE: RUN}
BELIEF = ("because", "because_hash", "run_id", "quarantine_id", "record_hash", "restated_at")
BANK: Mapping[str, Sequence[str]] = {
    **BIG,
    "bronze.customer_quarantine": (*RUN, "quarantine_id"),
    "bronze.payment_assertions": RUN,
    "bronze.payment": (*RUN, "corrects"),
    "bronze.payment_quarantine": (*RUN, "quarantine_id"),
    "silver.customer": BELIEF,
    "silver.customer_history": BELIEF,
    "silver.customer_conflicts": (*BELIEF, "says"),
}


def test_the_bank_example_gives_the_same_tables_on_a_cluster(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("local", "cluster"):
        shutil.copytree(ROOT / "examples" / "bank", tmp_path / name, ignore=shutil.ignore_patterns("data", "lake", ".karat", "*.py"))
        settings = tmp_path / name / "karat.yml"
        declared = yaml.safe_load(settings.read_text(encoding="utf-8"))
        settings.write_text(yaml.safe_dump({**declared, "spark": {**declared["spark"], "conf": FEW_ROWS}}), encoding="utf-8")
    with script(tmp_path / "cluster", "tests.support.cluster_run", CLUSTER) as started:
        _run_here(tmp_path / "local", spark)
        assert started.ended() == 0, started.said()
        assert "all is well" in started.said()
    _are_equal(tmp_path / "cluster", tmp_path / "local", BANK)
    project = Project.open(tmp_path / "local", spark)
    for name in ("customer", "payment", "silver.customer"):
        found = project.verify(name)
        assert found.equal, found.differences


def test_20_000_rows_give_the_same_tables_although_executors_are_killed(spark: SparkSession, tmp_path: Path) -> None:
    folder, local = _big(tmp_path / "cluster"), _big(tmp_path / "local")
    with script(folder, "tests.support.cluster_run", CLUSTER) as started:
        killed = [_executor_killed(started, folder, table, commits) for table, commits in ((EVIDENCE, 1), (EVIDENCE, 2), (TIMELINE, 2))]
        assert len(set(killed)) == len(killed)
        assert started.ended() == 0, started.said()
    _run_here(local, spark)
    _are_equal(folder, local, BIG)
    found = Project.open(folder, spark).verify("customer")
    assert found.equal, found.differences


def _executor_killed(started: Started, folder: Path, table: str, commits: int) -> int:
    """The executor killed once a table has that many commits."""
    log = folder / "lake" / table.replace(".", "/") / "_delta_log"
    wait_until(lambda: sum(1 for _ in log.glob("*.json")) >= commits and bool(_executors(started)), started)
    victim = max(_executors(started))
    os.kill(victim, signal.SIGKILL)
    return victim


def _executors(started: Started) -> list[int]:
    """The executors of this process's cluster: those in its own group."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_executor = b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes()
            if is_executor and os.getpgid(int(process.name)) == started.process.pid:
                found.append(int(process.name))
        except (OSError, ProcessLookupError):
            continue  # it has ended meanwhile
    return found


def _run_here(folder: Path, spark: SparkSession) -> None:
    project = Project.open(folder, spark)
    for number, delivery in enumerate(deliveries(folder)):
        deliver(folder, delivery)
        report = project.run(now=evening(number))
        assert report.ok, [stage.error for stage in report.stages]


def _are_equal(folder: Path, local: Path, tables: Mapping[str, Sequence[str]]) -> None:
    for table, without in tables.items():
        found, expected = view(folder, table, without), view(local, table, without)
        assert expected, table
        assert found == expected, (table, sorted((found - expected).items())[:5], sorted((expected - found).items())[:5])


def _big(folder: Path) -> Path:
    """A project of customers with two deliveries of many rows."""
    entity_project(folder, CUSTOMER, karat={"spark": {**SMALL, "master": "${var:master}"}, "vars": {"master": "local[2]"}})
    dice = random.Random(20260301)  # noqa: S311  (histories, not secrets)
    for delivery, days in enumerate(((1, 14), (10, 28))):
        for source in ("crm", "core"):
            path = folder / "deliveries" / f"day{delivery}" / source / f"{delivery}.ndjson"
            path.parent.mkdir(parents=True)
            path.write_text("".join(_line(dice, days) for _ in range(ROWS // 2)), encoding="utf-8")
    return folder


def _line(dice: random.Random, days: tuple[int, int]) -> str:
    key, op = dice.randrange(KEYS), dice.choices(["c", "u", "d"], [2, 6, 1])[0]
    said: dict[str, Any] = {"name": f"name {dice.randrange(9)}", "address": f"street {dice.randrange(99)}", "status": "Active"}
    words = {} if op == "d" else said if op == "c" else {name: said[name] for name in dice.sample(sorted(said), 2)}
    time = f"2026-03-{dice.randint(*days):02d} {dice.randrange(24):02d}:00:00"
    return json.dumps({"customer_id": f"k{key}", "op": op, "source_event_ts": time, **words}) + "\n"
