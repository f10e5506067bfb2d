"""A batch counted: one scan tells what became of its rows and what the rest of the way must know about them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import leaves_unsaid
from karat.contract.columns import KIND
from karat.temporal.columns import EVENT_TS, OP, RECORD_HASH, SK, SNAPSHOT_TS, SOURCE_SYSTEM, TIME_BASIS, TRUNCATE
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros
from karat.temporal.sketch import FEW_KEYS, Bitmaps, bitmaps, sketched
from karat.temporal.source_level import is_snapshot


@dataclass(frozen=True)
class Tally:
    """What became of the rows that were read, and what the timeline must know about them beforehand."""

    read: int
    ignored: int
    refused: int
    unsaid: int
    """Statements that leave something to inherit."""
    truncates: Mapping[str, datetime]
    """Sources that said everything is gone, and for when."""
    shows_apart: frozenset[str]
    """Sources whose snapshots carry rows of another time than their own."""
    watched: Mapping[str, Any]
    """What else was counted, by its name."""
    earliest: datetime | None
    """The first time any statement speaks of."""
    keys: Bitmaps
    """A sketch of the keys."""
    unsaid_keys: Bitmaps
    """A sketch of the keys of statements that leave something to inherit."""
    named: tuple[bytes, ...] | None = None
    """The keys themselves, by `sk`, where they are few."""
    copies: int | None = None
    """Rows that say what another one says, where they are few."""
    count: int | None = None
    """How many statements about keys count, where they are few."""


def tally_of(batch: DataFrame, terms: EntitySchema, watched: Mapping[str, Column], *, few: bool = False) -> Tally:
    """One scan of the batch, told apart: how many rows of each kind, and what they will need; `few` that each may be named."""
    is_row = F.col(KIND) == "row"
    counts = is_row & F.col(TIME_BASIS).isNotNull()
    truncate = F.struct(F.col(SOURCE_SYSTEM).alias("source"), F.unix_micros(EVENT_TS).alias("at"))
    apart = is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS))
    first = F.min(F.when(counts, F.unix_micros(F.least(EVENT_TS, F.when(apart, F.col(SNAPSHOT_TS))))))
    about = F.when(counts, F.col(SK))
    found = batch.agg(
        F.count(F.lit(1)).alias("read"),
        F.count_if(F.col(KIND) == "ignored").alias("ignored"),
        F.count_if(F.col(KIND) == "refused").alias("refused"),
        F.count_if(is_row & leaves_unsaid(terms)).alias("unsaid"),
        F.collect_set(F.when(counts & (F.col(OP) == TRUNCATE), truncate)).alias("truncates"),
        F.collect_set(F.when(counts & apart, F.col(SOURCE_SYSTEM))).alias("apart"),
        F.struct(*(count.alias(name) for name, count in watched.items())).alias("watched"),
        first.alias("earliest"),
        sketched(about).alias("keys"),
        sketched(F.when(leaves_unsaid(terms), about)).alias("unsaid_keys"),
        *([F.collect_set(about).alias("named"), *_distinct(is_row, counts)] if few else ()),
    ).collect()[0]
    truncates = latest((row["source"], from_micros(row["at"])) for row in found["truncates"])
    return Tally(
        read=found["read"],
        ignored=found["ignored"],
        refused=found["refused"],
        unsaid=found["unsaid"],
        truncates=truncates,
        shows_apart=frozenset(found["apart"]),
        watched=found["watched"].asDict(),
        earliest=None if found["earliest"] is None else from_micros(found["earliest"]),
        keys=bitmaps(found["keys"]),
        unsaid_keys=bitmaps(found["unsaid_keys"]),
        named=tuple(map(bytes, found["named"])) if few and found["read"] <= FEW_KEYS else None,
        copies=found["read"] - found["ignored"] - found["refused"] - found["distinct"] if few else None,
        count=found["count"] if few else None,
    )


def _distinct(is_row: Column, counts: Column) -> list[Column]:
    """How many rows say what no other one says, and how many of these are about keys and count."""
    who = {"distinct": is_row, "count": counts & F.col(SK).isNotNull()}
    return [F.size(F.collect_set(F.when(each, F.col(RECORD_HASH)))).alias(name) for name, each in who.items()]


def latest(sweeps: Iterable[tuple[str, datetime]]) -> dict[str, datetime]:
    """Source to its latest time."""
    found: dict[str, datetime] = {}
    for source, at in sweeps:
        found[source] = max(at, found.get(source, at))
    return found
