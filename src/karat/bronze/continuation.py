"""A timeline carried on from the versions it holds, without going back to the evidence where they tell enough.

A held version stands for the statements that it absorbed as long as nothing new falls between them. So for a key with
new statements from time E on, only the versions that end at or after E matter.

    in order   everything new is later than all that was absorbed: the live versions are enough
    late       something new is earlier: the closed versions that end after it are needed too
    rebuild    it falls between statements that one version absorbed, or it may change what an older truncate or complete
               snapshot did: only the evidence tells, and the key's versions are made from it again

Which of these holds is decided key by key, in the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.facts import facts
from karat.bronze.schema import HELD, HELD_COUNT, HELD_UNTIL, SIGHTINGS, changing_columns, timeline_spec
from karat.bronze.timeline import SETTLED, versions
from karat.temporal.changes import GONE, INSERT, KEEP, UPDATE, WAS_HELD_UNTIL, with_instants_whole
from karat.temporal.columns import (
    ABSENT,
    ACTION,
    ASSERTED,
    AT,
    BK,
    COPIES,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    EVENT_TS,
    FEED,
    FIRST_SEEN,
    INGEST_TS,
    INHERITED,
    IS_DELETED,
    LAST_EVENT_TS,
    LAST_SEEN,
    LOAD_TYPE,
    OP,
    SEEN_COUNT,
    SK,
    SNAPSHOT_TS,
    SOURCE_EFFECTIVE_TO,
    SOURCE_FILE,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    TIME_BASIS,
    TRUNCATE,
    col,
    quoted,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, micros_of, moment
from karat.temporal.order import ORDER_FILE, in_arrival
from karat.temporal.sql import Sql, every
from karat.temporal.statements import SPEAKS, in_order, is_snapshot
from karat.temporal.windows import all_of

REBUILD: Final = "rebuild"
"""The action of a version whose key only the evidence can tell."""
EARLIEST, LATEST = "__karat_earliest", "__karat_latest"
"""Working: the span of time in which a key's new statements lie."""
_SHOWN_APART, _SHOWN, _SHOWERS = "__karat_shown_apart", "__karat_shown", "__karat_showers"
_LAST_SAID, _OF_SOURCES = "__karat_last_said", "__karat_of_sources"
_REBUILDS: Final = "__karat_rebuilds"
_SPAN: Final = (EARLIEST, LATEST, _LAST_SAID, _SHOWN_APART, _SHOWN, _SHOWERS, _OF_SOURCES)


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


def spans(new: DataFrame) -> DataFrame:
    """When the new statements about each key lie, and which complete snapshots show it.

    Grain: one row per key, and one without a key for the statements about whole sources.
    """
    apart = is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS))
    shown_at = F.when(apart, F.col(SNAPSHOT_TS))
    source_level = F.when(F.col(BK).isNull() & F.col(OP).isin(TRUNCATE, ABSENT), _source_level())
    found = {
        EARLIEST: F.min(F.least(F.col(EVENT_TS), shown_at)),
        LATEST: F.max(F.greatest(F.col(EVENT_TS), shown_at)),
        _LAST_SAID: F.max(EVENT_TS),
        _SHOWN_APART: F.max(F.coalesce(apart, F.lit(False))),
        _SHOWN: F.collect_set(_snapshot()),
        _SHOWERS: F.collect_set(F.when(apart, F.col(SOURCE_SYSTEM))),
        _OF_SOURCES: F.collect_set(source_level),
    }
    counted = new.where(F.col(TIME_BASIS).isNotNull())
    return counted.groupBy(SK).agg(*(value.alias(name) for name, value in found.items()))


def new_evidence(spans: DataFrame) -> NewEvidence:
    """The spans in sum, counted in one job."""
    micros = {name: F.unix_micros(name) for name in (EARLIEST, _LAST_SAID)}
    found = spans.agg(
        F.count(SK).alias("about_keys"),
        F.min(micros[EARLIEST]).alias("earliest"),
        F.max(micros[_LAST_SAID]).alias("latest"),
        F.array_distinct(F.flatten(F.collect_set(_SHOWERS))).alias("apart"),
        F.flatten(F.collect_list(_OF_SOURCES)).alias("source_level"),
    ).collect()[0]
    said = (SourceLevel(row["source"], row["feed"] or "", row["op"], from_micros(row["at"])) for row in found["source_level"])
    return NewEvidence(
        about_keys=found["about_keys"],
        earliest=None if found["earliest"] is None else from_micros(found["earliest"]),
        latest=None if found["latest"] is None else from_micros(found["latest"]),
        source_level=tuple(sorted(said, key=lambda each: (each.at, each.source))),
        shows_apart=frozenset(found["apart"]),
    )


