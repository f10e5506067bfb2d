"""Full extracts whose silence means deletion: that they were complete is a statement, and one that would delete too much is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.identity import identified
from karat.config.entity import Feed
from karat.config.resolved import Entity
from karat.contract.columns import KIND, REASON, RULE
from karat.execute.tally import latest
from karat.lake.delta import DeltaTables
from karat.temporal.columns import (
    ABSENT,
    ASSERTED,
    EFFECTIVE_FROM,
    EVENT_TS,
    FEED,
    IS_DELETED,
    LOAD_TYPE,
    OP,
    RANK,
    SK,
    SNAPSHOT_TS,
    SOURCE_EFFECTIVE_TO,
    SOURCE_PATH,
    SOURCE_SYSTEM,
    SOURCE_TYPE,
    TIME_BASIS,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, moment

TOO_MUCH = "max_absent"
"""The rule that refuses an extract as a whole."""


@dataclass(frozen=True)
class Extract:
    """A full extract: the feed that sent it and the time it speaks of."""

    feed: Feed
    at: datetime


@dataclass(frozen=True)
class Complete:
    """The statements "this extract was complete", as rows of the batch's shape."""

    frame: DataFrame
    rows: int
    until: Mapping[str, datetime]
    """Source to the latest time one of its extracts speaks of."""


def extracts(batch: DataFrame, entity: Entity) -> list[Extract]:
    """The trusted extracts that have rows in the batch; no job when no feed's silence means anything.

    An extract is not known to be complete while a row of one of its files is refused: who is missing may be in that very row.
    """
    feeds = {feed.feed.name: feed.feed for feed in entity.feeds if feed.feed.absence_means == "deleted"}
    if not feeds:
        return []
    shown_at = F.when((F.col(KIND) == "row") & F.col(SNAPSHOT_TS).isNotNull(), F.unix_micros(SNAPSHOT_TS))
    lacks_rows = (F.col(KIND) == "refused") & (F.col(RULE) != TOO_MUCH)
    files = (
        batch.where(F.col(FEED).isin(*feeds))
        .groupBy(FEED, SOURCE_PATH)
        .agg(F.collect_set(shown_at).alias("shown"), F.max(lacks_rows).alias("lacks"))
        .collect()
    )
    shown = {(row[FEED], at) for row in files for at in row["shown"]}
    lacking = {(row[FEED], at) for row in files if row["lacks"] for at in row["shown"]}
    return [Extract(feeds[name], from_micros(at)) for name, at in sorted(shown - lacking)]


def completeness(batch: DataFrame, entity: Entity) -> Complete | None:
    """A keyless statement for every trusted extract of the batch. Grain: one row per extract."""
    found = extracts(batch, entity)
    if not found:
        return None
    paths = {feed.feed.name: feed.path or str(feed.table) for feed in entity.feeds}
    structs = [F.struct(*_statement(each, batch, paths[each.feed.name], entity)) for each in found]
    frame = batch.sparkSession.range(1).select(F.inline(F.array(*structs)))
    return Complete(frame, len(found), latest((each.feed.source_system, each.at) for each in found))


def without_suspicious(batch: DataFrame, entity: Entity, terms: EntitySchema, tables: DeltaTables) -> DataFrame:
    """The batch with every row refused of an extract that would delete a larger share of its source's live keys than allowed."""
    if all(feed.feed.max_absent >= 1 for feed in entity.feeds):
        return batch
    for each in extracts(batch, entity):
        share = _share_absent(each, batch, terms, (entity, tables)) if each.feed.max_absent < 1 else 0.0
        if share > each.feed.max_absent:
            reason = (
                f"the snapshot of {each.at:%Y-%m-%d %H:%M:%S} would delete {share:.1%} of the keys {each.feed.source_system} holds live"
            )
            concerned = (F.col(KIND) == "row") & (F.col(FEED) == each.feed.name) & (F.col(SNAPSHOT_TS) == moment(each.at))
            told = f"{reason}; allowed are {each.feed.max_absent:.1%}"
            batch = batch.withColumns(
                {
                    REASON: F.when(concerned, F.lit(told)).otherwise(F.col(REASON)),
                    RULE: F.when(concerned, F.lit(TOO_MUCH)).otherwise(F.col(RULE)),
                    KIND: F.when(concerned, F.lit("refused")).otherwise(F.col(KIND)),
                }
            )
    return batch


def _share_absent(each: Extract, batch: DataFrame, terms: EntitySchema, held: tuple[Entity, DeltaTables]) -> float:
    """The share of the source's keys, live at the extract's time, that no row of the extract shows, in this run or an earlier one."""
    entity, tables = held
    at = moment(each.at)
    is_part = (F.col(FEED) == each.feed.name) & (F.col(SNAPSHOT_TS) == at)
    shown = batch.where(is_part & (F.col(KIND) == "row")).transform(identified, terms).select(SK)
    shown = shown.unionByName(tables.read(entity.assertions).where(is_part).select(SK)).distinct()
    stood = (F.col(EFFECTIVE_FROM) <= at) & (F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) > at))
    live = tables.read(entity.timeline).where((F.col(SOURCE_SYSTEM) == each.feed.source_system) & ~F.col(IS_DELETED) & stood).select(SK)
    marked = live.alias("live").join(shown.withColumn("__karat_shown", F.lit(1)), SK, "left")
    found = marked.agg(F.count(F.lit(1)).alias("live"), F.count_if(F.col("__karat_shown").isNull()).alias("absent")).first()
    return found["absent"] / found["live"] if found and found["live"] else 0.0


def _statement(each: Extract, batch: DataFrame, path: str, entity: Entity) -> list[Column]:
    said: dict[str, Column] = {
        SOURCE_SYSTEM: F.lit(each.feed.source_system),
        SOURCE_TYPE: F.lit("file" if each.feed.source.kind == "files" else "table"),
        SOURCE_PATH: F.lit(path),
        FEED: F.lit(each.feed.name),
        EVENT_TS: moment(each.at),
        SNAPSHOT_TS: moment(each.at),
        OP: F.lit(ABSENT),
        LOAD_TYPE: F.lit("FULL"),
        RANK: F.lit(each.feed.precedence_rank),
        IS_DELETED: F.lit(False),
        ASSERTED: F.slice(F.array(F.lit("")), 1, 0),  # nothing, in the type of an array that holds no nulls
        TIME_BASIS: F.lit(entity.declared.time_basis),
        KIND: F.lit("row"),
    }
    return [said.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in batch.schema]
