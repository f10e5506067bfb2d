"""Two processes on one project: each batch is committed once, whoever is killed, and the tables are those of an undisturbed project.

`KARAT_ROUNDS` sets how many rounds are played (2), `KARAT_SEED` which ones:

    KARAT_ROUNDS=20 pytest tests/flows/concurrency
"""

import os
import random
import shutil
import signal
import time
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat import Project
from karat.reference import EntitySchema, timeline
from tests.support.beliefs import RULES, declare
from tests.support.entities import drop, entity_project
from tests.support.processes import Started, karat, script, succeeds, wait_until
from tests.support.projects import commits
from tests.support.sessions import SMALL
from tests.support.tables import differences, table_rows, view
from tests.support.worlds import TYPES, UNTRACKED, Batch, batches, delivered, entity, feed, mixed, on_record

SEED = int(os.environ.get("KARAT_SEED", "20261120"))
EVIDENCE = "bronze.customer_assertions"
ROUNDS = int(os.environ.get("KARAT_ROUNDS", "2"))
KEYS = 40
ENTITY = entity(
    "customer",
    [feed("crm", "mixed"), feed("core", "mixed"), feed("kyc", "mixed", absence_means="deleted")],
    late_partials="propagate",  # then the tables do not depend on how the news was cut into batches
)
GROUPS = {
    "name": {"attributes": ["name"], "by": "precedence", "sources": {"CORE": 2, "CRM": 1, "KYC": 1}},
    "rest": {"attributes": ["amount", "note"], "by": "recency", "sources": ["CRM", "CORE", "KYC"]},
}
BELIEF = [{**RULES[0], "groups": GROUPS, "delete": {"sources": ["CORE", "KYC"]}}]
RUN_AND_ARRIVAL = ("batch_seq", "ingest_ts", "ingest_run_id", "source_path", "record_hash", "first_seen_ts", "last_seen_ts", "inherited")
"""What names the run, or the arrival, that brought a statement."""
TABLES = {
    # the evidence keeps a partial statement as it was made whole on arrival, which depends on the batches before
    EVIDENCE: (*RUN_AND_ARRIVAL, "attr_hash", *TYPES, "copies"),
    "bronze.customer": (*RUN_AND_ARRIVAL, "source_file"),
    "silver.customer": ("because", "because_hash"),
    "silver.customer_history": ("because", "because_hash"),
    "silver.customer_conflicts": ("says", "because", "record_hash"),
}
PAUSED_AT = (EVIDENCE, "bronze.customer", "silver.customer_history", "silver.customer")


@pytest.fixture(scope="module")
def news() -> list[Batch]:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(SEED)  # noqa: S311  (histories, not secrets)
    return batches(dice, mixed(dice, KEYS), 2 * ROUNDS + 1, "mixed")


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, news: list[Batch]) -> Path:
    """A project that has heard the first batch."""
    folder = _project(tmp_path_factory.mktemp("begun") / "project")
    _deliver(folder, news[0])
    assert Project.open(folder, spark).run().ok
    return folder


@pytest.fixture(scope="module")
def starts(begun: Path, spark: SparkSession, news: list[Batch]) -> tuple[Path, Path]:
    """The project that has begun; and after it has heard two more batches, one after the other."""
    folder = Path(shutil.copytree(begun, begun.with_name("undisturbed")))
    for batch in news[1:3]:
        _deliver(folder, batch)
        assert Project.open(folder, spark).run().ok
    return begun, folder


def test_each_commit_is_made_once_whoever_is_killed(begun: Path, spark: SparkSession, tmp_path: Path, news: list[Batch]) -> None:
    dice = random.Random(f"{SEED} kills")  # noqa: S311
    folder = Path(shutil.copytree(begun, tmp_path / "project"))
    for number in range(ROUNDS):
        _round(folder, news[2 * number + 1 : 2 * number + 3], dice)
        _each_commit_once(folder)
    succeeds(folder, "run")
    _each_commit_once(folder)
    evidence = table_rows(folder, EVIDENCE)
    assert on_record(evidence) == delivered(news)
    assert differences(table_rows(folder, "bronze.customer"), timeline(evidence, _schema()), {"sk"}) == []
    succeeds(folder, "verify")
    at_once = _project(tmp_path / "at_once")
    for batch in news:
        _deliver(at_once, batch)
    assert Project.open(at_once, spark).run().ok
    _are_equal(folder, at_once)


