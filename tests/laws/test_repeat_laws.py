"""Copies of what is on record: what follows from them by the versions they opened or joined is what the reference makes of all evidence.

Entities about which some statements come once more, from files of higher and of lower names, by clocks that run on and behind, after
others have spoken of the past. `KARAT_SEED` plays another world.
"""

import os
import random
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.bronze.continuation import Past
from karat.bronze.repeats import BESIDE, VERSION, beside_absorbing, beside_versions, filled, is_filled, seen_again
from karat.reference import EntitySchema as ReferenceTerms
from karat.reference import reconstruct
from karat.reference import timeline as reference_timeline
from karat.temporal.columns import ACTION
from tests.support.histories import (
    TYPES,
    Row,
    arrived,
    as_frame,
    as_rows,
    as_versions,
    differences,
    random_statements,
    reference_terms,
    spark_terms,
    statement,
)

SEED = int(os.environ.get("KARAT_SEED", "20260308"))
ENTITIES, RUNS, MANY, FEW = 400, 3, 30, 5
WORLDS = ("one source", "three sources", "three sources, propagate", "three sources, transaction")


@pytest.mark.parametrize("world", WORLDS)
def test_what_copies_come_to_is_told_by_the_versions_they_opened_or_joined(spark: SparkSession, tmp_path: Path, world: str) -> None:
    print(f"KARAT_SEED={SEED}")
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    sources = ("CRM",) if "one" in world else ("CRM", "CORE", "KYC")
    kind = {"propagate": "propagate" in world, "transaction": "transaction" in world}
    terms, ours = reference_terms(**kind), spark_terms(**kind, sources=sources)
    held, behind = _landed(_runs(dice, sources), terms)
    copies = _again(dice, held)
    expected = {row["record_hash"]: row for row in reconstruct(held, copies, terms)}
    past = Past(behind=behind)
    versions = [dict(row) for row in reference_timeline(held, terms)]
    shown = as_versions(spark, versions, ours, tmp_path)
    known = beside_versions(as_frame(spark, copies, ours, tmp_path), shown, past, ours).localCheckpoint()
    by_opening = _told(known)
    if not kind["transaction"]:
        opened = F.col(VERSION).isNotNull()
        joined = beside_absorbing(known.where(~opened).drop(*BESIDE), as_frame(spark, held, ours, tmp_path), shown, past, ours)
        known = known.where(opened).unionByName(joined).localCheckpoint()
        assert known.count() == len(copies)
    told = _told(known)
    mere = known.where(F.col("bk").isin(*told))
    _same_versions((versions, as_rows(seen_again(mere, ours))), (held, expected), told, terms)
    landing = as_rows(filled(mere.where(is_filled(ours)), ours))
    for row in landing:
        wanted = expected[row["record_hash"]]
        assert [row[name] for name in (*TYPES, "inherited")] == [wanted[name] for name in (*TYPES, "inherited")], row
        assert row["attr_hash"] == wanted["attr_hash"] or not row["inherited"]
    others, inherited = {row["bk"] for row in copies} - told, sum(bool(row["inherited"]) for row in landing)
    print(f"{len(told)} keys told, {len(told - by_opening)} of them by what absorbed them, {len(others)} not")
    print(f"{len(landing)} rows of {len(copies)} filled, {inherited} of them with inherited words")
    assert min(len(told), len(others)) > MANY
    assert inherited > FEW
    assert kind["transaction"] or len(told - by_opening) > FEW


FIRST = {"name": "Ann", "amount": 1, "note": "n"}
UNTOLD = {
    "another source has spoken of a time before it": [("CRM", 5, "partial", {"name": "Bea"}), ("CORE", 3, "full", FIRST)],
    "its version has absorbed another statement": [
        ("CRM", 1, "full", FIRST),
        ("CRM", 5, "partial", {"name": "Bea"}),
        ("CRM", 6, "partial", {"name": "Bea", "amount": 1}),
    ],
    "its source has come back to the past": [
        ("CRM", 1, "full", FIRST),
        ("CRM", 5, "partial", {"name": "Bea"}),
        ("CRM", 3, "partial", {"amount": 2}),
    ],
}


