"""What is new in the evidence, key by key, and what was on record before it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.inheritance import leaves_unsaid
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, moment
from karat.temporal.statements import is_snapshot

EARLIEST, LATEST = "__karat_earliest", "__karat_latest"
"""Working: the span of time in which a key's new statements lie."""
SHOWN_APART, SHOWN_BY, _SHOWERS = "__karat_shown_apart", "__karat_shown_by", "__karat_showers"
_LAST_SAID, _OF_SOURCES, _SNAPSHOTS = "__karat_last_said", "__karat_of_sources", "__karat_snapshots"
SILENT: Final = "__karat_silent"
"""Working: whether a new statement about the key leaves something unsaid."""
REOPENS: Final = "__karat_reopens"
"""Working: whether a new statement may change what an older one about its whole source, or a snapshot, did to its key."""
SPAN: Final = (EARLIEST, LATEST, _LAST_SAID, SHOWN_APART, SHOWN_BY, _SHOWERS, _OF_SOURCES, _SNAPSHOTS, SILENT, REOPENS)


@dataclass(frozen=True)
class EvidenceState:
    """What was on record before some statements arrived, beyond what versions show."""

    source_level: Mapping[str, datetime] = field(default_factory=dict)
    """Source to the latest time at which it said something about everything it has."""
    shows_apart: frozenset[str] = frozenset()
    """Sources whose snapshots carry rows of another time than their own: their rows can bring a key back."""
    unseen: datetime | None = None
    """Up to when versions may have absorbed statements without showing it, because sightings are lazy; None: never."""
    overtaken: Mapping[str, datetime] | None = field(default_factory=dict)
    """Source to the last arrival before the batch in which it last spoke of a time it had reached before; None: unknown."""
    snapshots: bool = True
    """Whether there may be rows of snapshots among the statements."""
    arrivals_in_order: bool = False
    """Whether every batch is known to have come at a later time than those before it: clocks may run back."""


@dataclass(frozen=True)
class SourceLevel:
    """A new statement of a source about everything it has."""

    source: str
    feed: str
    op: str
    at: datetime


@dataclass(frozen=True)
class NewEvidence:
    """Evidence that a timeline has not consumed yet, as far as one aggregate tells."""

    about_keys: int
    """How many keys it is about."""
    earliest: datetime | None
    latest: datetime | None
    source_level: tuple[SourceLevel, ...]
    shows_apart: frozenset[str]
    snapshots: bool
    """Whether rows of snapshots are among it."""


def spans(new: DataFrame, before: EvidenceState, schema: EntitySchema) -> DataFrame:
    """When the new statements about each key lie, which complete snapshots show it, and what it takes to fill them in.

    Grain: one row per key, and one without a key for the statements about whole sources.
    """
    apart = is_snapshot() & (F.col(c.SNAPSHOT_TS) != F.col(c.EVENT_TS))
    shown_at = F.when(apart, F.col(c.SNAPSHOT_TS))
    source_level = F.when(F.col(c.BK).isNull() & F.col(c.OP).isin(c.TRUNCATE, c.ABSENT), _source_level())
    found = {
        EARLIEST: F.min(F.least(F.col(c.EVENT_TS), shown_at)),
        LATEST: F.max(F.greatest(F.col(c.EVENT_TS), shown_at)),
        _LAST_SAID: F.max(c.EVENT_TS),
        SHOWN_APART: F.max(F.coalesce(apart, F.lit(False))),
        SHOWN_BY: F.collect_set(snapshot_of()),
        _SHOWERS: F.collect_set(F.when(apart, F.col(c.SOURCE_SYSTEM))),
        _OF_SOURCES: F.collect_set(source_level),
        _SNAPSHOTS: F.max(is_snapshot()),
        SILENT: F.max(leaves_unsaid(schema)),
        REOPENS: F.max(F.coalesce(reopens(before), F.lit(False))),
    }
    counted = new.where(F.col(c.TIME_BASIS).isNotNull())
    return counted.groupBy(c.SK).agg(*(value.alias(name) for name, value in found.items()))


def new_evidence(spans: DataFrame) -> NewEvidence:
    """The spans in sum, counted in one job."""
    micros = {name: F.unix_micros(name) for name in (EARLIEST, _LAST_SAID)}
    found = spans.agg(
        F.count(c.SK).alias("about_keys"),
        F.min(micros[EARLIEST]).alias("earliest"),
        F.max(micros[_LAST_SAID]).alias("latest"),
        F.array_distinct(F.flatten(F.collect_set(_SHOWERS))).alias("apart"),
        F.flatten(F.collect_list(_OF_SOURCES)).alias("source_level"),
        F.max(_SNAPSHOTS).alias("snapshots"),
    ).collect()[0]
    said = (SourceLevel(row["source"], row["feed"] or "", row["op"], from_micros(row["at"])) for row in found["source_level"])
    return NewEvidence(
        about_keys=found["about_keys"],
        earliest=None if found["earliest"] is None else from_micros(found["earliest"]),
        latest=None if found["latest"] is None else from_micros(found["latest"]),
        source_level=tuple(sorted(said, key=lambda each: (each.at, each.source))),
        shows_apart=frozenset(found["apart"]),
        snapshots=bool(found["snapshots"]),
    )


def reopens(before: EvidenceState) -> Column:
    """Whether a statement may change what an older statement about its whole source, or a snapshot, did to its key."""
    # a delete may now come before a snapshot that showed the key
    found = F.col(c.IS_DELETED) & F.col(c.SOURCE_SYSTEM).isin(*sorted(before.shows_apart))
    if before.unseen is not None:
        found = found | (F.col(c.EVENT_TS) <= moment(before.unseen))
    for source, until in before.source_level.items():
        found = found | ((F.col(c.SOURCE_SYSTEM) == source) & (F.col(c.EVENT_TS) <= moment(until)))
    return found


def _source_level() -> Column:
    at = F.unix_micros(c.EVENT_TS).alias("at")
    return F.struct(F.col(c.SOURCE_SYSTEM).alias("source"), F.col(c.FEED).alias("feed"), F.col(c.OP).alias("op"), at)


def snapshot_of() -> Column:
    """The feed and the time of the snapshot that a row belongs to, as one text; null for other rows."""
    return F.when(is_snapshot() & F.col(c.SNAPSHOT_TS).isNotNull(), F.concat_ws("@", F.unix_micros(c.SNAPSHOT_TS), c.FEED))