def concerned_versions(held: DataFrame, of_keys: DataFrame, source_level: Sequence[SourceLevel]) -> DataFrame:
    """The held versions that new statements concern, beside their keys' spans. Grain: one row per version.

    They are of the same key and not over before them, or live when their source said something about everything.
    """
    if not source_level:
        return held.join(of_keys, SK, "inner").where(_still_matters())
    beside = held.join(of_keys, SK, "left")
    return beside.where((F.col(EARLIEST).isNotNull() & _still_matters()) | _may_be_deleted(source_level))


def continued(
    concerned: DataFrame,
    new: DataFrame,
    news: tuple[EvidenceState, Sequence[SourceLevel]],
    schema: EntitySchema,
    *,
    lazy: bool = False,
) -> DataFrame:
    """The versions that follow from the concerned ones and from new statements, each with its action.

    `news` are what was on record before, and what sources newly say about everything they have. Every version of a key
    that must be rebuilt has the action `rebuild` and no other meaning. With `lazy`, a version that was merely seen again
    stays as it is. Grain: one row per version that differs or begins where one differs.
    """
    before, source_level = news
    arriving = _arriving(new, before, source_level, concerned.columns)
    together = _as_statements(concerned, source_level, schema).unionByName(arriving, allowMissingColumns=True)
    by_key = together.repartition(BK)  # every window below is within a key: rows are moved once
    marked = _counted_once(by_key).withColumn(_REBUILDS, F.max(_REBUILDS).over(Window.partitionBy(BK)))
    ordered = in_order(marked, None, schema, presence=False)
    carried = (HELD, HELD_COUNT, HELD_UNTIL, _REBUILDS)
    fresh = facts(ordered, schema, carried) if schema.is_transaction else versions(ordered, schema, carried)
    found = fresh.withColumns(
        {
            ACTION: F.when(F.col(_REBUILDS), REBUILD).otherwise(_action(schema, lazy=lazy)),
            WAS_HELD_UNTIL: F.col(HELD_UNTIL),
            GONE: F.col(HELD_COUNT) - F.when(F.col(HELD).isNull(), 0).otherwise(1),
        }
    )
    return with_instants_whole(found.drop(*carried), timeline_spec(schema), BK)


def reopens(before: EvidenceState) -> Column:
    """Whether a statement may change what an older statement about its whole source, or a snapshot, did to its key."""
    # a delete may now come before a snapshot that showed the key
    found = F.col(IS_DELETED) & F.col(SOURCE_SYSTEM).isin(*sorted(before.shows_apart))
    if before.unseen is not None:
        found = found | (F.col(EVENT_TS) <= moment(before.unseen))
    for source, until in before.source_level.items():
        found = found | ((F.col(SOURCE_SYSTEM) == source) & (F.col(EVENT_TS) <= moment(until)))
    return found


def _still_matters() -> Column:
    """Whether a held version ends at or after the first new statement about its key; facts have no end."""
    return F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) >= F.col(EARLIEST))


def _may_be_deleted(source_level: Sequence[SourceLevel]) -> Column:
    """Whether a held version was live when its source said something about everything and is not shown by it."""
    found = F.lit(False)
    for each in source_level:
        ended = F.coalesce(F.col(SOURCE_EFFECTIVE_TO) < moment(each.at), F.lit(False))
        was_there = ~F.col(IS_DELETED) & (F.col(EFFECTIVE_FROM) <= moment(each.at)) & ~ended
        found = found | ((F.col(SOURCE_SYSTEM) == each.source) & was_there & ~_is_shown(each, F.col(_SHOWN)))
    return found


def _needs_rebuild(source_level: Sequence[SourceLevel], schema: EntitySchema) -> Column:
    """Of a held version beside its key's span: whether only the evidence can tell how the key goes on."""
    touched = (F.col(EFFECTIVE_FROM) <= F.col(LATEST)) & (F.col(LAST_EVENT_TS) >= F.col(EARLIEST))
    falls_between = touched & (F.col(SEEN_COUNT) > 1)
    comes_back = F.col(_SHOWN_APART) & F.col(IS_DELETED)
    deleted_by_source = F.col(OP).isin(TRUNCATE, ABSENT) & (F.col(EFFECTIVE_FROM) >= F.col(EARLIEST))
    inherits_again = F.col(EARLIEST) <= F.col(LAST_EVENT_TS) if schema.propagate else F.lit(False)
    of_the_key = falls_between | comes_back | deleted_by_source | inherits_again
    return F.coalesce(of_the_key, F.lit(False)) | (_no_facts(schema) & _may_be_deleted(source_level))


