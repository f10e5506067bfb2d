"""Statements in their order: each thing said once, and what follows for a key from statements about a whole source.

A source also says things about everything it has: a truncate, or that a snapshot was complete. Such a statement has no
key. For every key that its source held at that time and, if it is a snapshot, does not show, it is a delete. A key that
a snapshot shows although its source held it deleted is back at the time of the snapshot.

    KYC   a @1   b @1   snapshot of 2 shows a     → b is deleted @2
    KYC   b @3                                    → b is back @3
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.order import ORDER_FILE, in_arrival, in_place_by_source, in_their_order
from karat.temporal.windows import all_of, before

ROLE: Final = "__karat_role"
"""Working: why a statement is here: it was said, follows from a statement about the whole source, or from a snapshot."""
SAID, FOLLOWS, PRESENT = "said", "follows", "present"
SPEAKS: Final = "__karat_speaks"
"""Working: whether later statements inherit from this one; a copy of a statement that is already there does not count."""
_NEXT: Final = "__karat_next"
_HOLDS: Final = "__karat_holds"
_TOLD: Final = (c.SOURCE_SYSTEM, c.AT, c.IS_DELETED, c.LOAD_TYPE, c.OP, c.EVENT_TS, c.SNAPSHOT_TS)


def statements(assertions: DataFrame, schema: EntitySchema, *, source_level: bool = True) -> DataFrame:
    """Every statement that takes part, once, with what follows from statements about whole sources.

    `AT` is when it takes effect, `PLACE` its number in its entity's order. `source_level` says whether there may be
    statements about whole sources among the assertions. Grain: one row per statement and key.
    """
    counted = assertions.where(F.col(c.TIME_BASIS).isNotNull())
    about_keys = counted.where(F.col(c.BK).isNotNull()).transform(distinct_statements, (c.BK, c.STATEMENT_HASH))
    if schema.is_transaction or not source_level:
        return in_order(about_keys, None, schema)
    of_sources = counted.where(F.col(c.BK).isNull()).transform(distinct_statements, (c.SOURCE_SYSTEM, c.STATEMENT_HASH))
    return in_order(about_keys, of_sources, schema)


def distinct_statements(rows: DataFrame, identity: c.Names) -> DataFrame:
    """Copies counted once: the row of the first arrival, with how often and when the statement was seen.

    Grain: one row per statement.
    """
    arrival = in_arrival(*identity)
    same = all_of(arrival)
    counted = rows.withColumns(
        {
            "__karat_arrival": F.row_number().over(arrival),
            c.FIRST_SEEN: F.min(c.INGEST_TS).over(same),
            c.LAST_SEEN: F.max(c.INGEST_TS).over(same),
            c.SEEN_COUNT: F.sum(c.COPIES).over(same),
            ORDER_FILE: F.min(c.SOURCE_FILE).over(same),
            c.AT: F.col(c.EVENT_TS),
            SPEAKS: F.lit(True),
            c.LAST_EVENT_TS: F.lit(None).cast("timestamp"),
        }
    )
    return counted.where(F.col("__karat_arrival") == 1).drop("__karat_arrival")


def in_order(about_keys: DataFrame, of_sources: DataFrame | None, schema: EntitySchema, *, presence: bool = True) -> DataFrame:
    """The statements that have an effect on each key, numbered in their order. Grain: one row per statement and key.

    `of_sources` are the statements about whole sources, None if there are none. `presence` says whether a snapshot may
    bring a key back. Facts do not vanish with a truncate, nor do they come back: for transactions neither matters.
    """
    said = about_keys.withColumn(ROLE, F.lit(SAID))
    if schema.is_transaction or (of_sources is None and not presence):
        return in_their_order(said)
    if of_sources is not None:
        said = with_deletes_that_follow(said, of_sources, schema)
    if presence:
        said = with_presence(said)
    return without_void(said, schema, presence=presence)


def with_deletes_that_follow(about_keys: DataFrame, of_sources: DataFrame, schema: EntitySchema) -> DataFrame:
    """The statements, and for each statement about a whole source a delete of the keys that it may find live.

    A delete is tried only between an upsert of that source and the source's next statement about the key; whether it
    holds is decided by `without_void`, which knows the order of equal times. Grain: one row per statement and key.
    """
    # at one instant the last word may be an upsert, whatever its sequence: then the next statement is one of a later time
    by_source = Window.partitionBy(c.BK, c.SOURCE_SYSTEM).orderBy(F.col(c.AT).asc(), F.col(c.IS_DELETED).desc())
    from_key = (c.BK, c.SK, *schema.key)
    at_each_time = _shown_at_their_snapshot_too(about_keys.select(*map(c.col, from_key), *_TOLD))
    upserts = at_each_time.withColumn(_NEXT, F.lead(c.AT).over(by_source)).where(~F.col(c.IS_DELETED))
    keyed = upserts.select(*(c.col(name) for name in from_key), c.SOURCE_SYSTEM, c.AT, _NEXT).alias("key")
    nothing_said = {c.ASSERTED: F.array().cast("array<string>"), c.IS_DELETED: F.lit(True), ROLE: F.lit(FOLLOWS)}
    source_level = of_sources.drop(*from_key).withColumns(nothing_said).alias("all")
    falls_between = (F.col(f"all.{c.AT}") >= F.col(f"key.{c.AT}")) & F.coalesce(F.col(f"all.{c.AT}") <= F.col(f"key.{_NEXT}"), F.lit(True))
    same_source = F.col(f"all.{c.SOURCE_SYSTEM}") == F.col(f"key.{c.SOURCE_SYSTEM}")
    pairs = keyed.join(F.broadcast(source_level), same_source & falls_between, "inner").select(
        *(c.col(name, "key") for name in from_key), *(c.col(name, "all") for name in source_level.columns)
    )
    candidates = pairs.dropDuplicates([c.BK, c.SOURCE_SYSTEM, c.STATEMENT_HASH])
    shown = about_keys.where(F.col(c.SNAPSHOT_TS).isNotNull()).select(c.BK, c.SOURCE_SYSTEM, c.FEED, c.SNAPSHOT_TS).distinct()
    shown = shown.withColumn("__karat_shown", F.lit(True))
    told = candidates.join(shown, [c.BK, c.SOURCE_SYSTEM, c.FEED, c.SNAPSHOT_TS], "left")
    unshown = told.where((F.col(c.OP) != c.ABSENT) | F.col("__karat_shown").isNull()).drop("__karat_shown")
    return about_keys.unionByName(unshown, allowMissingColumns=True)


def _shown_at_their_snapshot_too(about_keys: DataFrame) -> DataFrame:
    """Statements at their own time, and snapshot rows of another time at the snapshot's as well."""
    apart = about_keys.where(is_snapshot() & (F.col(c.SNAPSHOT_TS) != F.col(c.EVENT_TS)))
    return about_keys.unionByName(apart.withColumn(c.AT, F.col(c.SNAPSHOT_TS)))


