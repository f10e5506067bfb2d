"""The difference between the versions that should be and those that are held: only it is written."""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.shape import timeline_schema
from karat.bronze.terms import Terms
from karat.temporal.columns import (
    ACT,
    EFFECTIVE_FROM,
    FIRST_SEEN,
    INHERITED,
    IS_SOURCE_CURRENT,
    LAST_EVENT_TS,
    LAST_SEEN,
    SEEN_COUNT,
    SK,
    STATEMENT_HASH,
    col,
)

IDENTITY = (SK, STATEMENT_HASH, EFFECTIVE_FROM)
"""What tells one version from another: the statement that opened it, and where it begins."""
SIGHTINGS = frozenset({FIRST_SEEN, LAST_SEEN, SEEN_COUNT, LAST_EVENT_TS})
WAS_LIVE = "__karat_was_live"
"""Working: whether the held version an act is about is among its source's live ones."""


def differences(fresh: DataFrame, held: DataFrame, terms: Terms, *, lazy: bool = False) -> DataFrame:
    """The acts that turn the held versions into the fresh ones. Grain: one row per version that differs.

    With `lazy`, a version that was merely seen again does not differ.
    """
    names = timeline_schema(terms).names
    compared = [name for name in names if name not in IDENTITY and not (lazy and name in SIGHTINGS)]
    same = [F.col(f"new.{name}") == F.col(f"old.{name}") for name in IDENTITY]
    joined = fresh.alias("new").join(held.alias("old"), on=same[0] & same[1] & same[2], how="full_outer")
    is_new, is_gone = F.col(f"old.{SK}").isNull(), F.col(f"new.{SK}").isNull()
    act = F.when(is_new, "insert").when(is_gone, "delete").when(_differs(compared), "update")
    values = [F.when(is_gone, col(name, "old")).otherwise(col(name, "new")).alias(name) for name in names]
    return joined.select(act.alias(ACT), F.coalesce(F.col(f"old.{IS_SOURCE_CURRENT}"), F.lit(True)).alias(WAS_LIVE), *values).where(
        F.col(ACT).isNotNull()
    )


def _differs(names: Iterable[str]) -> Column:
    differs = F.lit(False)
    for name in names:
        old, new = col(name, "old"), col(name, "new")
        if name == INHERITED:  # maps cannot be compared, their sorted entries can
            old, new = F.array_sort(F.map_entries(old)), F.array_sort(F.map_entries(new))
        differs = differs | ~old.eqNullSafe(new)
    return differs
