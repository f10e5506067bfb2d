"""A batch and the held versions near it looked over in one go, before anything is decided."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.continuation import SAID_OF_IT, WOKEN, is_tangled, still_matters
from karat.bronze.standing import speaks_since
from karat.execute.pace import interpreted
from karat.temporal.columns import COPIES, SK
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros

FOREVER = -(2**63)
"""In the place of a time: as far back as anything was said."""


@dataclass(frozen=True)
class Survey:
    """What was seen."""

    copies: int
    """Rows of the batch that say what another one says."""
    count: int
    """How many of its statements count."""
    some_tangled: bool
    """Whether any key's evidence must be asked."""
    tangled: tuple[bytes, ...] | None
    """Those keys by `sk`, where the batch is so small that they could be named."""
    heard_from: Callable[[], datetime | None]
    """Nothing said of a time before this can be heard about these keys from the batch's first on; None: everything may be.

    Found out when somebody asks."""


def surveyed(near: DataFrame, span: DataFrame, terms: EntitySchema, since: datetime | None, *, few: bool) -> Survey:
    """The spans of a batch's keys and, beside theirs, the versions near them; all that end at or after `since`, if they tell at all.

    With `few`, keys may be named.
    """
    matters = F.lit(True) if terms.is_transaction else still_matters()
    first = F.lit(FOREVER) if since is None else _speaks_since(terms, since)
    of_each = near.groupBy(SK).agg(F.max(matters & is_tangled(terms)).alias("asked"), F.min(first).alias("first"))
    # few on both sides: a merge join is a stage, a broadcast would be a job
    is_asked = F.coalesce("asked", WOKEN)
    found = span.join(of_each.hint("merge"), SK, "left").agg(
        F.sum(COPIES).alias("copies"),
        F.sum(SAID_OF_IT).alias("count"),
        F.max(is_asked).alias("asked"),
        (F.collect_set(F.when(is_asked, F.col(SK))) if few else F.lit(None).cast("array<binary>")).alias("tangled"),
        F.min("first").alias("first"),
    )
    row = found.collect()[0]
    tangled = None if row["tangled"] is None else tuple(map(bytes, row["tangled"]))
    return Survey(row["copies"] or 0, row["count"] or 0, bool(row["asked"]), tangled, partial(_bound, row["first"], since))


def heard_from(near: DataFrame, terms: EntitySchema, since: datetime) -> datetime | None:
    """Before when nothing can be heard from a time on about keys whose versions that end at or after it are these; None: everything may."""
    with interpreted(near.sparkSession):
        return _bound(near.agg(F.min(_speaks_since(terms, since))).collect()[0][0], since)


def _speaks_since(terms: EntitySchema, since: datetime) -> Column:
    return F.coalesce(F.unix_micros(speaks_since(terms, since)), F.lit(FOREVER))


def _bound(first: int | None, since: datetime | None) -> datetime | None:
    if since is None or first == FOREVER:
        return None
    return since if first is None else min(from_micros(first), since)