def with_presence(about_keys: DataFrame) -> DataFrame:
    """Snapshot rows of a key that was ever deleted also say that it was there at the snapshot's time."""
    ever_deleted = F.max(c.IS_DELETED).over(Window.partitionBy(c.BK, c.SOURCE_SYSTEM))
    shows = (F.col(ROLE) == SAID) & is_snapshot() & (F.col(c.SNAPSHOT_TS) != F.col(c.EVENT_TS)) & ever_deleted
    roles = F.when(shows, F.array(F.lit(SAID), F.lit(PRESENT))).otherwise(F.array(F.col(ROLE)))
    each = about_keys.withColumn("__karat_roles", roles).withColumn(ROLE, F.explode("__karat_roles"))
    at = F.when(F.col(ROLE) == PRESENT, F.col(c.SNAPSHOT_TS)).otherwise(F.col(c.AT))
    return each.drop("__karat_roles").withColumn(c.AT, at)


def without_void(about_keys: DataFrame, schema: EntitySchema, *, presence: bool = True) -> DataFrame:
    """The statements that have an effect, in their order; a delete that only follows must find its key live before it."""
    used = in_their_order(about_keys)
    if presence:
        used = used.withColumn(_HOLDS, _brings_back(schema)).where(F.col(_HOLDS))
    was_deleted = F.lag(c.IS_DELETED).over(in_place_by_source(schema.sources))
    holds = (F.col(ROLE) != FOLLOWS) | F.coalesce(~was_deleted, F.lit(False))
    return used.withColumn(_HOLDS, holds).where(F.col(_HOLDS)).drop(_HOLDS)


def takes_part() -> Column:
    """Whether a row is a statement about a key, in an entity that has a timeline."""
    return F.col(c.BK).isNotNull() & F.col(c.TIME_BASIS).isNotNull()


def is_snapshot() -> Column:
    """A row of a full extract, rather than an event."""
    return (F.col(c.LOAD_TYPE) == "FULL") & F.col(c.OP).isNull()


def _brings_back(schema: EntitySchema) -> Column:
    """Presence counts only right after a delete of a key that its source has a statement about; everything else stays."""
    order = in_place_by_source(schema.sources)
    said_before = F.count(F.when(F.col(ROLE) == SAID, 1)).over(before(order)) > 0
    last_was_delete = F.last(F.when(F.col(ROLE) != PRESENT, F.col(c.IS_DELETED)), ignorenulls=True).over(before(order))
    is_first = F.coalesce(F.lag(ROLE).over(order) != PRESENT, F.lit(True))
    return (F.col(ROLE) != PRESENT) | (said_before & F.coalesce(last_was_delete, F.lit(False)) & is_first)
