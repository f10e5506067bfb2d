"""Complete snapshots: that one was complete is a statement of its source, and one that would delete too much is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.context import StageContext
from karat.config.declared.entity import Feed
from karat.config.resolved import Entity
from karat.contract.columns import KIND, REASON, RULE
from karat.temporal import columns as c
from karat.temporal.moments import from_micros, moment

TOO_MUCH = "max_absent"
"""The rule that refuses an extract as a whole."""


@dataclass(frozen=True)
class CompleteSnapshot:
    """A complete snapshot: the feed that sent it and the time it speaks of."""

    feed: Feed
    at: datetime


def complete_snapshots(batch: DataFrame, entity: Entity) -> list[CompleteSnapshot]:
    """The snapshots in the batch whose feeds declare `absence_means: deleted`; no job where none does.

    A snapshot is not known to be complete while a row of one of its files is refused: that row may show the missing key.
    """
    feeds = {feed.feed.name: feed.feed for feed in entity.feeds if feed.feed.absence_means == "deleted"}
    if not feeds:
        return []
    shown_at = F.when((F.col(KIND) == "row") & F.col(c.SNAPSHOT_TS).isNotNull(), F.unix_micros(c.SNAPSHOT_TS))
    lacks_rows = (F.col(KIND) == "refused") & (F.col(RULE) != TOO_MUCH)
    files = (
        batch.where(F.col(c.FEED).isin(*feeds))
        .groupBy(c.FEED, c.SOURCE_PATH)
        .agg(F.collect_set(shown_at).alias("shown"), F.max(lacks_rows).alias("lacks"))
        .collect()
    )
    shown = {(row[c.FEED], at) for row in files for at in row["shown"]}
    lacking = {(row[c.FEED], at) for row in files if row["lacks"] for at in row["shown"]}
    return [CompleteSnapshot(feeds[name], from_micros(at)) for name, at in sorted(shown - lacking)]


def completeness_statements(snapshots: Sequence[CompleteSnapshot], batch: DataFrame, entity: Entity) -> DataFrame:
    """The statements that the snapshots were complete, shaped as the batch. Grain: one row without a key per snapshot."""
    paths = {feed.feed.name: feed.path or str(feed.table) for feed in entity.feeds}
    structs = [F.struct(*_statement(each, batch, paths[each.feed.name], entity)) for each in snapshots]
    return batch.sparkSession.range(1).select(F.inline(F.array(*structs)))


def without_suspicious(batch: DataFrame, context: StageContext) -> DataFrame:
    """The batch with every row refused of a snapshot that would delete a larger share of its source's live keys than allowed."""
    entity = context.entity
    if all(feed.feed.max_absent >= 1 for feed in entity.feeds):
        return batch
    for each in complete_snapshots(batch, entity):
        share = _share_absent(each, batch, context) if each.feed.max_absent < 1 else 0.0
        if share > each.feed.max_absent:
            reason = (
                f"the snapshot of {each.at:%Y-%m-%d %H:%M:%S} would delete {share:.1%} of the keys {each.feed.source_system} holds live"
            )
            concerned = (F.col(KIND) == "row") & (F.col(c.FEED) == each.feed.name) & (F.col(c.SNAPSHOT_TS) == moment(each.at))
            explained = f"{reason}; allowed are {each.feed.max_absent:.1%}"
            batch = batch.withColumns(
                {
                    REASON: F.when(concerned, F.lit(explained)).otherwise(F.col(REASON)),
                    RULE: F.when(concerned, F.lit(TOO_MUCH)).otherwise(F.col(RULE)),
                    KIND: F.when(concerned, F.lit("refused")).otherwise(F.col(KIND)),
                }
            )
    return batch


def _share_absent(each: CompleteSnapshot, batch: DataFrame, context: StageContext) -> float:
    """The share of the source's keys, live at the snapshot's time, that no row of the snapshot shows, in this run or an earlier one."""
    at = moment(each.at)
    is_part = (F.col(c.FEED) == each.feed.name) & (F.col(c.SNAPSHOT_TS) == at)
    shown = batch.where(is_part & (F.col(KIND) == "row")).select(c.SK)
    shown = shown.unionByName(context.assertions().where(is_part).select(c.SK)).distinct()
    was_held = (F.col(c.EFFECTIVE_FROM) <= at) & (F.col(c.SOURCE_EFFECTIVE_TO).isNull() | (F.col(c.SOURCE_EFFECTIVE_TO) > at))
    of_source = (F.col(c.SOURCE_SYSTEM) == each.feed.source_system) & ~F.col(c.IS_DELETED)
    live = context.versions().where(of_source & was_held).select(c.SK)
    marked = live.alias("live").join(shown.withColumn("__karat_shown", F.lit(1)), c.SK, "left")
    found = marked.agg(F.count(F.lit(1)).alias("live"), F.count_if(F.col("__karat_shown").isNull()).alias("absent")).first()
    return found["absent"] / found["live"] if found and found["live"] else 0.0


def _statement(each: CompleteSnapshot, batch: DataFrame, path: str, entity: Entity) -> list[Column]:
    said: dict[str, Column] = {
        c.SOURCE_SYSTEM: F.lit(each.feed.source_system),
        c.SOURCE_TYPE: F.lit("file" if each.feed.source.kind == "files" else "table"),
        c.SOURCE_PATH: F.lit(path),
        c.FEED: F.lit(each.feed.name),
        c.EVENT_TS: moment(each.at),
        c.SNAPSHOT_TS: moment(each.at),
        c.OP: F.lit(c.ABSENT),
        c.LOAD_TYPE: F.lit("FULL"),
        c.RANK: F.lit(each.feed.precedence_rank),
        c.IS_DELETED: F.lit(False),
        c.ASSERTED: F.slice(F.array(F.lit("")), 1, 0),  # nothing, in the type of an array that holds no nulls
        c.TIME_BASIS: F.lit(entity.declared.time_basis),
        KIND: F.lit("row"),
    }
    return [said.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in batch.schema]