def _action(schema: EntitySchema, *, lazy: bool) -> Column:
    """What a version does to the table, given what was held of it."""
    skipped = SIGHTINGS if lazy else ()
    compared = [name for name in changing_columns(schema) if name not in skipped]
    same = every(f"{_comparable(name)} <=> {_comparable(f'{HELD}.{quoted(name)}', name)}" for name in compared)
    changed = ~F.expr(same) | (F.col(HELD_COUNT) > 1)
    return F.when(F.col(HELD).isNull(), INSERT).when(changed, UPDATE).otherwise(KEEP)


def _comparable(value: Sql, name: str | None = None) -> Sql:
    """A value that can be compared: a map cannot, its sorted entries can."""
    column = value if name is not None else quoted(value)
    return f"array_sort(map_entries({column}))" if (name or value) == INHERITED else column


def _as_statements(concerned: DataFrame, source_level: Sequence[SourceLevel], schema: EntitySchema) -> DataFrame:
    """Held versions as the statements that opened them, with all they have absorbed since. Grain: unchanged."""
    # its successor may be a version that is over by now and not at hand: an end before all that is new stays as it is
    settled = F.when(F.col(EFFECTIVE_TO) < F.col(EARLIEST), F.col(EFFECTIVE_TO))
    working = {
        AT: F.col(EFFECTIVE_FROM),
        SPEAKS: F.lit(True),
        SETTLED: settled,
        HELD: F.struct(*(col(name) for name in changing_columns(schema))),
        _REBUILDS: _needs_rebuild(source_level, schema),
    }
    return concerned.withColumns(working).drop(*_SPAN)


def _arriving(new: DataFrame, before: EvidenceState, source_level: Sequence[SourceLevel], known: Sequence[str]) -> DataFrame:
    """New statements beside held versions: each has been seen this once. Grain: unchanged."""
    deleted = F.lit(False)
    for each in source_level:
        spoke_before = (F.col(SOURCE_SYSTEM) == each.source) & (F.col(EVENT_TS) <= moment(each.at))
        deleted = deleted | (spoke_before & ~_is_shown(each, F.array(_snapshot())))
    seen = {
        AT: F.col(EVENT_TS),
        SPEAKS: F.lit(True),
        FIRST_SEEN: F.col(INGEST_TS),
        LAST_SEEN: F.col(INGEST_TS),
        SEEN_COUNT: F.col(COPIES),
        LAST_EVENT_TS: F.col(EVENT_TS),
        _REBUILDS: F.coalesce(reopens(before) | deleted, F.lit(False)),
    }
    needed = {*known, LOAD_TYPE, AT, SPEAKS, _REBUILDS} - {*_SPAN, ASSERTED, FEED}
    timed = new.withColumns(seen)
    return timed.drop(*(name for name in timed.columns if name not in needed))


def _counted_once(together: DataFrame) -> DataFrame:
    """Copies of a statement counted with it. Grain: one row per statement."""
    arrival = in_arrival(BK, STATEMENT_HASH, AT)
    same = all_of(arrival)
    counted = together.withColumns(
        {
            "__karat_arrival": F.row_number().over(arrival),
            FIRST_SEEN: F.min(FIRST_SEEN).over(same),
            LAST_SEEN: F.max(LAST_SEEN).over(same),
            SEEN_COUNT: F.sum(SEEN_COUNT).over(same),
            ORDER_FILE: F.min(SOURCE_FILE).over(same),
        }
    )
    return counted.where(F.col("__karat_arrival") == 1).drop("__karat_arrival")


def _source_level() -> Column:
    at = F.unix_micros(EVENT_TS).alias("at")
    return F.struct(F.col(SOURCE_SYSTEM).alias("source"), F.col(FEED).alias("feed"), F.col(OP).alias("op"), at)


def _snapshot() -> Column:
    """The feed and the time of the snapshot that a row belongs to, as one text; null for other rows."""
    return F.when(is_snapshot() & F.col(SNAPSHOT_TS).isNotNull(), F.concat_ws("@", F.unix_micros(SNAPSHOT_TS), FEED))


def _is_shown(each: SourceLevel, shown: Column) -> Column:
    """Whether a key is shown by the snapshot that was complete; a truncate shows nothing."""
    if each.op != ABSENT:
        return F.lit(False)
    return F.coalesce(F.array_contains(shown, f"{micros_of(each.at)}@{each.feed}"), F.lit(False))


def _no_facts(schema: EntitySchema) -> Column:
    """Facts do not vanish because a source empties its table."""
    return F.lit(not schema.is_transaction)
