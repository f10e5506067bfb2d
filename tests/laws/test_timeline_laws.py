"""Spark's timeline against the reference, on random histories; many entities to a job. `KARAT_SEED` plays another world."""

import os
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from karat.bronze.timeline import timeline
from karat.reference import timeline as reference_timeline
from tests.support.histories import (
    as_frame,
    as_rows,
    differences,
    landed,
    random_runs,
    reference_terms,
    spark_terms,
    speaking,
)

SEED = int(os.environ.get("KARAT_SEED", "20260301"))
ENTITIES = 200
WORLDS = ("only about keys", "truncates too", "complete snapshots too", "one source, truncates too")
"""A statement of a source concerns every entity it speaks of, so each kind gets a world of its own."""


@pytest.mark.parametrize("propagate", [False, True], ids=["pinned", "propagate"])
@pytest.mark.parametrize("world", WORLDS)
def test_spark_and_the_reference_make_the_same_timeline(spark: SparkSession, tmp_path: Path, world: str, propagate: bool) -> None:  # noqa: FBT001
    print(f"KARAT_SEED={SEED}")
    terms = reference_terms(propagate=propagate)
    dice = random.Random(f"{SEED} {world}")  # noqa: S311  (histories, not secrets)
    held = landed(random_runs(dice, entities=ENTITIES, runs=6, world=world), terms)
    ours = spark_terms(propagate=propagate, sources=speaking(world))
    found = as_rows(timeline(as_frame(spark, held, ours, tmp_path), ours))
    assert differences(found, reference_timeline(held, terms)) == []