@pytest.mark.parametrize("table", PAUSED_AT)
def test_a_run_that_pauses_while_another_passes_starts_again_from_what_is_there(
    starts: tuple[Path, Path], spark: SparkSession, tmp_path: Path, news: list[Batch], table: str
) -> None:
    begun, undisturbed = starts
    folder = Path(shutil.copytree(begun, tmp_path / "project"))
    _deliver(folder, news[1])
    with script(folder, "tests.support.paused_run", table) as paused:
        wait_until((folder / "paused").exists, paused)
        _deliver(folder, news[2])
        assert Project.open(folder, spark).run(now=datetime.now(UTC)).ok
        (folder / "go").touch()
        assert paused.ended() == 0, paused.said()
    _each_commit_once(folder)
    assert on_record(table_rows(folder, EVIDENCE)) == delivered(news[:3])
    project = Project.open(folder, spark)
    assert project.run().ok
    for name in ("customer", "silver.customer"):
        found = project.verify(name)
        assert found.equal, (found.counts, found.differences)
    _are_equal(folder, undisturbed)


def _round(folder: Path, news: list[Batch], dice: random.Random) -> None:
    """Two runs at once, each started after news of its own; one of them is killed somewhere between its start and its end."""
    with ExitStack() as at_work:
        started = []
        for batch in news:
            _deliver(folder, batch)
            started.append(at_work.enter_context(karat(folder, "run")))
            time.sleep(dice.uniform(0, 6))
        victim, survivor = dice.sample(started, 2)
        _kill_in_the_middle(victim, folder, dice)
        assert survivor.ended() == 0, survivor.said()
        assert victim.ended() in {0, -signal.SIGKILL}, victim.said()


def _kill_in_the_middle(victim: Started, folder: Path, dice: random.Random) -> None:
    """Kill it once the lake has moved a few times, or it has ended by then."""
    before, moves, moment = _moves(folder), dice.randint(0, 7), dice.uniform(0, 1)
    end = time.monotonic() + 90
    while victim.process.poll() is None and time.monotonic() < end and _moves(folder) < before + moves:
        time.sleep(0.02)
    time.sleep(moment if moves else 6 * moment)
    victim.kill()


def _moves(folder: Path) -> int:
    return sum(1 for _ in (folder / "lake").glob("*/*/_delta_log/*.json"))


def _each_commit_once(folder: Path) -> None:
    """No number of a stage was used twice, no file was read twice, and the numbers of batches have no gap."""
    for table in (*TABLES, "silver.customer_restatements"):
        numbers = Counter((commit["stage"], commit["sequence"]) for commit in commits(folder, table))
        assert set(numbers.values()) == {1}, (table, numbers)
    evidence = table_rows(folder, EVIDENCE)
    batch_of_file = {(row["feed"], row["source_file"], row["batch_seq"], row["ingest_run_id"]) for row in evidence if row["op"] != "absent"}
    assert len({each[:2] for each in batch_of_file}) == len(batch_of_file)
    numbers_of_batches = sorted({each[2] for each in batch_of_file})
    assert numbers_of_batches == list(range(1, len(numbers_of_batches) + 1))


def _are_equal(folder: Path, undisturbed: Path) -> None:
    for table, without in TABLES.items():
        # that a snapshot was complete is on record once a batch, and how many batches its files came in is chance
        said = "op IS NULL OR op <> 'absent'" if table == EVIDENCE else "1 = 1"
        found, expected = view(folder, table, without, said), view(undisturbed, table, without, said)
        assert found == expected, (table, sorted((found - expected).items())[:5], sorted((expected - found).items())[:5])


def _project(folder: Path) -> Path:
    entity_project(folder, ENTITY, karat={"spark": {**SMALL, "master": "local[1]"}})
    declare(folder, BELIEF)
    return folder


def _deliver(folder: Path, batch: Batch) -> None:
    """The files of a batch, each appearing whole."""
    for file, messages in batch.items():
        hidden = drop(folder, f"{Path(file).parent}/.{Path(file).name}", messages)
        hidden.rename(hidden.with_name(Path(file).name))


def _schema() -> EntitySchema:
    return EntitySchema(("id",), tuple(TYPES), TYPES, frozenset(UNTRACKED), "state", "propagate")
