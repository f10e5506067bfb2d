"""A batch counted: one job tells what became of its rows and what the rest of the stage must know about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.inheritance import leaves_unsaid
from karat.bronze.new_evidence import SourceLevel
from karat.contract.columns import KIND
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros
from karat.temporal.statements import is_snapshot


@dataclass(frozen=True)
class BatchStats:
    """What became of the rows that were read."""

    read: int
    ignored: int
    refused: int
    distinct: int
    """Admitted rows that no other row of the batch says in the same file."""
    unsaid: int
    """Statements that leave something to inherit."""
    truncates: tuple[SourceLevel, ...]
    shows_apart: frozenset[str]
    """Sources whose snapshots carry rows of another time than their own."""
    snapshots: bool
    """Whether rows of snapshots are among them."""
    earliest: datetime | None
    """The first time any statement speaks of."""
    watched: Mapping[str, Any]
    """What else was counted, by its name."""

    @property
    def copies(self) -> int:
        """Admitted rows that say again what another row of the batch says."""
        return self.read - self.ignored - self.refused - self.distinct


def batch_stats(batch: DataFrame, schema: EntitySchema, watched: Mapping[str, Column]) -> BatchStats:
    """The batch counted in one job; `watched` are further aggregates."""
    is_row = F.col(KIND) == "row"
    counts = is_row & F.col(c.TIME_BASIS).isNotNull()
    apart = is_snapshot() & (F.col(c.SNAPSHOT_TS) != F.col(c.EVENT_TS))
    found = batch.agg(
        F.count(F.lit(1)).alias("read"),
        F.count_if(F.col(KIND) == "ignored").alias("ignored"),
        F.count_if(F.col(KIND) == "refused").alias("refused"),
        F.count_distinct(F.when(is_row, F.col(c.RECORD_HASH))).alias("distinct"),
        F.count_if(is_row & leaves_unsaid(schema)).alias("unsaid"),
        F.collect_set(F.when(counts & (F.col(c.OP) == c.TRUNCATE), _source_level())).alias("truncates"),
        F.collect_set(F.when(counts & apart, F.col(c.SOURCE_SYSTEM))).alias("apart"),
        F.max(counts & is_snapshot()).alias("snapshots"),
        F.min(F.when(counts, _first_time(apart))).alias("earliest"),
        F.struct(F.lit(0).alias("nothing"), *(count.alias(name) for name, count in watched.items())).alias("watched"),
    ).collect()[0]
    return BatchStats(
        read=found["read"],
        ignored=found["ignored"],
        refused=found["refused"],
        distinct=found["distinct"],
        unsaid=found["unsaid"],
        truncates=tuple(_told(row) for row in found["truncates"]),
        shows_apart=frozenset(found["apart"]),
        snapshots=bool(found["snapshots"]),
        earliest=_moment(found["earliest"]),
        watched=found["watched"].asDict(),
    )


def _first_time(apart: Column) -> Column:
    return F.unix_micros(F.least(c.EVENT_TS, F.when(apart, F.col(c.SNAPSHOT_TS))))


def _source_level() -> Column:
    at = F.unix_micros(c.EVENT_TS).alias("at")
    return F.struct(F.col(c.SOURCE_SYSTEM).alias("source"), F.col(c.FEED).alias("feed"), F.col(c.OP).alias("op"), at)


def _told(row: Mapping[str, Any]) -> SourceLevel:
    return SourceLevel(row["source"], row["feed"] or "", row["op"], from_micros(row["at"]))


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