@pytest.mark.parametrize("case", UNTOLD)
def test_what_a_copy_hears_is_not_told_by_its_version_when(spark: SparkSession, tmp_path: Path, case: str) -> None:
    dice, terms, ours = random.Random(SEED), reference_terms(propagate=False), spark_terms(propagate=False)  # noqa: S311
    runs = [[arrived(statement("a", (source, day), *rest, dice), run, "f.json")] for run, (source, day, *rest) in enumerate(UNTOLD[case])]
    held, behind = _landed(runs, terms)
    partial = next(row for row in held if row["name"] == "Bea")
    copy = arrived({**partial, "amount": None, "note": None, "inherited": {}}, RUNS, "g.json")
    frames = as_frame(spark, [copy], ours, tmp_path), as_versions(spark, list(map(dict, reference_timeline(held, terms))), ours, tmp_path)
    known = beside_versions(*frames, Past(behind=behind), ours)
    assert [tuple(row) for row in known.select(F.col(VERSION).isNotNull(), is_filled(ours)).collect()] == [(True, False)]


def _told(known: DataFrame) -> set[str]:
    """The keys all of whose statements are mere copies."""
    keys = known.groupBy("bk").agg(F.min(F.col(VERSION).isNotNull()).alias("told")).where("told")
    return {row["bk"] for row in keys.collect()}


def _same_versions(
    found: tuple[list[Row], list[Row]], both: tuple[list[Row], dict[bytes, Row]], told: set[str], terms: ReferenceTerms
) -> None:
    """The held versions after the acts, and the versions of all evidence, of those who are told."""
    versions, acts = found
    held, expected = both
    assert {row[ACTION] for row in acts} == {"update"}
    changed = {(row["sk"], row["statement_hash"]): {name: value for name, value in row.items() if "__karat" not in name} for row in acts}
    after = [changed.get((row["sk"], row["statement_hash"]), row) for row in versions if row["bk"] in told]
    wanted = [row for row in reference_timeline([*held, *map(dict, expected.values())], terms) if row["bk"] in told]
    assert differences(after, wanted) == []


def _runs(dice: random.Random, sources: tuple[str, ...]) -> list[list[Row]]:
    """Mostly in turn; a snapshot shows its rows at their own time."""
    runs: list[list[Row]] = [[] for _ in range(RUNS)]
    for number in range(ENTITIES):
        said = sorted(random_statements(dice, f"e{number}", sources), key=lambda row: row["source_event_ts"])[:5]
        for place, row in enumerate(said):
            shown = {**row, "snapshot_ts": row["snapshot_ts"] and row["source_event_ts"]}
            run = dice.randrange(RUNS) if dice.random() < 0.1 else RUNS * place // len(said)
            runs[run].append(arrived(shown, run, f"f{dice.randrange(3)}.json", dice.choice([1] * 9 + [2])))
    return runs


def _landed(runs: list[list[Row]], terms: ReferenceTerms) -> tuple[list[Row], dict[str, datetime]]:
    """The evidence of all runs, and what had arrived when each source last spoke of a time it had reached before."""
    held: list[Row] = []
    behind: dict[str, datetime] = {}
    for arriving in runs:
        reached = {source: max(row["source_event_ts"] for row in held if row["source_system"] == source) for source in _speakers(held)}
        for row in arriving:
            if row["source_event_ts"] <= reached.get(row["source_system"], row["source_event_ts"]) and row["source_system"] in reached:
                behind[row["source_system"]] = max(before["ingest_ts"] for before in held)
        held += [dict(row) for row in reconstruct(held, arriving, terms)]
    return held, behind


def _speakers(rows: list[Row]) -> set[str]:
    return {row["source_system"] for row in rows}


def _again(dice: random.Random, held: list[Row]) -> list[Row]:
    """Some of what was said about some entities, mostly of late, once more."""
    chosen = {row["bk"] for row in held if dice.random() < 0.4}
    copies: dict[bytes, Row] = {}
    for row in held:
        if row["bk"] in chosen and dice.random() < (0.8 if row["batch_seq"] == RUNS - 1 else 0.1):
            said = {**row, **{name: row[name] if name in row["asserted_columns"] else None for name in TYPES}, "inherited": {}}
            run = -1 if dice.random() < 0.05 else RUNS
            copy = arrived(said, run, f"{dice.choice('agggggg')}.json", dice.choice([1, 1, 2]))
            copies.setdefault(copy["record_hash"], copy)
    return list(copies.values())
