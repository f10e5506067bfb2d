"""The difference between the versions that should be and those that are held: only it is written."""

from collections.abc import Iterable

from pyspark.sql import DataFrame
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
    quoted,
)
from karat.temporal.sql import Sql

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
    same = [F.expr(f"new.{name} = old.{name}") for name in IDENTITY]
    joined = fresh.alias("new").join(held.alias("old"), on=same[0] & same[1] & same[2], how="full_outer")
    act = f"CASE WHEN old.{SK} IS NULL THEN 'insert' WHEN new.{SK} IS NULL THEN 'delete' WHEN {_differs(compared)} THEN 'update' END"
    values = [f"if(new.{SK} IS NULL, old.{quoted(name)}, new.{quoted(name)}) AS {quoted(name)}" for name in names]
    was_live = f"coalesce(old.{IS_SOURCE_CURRENT}, true) AS {WAS_LIVE}"
    return joined.selectExpr(f"{act} AS {ACT}", was_live, *values).where(F.col(ACT).isNotNull())


def _differs(names: Iterable[str]) -> Sql:
    """Side by side as two structs; maps cannot be compared, their sorted entries can."""
    compared = tuple(names)
    sides = [", ".join(_comparable(f"{side}.{quoted(name)}", name) for name in compared) for side in ("old", "new")]
    return f"NOT (struct({sides[0]}) <=> struct({sides[1]}))"


def _comparable(value: Sql, name: str) -> Sql:
    return f"array_sort(map_entries({value}))" if name == INHERITED else value
