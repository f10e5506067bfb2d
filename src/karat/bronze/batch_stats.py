"""A batch counted: one job tells what became of its rows and what the rest of the stage must know about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.inheritance import leaves_unsaid
from karat.contract.columns import KIND
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
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
    shows_apart: frozenset[str]
    """Sources whose snapshots carry rows of another time than their own."""
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
        F.collect_set(F.when(counts & apart, F.col(c.SOURCE_SYSTEM))).alias("apart"),
        F.struct(F.lit(0).alias("nothing"), *(count.alias(name) for name, count in watched.items())).alias("watched"),
    ).collect()[0]
    return BatchStats(
        read=found["read"],
        ignored=found["ignored"],
        refused=found["refused"],
        distinct=found["distinct"],
        unsaid=found["unsaid"],
        shows_apart=frozenset(found["apart"]),
        watched=found["watched"].asDict(),
    )
