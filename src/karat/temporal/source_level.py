"""Statements of a source about everything it has: a truncate, and "this snapshot was complete".

They are kept without a key. Set against what the source ever said, they become deletes of the keys it held then; a key
that a snapshot shows although its source held it deleted is back at the snapshot's time.
"""

from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.temporal.columns import (
    ABSENT,
    ASSERTED,
    AT,
    BK,
    EVENT_TS,
    FEED,
    IS_DELETED,
    LOAD_TYPE,
    OP,
    PLACE,
    SK,
    SNAPSHOT_TS,
    SOURCE_SYSTEM,
    col,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.order import chronological, in_place_by_source
from karat.temporal.windows import before

ROLE = "__karat_role"
"""Working: why a statement is here: it was said, follows from a statement of the source, or from its presence in a snapshot."""
SAID, FOLLOWS, PRESENT = "said", "follows", "present"


def in_order(about_keys: DataFrame, of_sources: DataFrame | None, terms: EntitySchema) -> DataFrame:
    """All statements with an effect on each key, numbered in their order. Grain: one row per statement and key."""
    if not terms.swept and not terms.shown_apart:
        return about_keys.withColumns({ROLE: F.lit(SAID), PLACE: F.row_number().over(chronological(BK))})
    said = about_keys.withColumn(ROLE, F.lit(SAID))
    if terms.swept and of_sources is not None:
        said = with_deletes_that_follow(said, of_sources, terms)
    if terms.shown_apart:
        said = with_presence(said)
    return without_void(said, terms)


def with_deletes_that_follow(statements: DataFrame, of_sources: DataFrame, terms: EntitySchema) -> DataFrame:
    """The statements about keys, and for each keyless statement a delete of every key its source ever spoke of.

    Whether the source held the key then is decided by `without_void`, which knows the order. Grain: one row per statement and key.
    """
    spoken = statements.groupBy(BK, SOURCE_SYSTEM).agg(F.min(SK).alias(SK), *(F.min(col(name)).alias(name) for name in terms.key))
    present = statements.where(F.col(SNAPSHOT_TS).isNotNull()).select(BK, SOURCE_SYSTEM, FEED, SNAPSHOT_TS).distinct()
    from_keys = {BK, SK, SOURCE_SYSTEM, *terms.key}
    nothing_said = {ASSERTED: F.array().cast("array<string>"), IS_DELETED: F.lit(True), ROLE: F.lit(FOLLOWS)}
    pairs = of_sources.drop(*(from_keys - {SOURCE_SYSTEM})).join(spoken, SOURCE_SYSTEM, "inner").withColumns(nothing_said)
    absent = pairs.where(F.col(OP) == ABSENT).join(present, [BK, SOURCE_SYSTEM, FEED, SNAPSHOT_TS], "left_anti")
    truncated = pairs.where(F.col(OP) != ABSENT)
    return statements.unionByName(absent).unionByName(truncated)


def with_presence(statements: DataFrame) -> DataFrame:
    """Snapshot rows of a key that was ever deleted also say that it was there at the snapshot's time."""
    ever_deleted = F.max(IS_DELETED).over(Window.partitionBy(BK, SOURCE_SYSTEM))
    shows = (F.col(ROLE) == SAID) & is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS)) & ever_deleted
    roles = F.when(shows, F.array(F.lit(SAID), F.lit(PRESENT))).otherwise(F.array(F.col(ROLE)))
    each = statements.withColumn("__karat_roles", roles).withColumn(ROLE, F.explode("__karat_roles")).drop("__karat_roles")
    return each.withColumn(AT, F.when(F.col(ROLE) == PRESENT, F.col(SNAPSHOT_TS)).otherwise(F.col(AT)))


def without_void(statements: DataFrame, terms: EntitySchema) -> DataFrame:
    """The statements that have an effect, in their order; one that only follows must find its key live before it, or deleted."""
    ordered = statements.withColumn(PLACE, F.row_number().over(chronological(BK)))
    used = ordered.withColumn("__karat_used", _brings_back(terms)).where(F.col("__karat_used")).drop("__karat_used")
    was_deleted = F.lag(IS_DELETED).over(in_place_by_source(terms.sources))
    holds = (F.col(ROLE) != FOLLOWS) | F.coalesce(~was_deleted, F.lit(False))
    return used.withColumn("__karat_holds", holds).where(F.col("__karat_holds")).drop("__karat_holds")


def as_facts(terms: EntitySchema) -> EntitySchema:
    """The terms of transactions: facts do not vanish because a source empties its table, nor come back because it shows them."""
    return replace(terms, swept=False, shown_apart=False)


def is_snapshot() -> Column:
    """A row of a full extract, rather than an event."""
    return (F.col(LOAD_TYPE) == "FULL") & F.col(OP).isNull()


def _brings_back(terms: EntitySchema) -> Column:
    """Presence counts only right after a delete of a key its source has really spoken of; everything else is not asked."""
    order = in_place_by_source(terms.sources)
    said_before = F.count(F.when(F.col(ROLE) == SAID, 1)).over(before(order)) > 0
    last_was_delete = F.last(F.when(F.col(ROLE) != PRESENT, F.col(IS_DELETED)), ignorenulls=True).over(before(order))
    is_first = F.coalesce(F.lag(ROLE).over(order) != PRESENT, F.lit(True))
    return (F.col(ROLE) != PRESENT) | (said_before & F.coalesce(last_was_delete, F.lit(False)) & is_first)
