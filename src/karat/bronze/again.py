"""Statements that merely show again what their source's live version says: where sightings are lazy, nothing follows from them.

held      KYC  risk=low   from 1 on
new       KYC  risk=low   @2, a row of an extract        said again
new       KYC  risk=high  @2                             says something
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.temporal.columns import (
    ATTR_HASH,
    EFFECTIVE_FROM,
    EVENT_TS,
    INHERITED,
    IS_DELETED,
    IS_SOURCE_CURRENT,
    SK,
    SNAPSHOT_TS,
    SOURCE_SYSTEM,
    col,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.source_level import is_snapshot

_STATE = "__karat_state"
_PLAIN = "__karat_plain"
"""Working: whether the statement is of the kind that can be said again: a complete row of an extract of its own time."""


def keys_with_news(new: DataFrame, held: DataFrame, terms: EntitySchema) -> DataFrame:
    """The keys about which something is said that the live versions do not show already. Grain: one row per key.

    For states whose inherited values are pinned: where they propagate, a repeat may be the later word for somebody else.
    """
    state = F.struct(F.col(ATTR_HASH), *(col(name) for name in sorted(terms.untracked))).alias(_STATE)
    tells_all = F.size(INHERITED) == 0
    shown = held.where((F.col(IS_SOURCE_CURRENT) == F.lit(True)) & ~F.col(IS_DELETED) & tells_all)
    of_its_time = F.coalesce(F.col(SNAPSHOT_TS) == F.col(EVENT_TS), F.lit(True))
    plain = is_snapshot() & of_its_time & ~F.col(IS_DELETED) & tells_all
    said = new.select(SK, SOURCE_SYSTEM, EVENT_TS, plain.alias(_PLAIN), state).alias("said")
    beside = said.join(shown.select(SK, SOURCE_SYSTEM, EFFECTIVE_FROM, state).alias("shown"), [SK, SOURCE_SYSTEM], "left")
    # at the very instant the version began, the order of equal times would have to be asked
    is_later = F.col(EVENT_TS) > F.col(EFFECTIVE_FROM)
    again = F.col(_PLAIN) & is_later & F.col(f"said.{_STATE}").eqNullSafe(F.col(f"shown.{_STATE}"))
    return beside.where(~F.coalesce(again, F.lit(False))).select(SK).distinct()
