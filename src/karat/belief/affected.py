"""Which entities new evidence is about, from which time on, and what of their evidence can still count then.

A statement about a single entity concerns that entity from its own time on. A source's statement about everything it has
concerns every entity that the source has a statement about by then, except those that the same snapshot shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.belief.candidates import FIRST_NEW
from karat.belief.relevance import relevant_since
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros

_SAYS_AT, _SAYS_OP, _SAYS_FEED, _SAYS_SNAPSHOT = "__karat_says_at", "__karat_says_op", "__karat_says_feed", "__karat_says_snapshot"
_BEFORE, _SHOWN = "__karat_before", "__karat_shown"
_SNAPSHOT: c.Names = (_SAYS_AT, _SAYS_OP, _SAYS_FEED, _SAYS_SNAPSHOT)


@dataclass(frozen=True)
class NewEvidence:
    """Evidence that a belief has not consumed yet, as far as one aggregate tells."""

    rows: int
    earliest: datetime | None
    """The first time any of it speaks of."""
    speaking_of_all: Sequence[str]
    """The sources that say something about everything they have."""


def new_evidence(new: DataFrame) -> NewEvidence:
    """The rows counted in one job that reads narrow columns only."""
    found = new.agg(
        F.count(F.lit(1)).alias("rows"),
        F.min(F.unix_micros(_first_time())).alias("earliest"),
        F.collect_set(F.when(F.col(c.BK).isNull(), F.col(c.SOURCE_SYSTEM))).alias("sources"),
    ).collect()[0]
    earliest = None if found["earliest"] is None else from_micros(found["earliest"])
    return NewEvidence(found["rows"], earliest, sorted(found["sources"]))


def affected_keys(new: DataFrame, assertions: DataFrame, speaking_of_all: Sequence[str]) -> DataFrame:
    """The entities that new evidence is about, and the first time it speaks of. Grain: one row per key."""
    about_keys = new.where(F.col(c.BK).isNotNull()).select(c.BK, _first_time().alias(FIRST_NEW))
    if speaking_of_all:
        about_keys = about_keys.unionByName(_in_source_level(new, assertions, speaking_of_all))
    return about_keys.groupBy(c.BK).agg(F.min(FIRST_NEW).alias(FIRST_NEW))


def relevant_evidence(assertions: DataFrame, keys: DataFrame | None, schema: EntitySchema) -> DataFrame:
    """Evidence that can still be a source's last word from each key's first new time on, and all about whole sources.

    Without keys, all evidence. Grain: as the evidence.
    """
    if keys is None:
        return assertions.withColumn(FIRST_NEW, F.lit(None).cast("timestamp"))
    about_keys = assertions.where(F.col(c.BK).isNotNull()).join(keys, c.BK, "inner")
    if not schema.is_transaction:
        about_keys = relevant_since(about_keys, schema, F.col(FIRST_NEW))
    about_sources = assertions.where(F.col(c.BK).isNull())
    return about_keys.unionByName(about_sources, allowMissingColumns=True)


def _in_source_level(new: DataFrame, assertions: DataFrame, sources: Sequence[str]) -> DataFrame:
    """The keys that new statements about whole sources may change, each with their first time. Grain: key and statement.

    Such a statement changes a key that its source has a statement about by then and, if it is a snapshot, does not show.
    """
    about_sources = new.where(F.col(c.BK).isNull()).select(
        c.SOURCE_SYSTEM,
        F.col(c.EVENT_TS).alias(_SAYS_AT),
        F.col(c.OP).alias(_SAYS_OP),
        F.col(c.FEED).alias(_SAYS_FEED),
        F.col(c.SNAPSHOT_TS).alias(_SAYS_SNAPSHOT),
    )
    theirs = assertions.where(F.col(c.BK).isNotNull() & F.col(c.SOURCE_SYSTEM).isin(*sources))
    of_sources = theirs.select(c.BK, c.SOURCE_SYSTEM, c.FEED, c.SNAPSHOT_TS, _first_time().alias(FIRST_NEW))
    is_before = F.col(FIRST_NEW) <= F.col(_SAYS_AT)
    same_snapshot = F.col(c.FEED).eqNullSafe(F.col(_SAYS_FEED)) & (F.col(c.SNAPSHOT_TS) == F.col(_SAYS_SNAPSHOT))
    is_shown = (F.col(_SAYS_OP) == c.ABSENT) & F.coalesce(same_snapshot, F.lit(False))
    pairs = of_sources.join(F.broadcast(about_sources.distinct()), c.SOURCE_SYSTEM, "inner")
    found = pairs.groupBy(c.BK, c.SOURCE_SYSTEM, *_SNAPSHOT).agg(F.max(is_before).alias(_BEFORE), F.max(is_shown).alias(_SHOWN))
    return found.where(F.col(_BEFORE) & ~F.col(_SHOWN)).select(c.BK, F.col(_SAYS_AT).alias(FIRST_NEW))


def between_batches(assertions: DataFrame, after: int | None, until: int) -> DataFrame:
    """The evidence of later batches than one, up to another. Grain: unchanged."""
    found = assertions.where(F.col(c.BATCH_SEQ) <= until)
    return found if after is None else found.where(F.col(c.BATCH_SEQ) > after)


def _first_time() -> Column:
    """A statement's own time, or its snapshot's where that is earlier."""
    return F.least(c.EVENT_TS, c.SNAPSHOT_TS)
