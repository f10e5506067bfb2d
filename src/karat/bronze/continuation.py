"""A timeline carried on from the versions it has, without going back to the evidence where they tell enough.

A held version can stand for the statements it absorbed as long as nothing new falls between them. So for a key with new
statements from time E on, only its versions that end at or after E matter: earlier ones are over, whatever is said now.

    in order   everything new is later than all that was absorbed: the live versions suffice
    late       something new is earlier: the closed versions that end after it are needed too
    tangled    it falls between statements one version absorbed, or may do so unseen, or wakes an old truncate, absence or
               inherited value: only the evidence tells, and the key's versions are made anew from it
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.facts import facts
from karat.bronze.inheritance import SPEAKS
from karat.bronze.timeline import SETTLED, versions
from karat.temporal.columns import (
    ABSENT,
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
    IS_DELETED,
    LAST_EVENT_TS,
    LAST_SEEN,
    OP,
    PLACE,
    SEEN_COUNT,
    SK,
    SNAPSHOT_TS,
    SOURCE_EFFECTIVE_TO,
    SOURCE_FILE,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    TRUNCATE,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment
from karat.temporal.order import ORDER_FILE, chronological, in_arrival
from karat.temporal.source_level import ROLE, SAID, is_snapshot
from karat.temporal.windows import all_of

EARLIEST, LATEST = "__karat_earliest", "__karat_latest"
"""Working: the span of time in which a key's new statements lie."""
SHOWN, WOKEN = "__karat_shown", "__karat_woken"
"""Working: whether a snapshot shows the key at another time than its row's; whether new statements wake what no version shows."""

SAID_OF_IT = "__karat_said_of_it"
"""Working: how many statements about a key are new."""


@dataclass(frozen=True)
class Past:
    """What must be remembered of statements that no version shows."""

    sweeps: Mapping[str, datetime] = field(default_factory=dict)
    """Source to the latest time it said that everything, or everything not shown, is gone."""
    shows_apart: frozenset[str] = frozenset()
    """Sources whose snapshots carry rows of another time than their own: their rows can bring a key back."""
    unseen: datetime | None = None
    """Up to when versions may have absorbed statements without showing it, because sightings are lazy; None: they show all."""
    behind: Mapping[str, datetime] | None = None
    """Source to the last arrival before the batch in which it last spoke of a time it had reached before; None: nobody knows."""


def spans(new: DataFrame, past: Past, takes_part: Column) -> DataFrame:
    """When and how many new statements about each key take part, and whether they touch what versions do not show; further copies of all.

    Grain: one row per key, and one for statements about none.
    """
    shown_apart = is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS))
    # a delete may come before a snapshot that showed the key, and an old sweep may now find it
    woken = F.col(IS_DELETED) & F.col(SOURCE_SYSTEM).isin(*sorted(past.shows_apart))
    if past.unseen is not None:
        woken = woken | (F.col(EVENT_TS) <= moment(past.unseen))
    for source, until in past.sweeps.items():
        woken = woken | ((F.col(SOURCE_SYSTEM) == source) & (F.col(EVENT_TS) <= moment(until)))
    shown_at = F.when(shown_apart, F.col(SNAPSHOT_TS))
    found = {
        EARLIEST: F.min(F.when(takes_part, F.least(F.col(EVENT_TS), shown_at))),
        LATEST: F.max(F.when(takes_part, F.greatest(F.col(EVENT_TS), shown_at))),
        SHOWN: F.max(takes_part & shown_apart),
        WOKEN: F.max(takes_part & woken),
        SAID_OF_IT: F.count_if(takes_part),
        COPIES: F.sum(F.col(COPIES) - 1),
    }
    return new.groupBy(SK).agg(*(value.alias(name) for name, value in found.items()))


def is_late() -> Column:
    """Of a held version beside its key's span: whether it already stands for something as late as the new statements."""
    return F.col(EARLIEST) <= F.col(LAST_EVENT_TS)


def still_matters() -> Column:
    """Of a held version beside its key's span: whether it ends at or after the first new statement."""
    return F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) >= F.col(EARLIEST))


def is_tangled(terms: EntitySchema) -> Column:
    """Of a held version beside its key's span: whether only the evidence can tell how it goes on."""
    touched = (F.col(EFFECTIVE_FROM) <= F.col(LATEST)) & (F.col(LAST_EVENT_TS) >= F.col(EARLIEST))
    falls_between = touched & (F.col(SEEN_COUNT) > 1)
    comes_back = F.col(SHOWN) & F.col(IS_DELETED)
    swept_later = F.col(OP).isin(TRUNCATE, ABSENT) & (F.col(EFFECTIVE_FROM) >= F.col(EARLIEST))
    inherits_anew = is_late() if terms.propagate else F.lit(False)
    return F.col(WOKEN) | falls_between | comes_back | swept_later | inherits_anew


def continued(held: DataFrame, new: DataFrame, terms: EntitySchema) -> DataFrame:
    """The versions that follow from held ones, beside their keys' spans, and new statements. Grain: one row per version.

    For keys that are not tangled.
    """
    together = as_statements(held).unionByName(_arriving(new, held), allowMissingColumns=True)
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
    statements = counted.where(F.col("__karat_arrival") == 1).withColumn(PLACE, F.row_number().over(chronological(BK)))
    return facts(statements, terms) if terms.is_transaction else versions(statements, terms)


def as_statements(held: DataFrame) -> DataFrame:
    """Held versions as the statements that opened them, with all they have absorbed since."""
    # its successor may be a version that is over by now and not at hand: an end before all that is new stays as it is
    settled = F.when(F.col(EFFECTIVE_TO) < F.col(EARLIEST), F.col(EFFECTIVE_TO))
    return held.withColumns({AT: F.col(EFFECTIVE_FROM), ROLE: F.lit(SAID), SPEAKS: F.lit(True), SETTLED: settled}).drop(
        EARLIEST, LATEST, SHOWN, WOKEN
    )


def _arriving(new: DataFrame, held: DataFrame) -> DataFrame:
    """New statements beside held versions: each has been seen this once."""
    seen = {
        AT: F.col(EVENT_TS),
        ROLE: F.lit(SAID),
        SPEAKS: F.lit(True),
        FIRST_SEEN: F.col(INGEST_TS),
        LAST_SEEN: F.col(INGEST_TS),
        SEEN_COUNT: F.col(COPIES),
        LAST_EVENT_TS: F.col(EVENT_TS),
    }
    known = {*held.columns, AT, ROLE, SPEAKS} - {EARLIEST, LATEST, SHOWN, WOKEN, ASSERTED, FEED}
    timed = new.withColumns(seen)
    return timed.drop(*(name for name in timed.columns if name not in known))
