"""A timeline carried on from the versions it holds, without going back to the evidence where they tell enough.

A held version stands for the statements that it absorbed as long as nothing new falls between them. So for a key with
new statements from time E on, only the versions that end at or after E matter.

    in order   everything new is later than all that was absorbed: the live versions are enough
    late       something new is earlier: the closed versions that end after it are needed too
    rebuild    it falls between statements that one version absorbed, or it may change what an older truncate or complete
               snapshot did: only the evidence tells, and the key's versions are made from it again

Which of these holds is decided key by key, in the data.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.facts import facts
from karat.bronze.new_evidence import (
    EARLIEST,
    LATEST,
    REOPENS,
    SHOWN_APART,
    SHOWN_BY,
    SPAN,
    EvidenceState,
    NewEvidence,
    SourceLevel,
    reopens,
    snapshot_of,
)
from karat.bronze.schema import HELD, OPENS, REBUILDS, SIGHTINGS, changing_columns, riding_columns
from karat.bronze.timeline import SETTLED, versions
from karat.temporal import columns as c
from karat.temporal.changes import DELETE, INSERT, KEEP, UPDATE, WAS_HELD_UNTIL
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import micros_of, moment
from karat.temporal.order import ORDER_FILE, SEQUENCE_ORDER, in_arrival, in_place
from karat.temporal.riding import packed
from karat.temporal.sql import Sql, every
from karat.temporal.statements import SPEAKS, in_order, is_snapshot
from karat.temporal.windows import all_of

REBUILD: Final = "rebuild"
"""The action of a version whose key only the evidence can tell."""
_COVERING, _SHOWN_AGAIN, _MOVES = "__karat_covering", "__karat_shown_again", "__karat_moves"
_OF_VERSION: Final = (c.EFFECTIVE_FROM, c.STATEMENT_HASH, c.ATTR_HASH, c.RANK, c.SEQUENCE, c.SOURCE_FILE, c.INHERITED, c.IS_DELETED)


def concerned_versions(held: DataFrame, of_keys: DataFrame, source_level: Sequence[SourceLevel]) -> DataFrame:
    """The held versions that new statements concern, beside their keys' spans. Grain: one row per version.

    They are of the same key and not over before them, or live when their source said something about everything.
    """
    if not source_level:
        return held.join(of_keys, c.SK, "inner").where(_still_matters())
    beside = held.join(of_keys, c.SK, "left")
    return beside.where((F.col(EARLIEST).isNotNull() & _still_matters()) | _may_be_deleted(source_level))


def continued(
    concerned: DataFrame,
    new: DataFrame,
    news: tuple[EvidenceState, NewEvidence],
    schema: EntitySchema,
    *,
    lazy: bool = False,
) -> DataFrame:
    """The versions that follow from the concerned ones and from new statements, each with its action.

    `news` are what was on record before, and what is new. A key that must be rebuilt has a row with the action `rebuild`,
    and what its other rows say does not count. With `lazy`, a version that was merely seen again stays as it is.
    Grain: one row per version that differs.
    """
    before, found_new = news
    source_level = () if schema.is_transaction else found_new.source_level
    snapshots = before.snapshots or found_new.snapshots
    arriving = _arriving(new, before, source_level, concerned.columns)
    together = _as_statements(concerned, source_level, schema).unionByName(arriving, allowMissingColumns=True)
    # every window below is within a key: rows are moved once
    by_key = packed(together, riding_columns(schema)).repartition(c.BK)
    marked = by_key.transform(_counted_once).transform(_with_rebuilds, schema, snapshots=snapshots)
    ordered = in_order(marked, None, schema, presence=False).transform(_with_unsure_order, lazy=lazy)
    carried = (HELD, REBUILDS, OPENS)
    fresh = facts(ordered, schema, carried) if schema.is_transaction else versions(ordered, schema, carried, snapshots=snapshots)
    action = F.when(F.col(REBUILDS), REBUILD).otherwise(_action(schema, lazy=lazy))
    found = fresh.withColumns({c.ACTION: action, WAS_HELD_UNTIL: F.col(HELD)[c.SOURCE_EFFECTIVE_TO]})
    return found.where(F.col(c.ACTION) != KEEP).drop(*carried)


def _still_matters() -> Column:
    """Whether a held version ends at or after the first new statement about its key; facts have no end."""
    return F.col(c.SOURCE_EFFECTIVE_TO).isNull() | (F.col(c.SOURCE_EFFECTIVE_TO) >= F.col(EARLIEST))


def _may_be_deleted(source_level: Sequence[SourceLevel]) -> Column:
    """Whether a held version was live when its source said something about everything and is not shown by it."""
    found = F.lit(False)
    for each in source_level:
        ended = F.coalesce(F.col(c.SOURCE_EFFECTIVE_TO) < moment(each.at), F.lit(False))
        was_there = ~F.col(c.IS_DELETED) & (F.col(c.EFFECTIVE_FROM) <= moment(each.at)) & ~ended
        found = found | ((F.col(c.SOURCE_SYSTEM) == each.source) & was_there & ~_is_shown(each, F.col(SHOWN_BY)))
    return found


def _with_rebuilds(counted: DataFrame, schema: EntitySchema, *, snapshots: bool) -> DataFrame:
    """Held versions and new statements with whether only the evidence can tell how their key goes on. Grain: unchanged.

    A copy of the statement that opened a version says nothing new, and neither does a row of a snapshot that shows again
    what its source's version says: they change no period, wherever they fall.
    """
    of_key = Window.partitionBy(c.BK)
    is_new = F.col(HELD).isNull() | F.col(_MOVES)
    says_more = is_new & ~F.col(_SHOWN_AGAIN)
    spanned = _with_shown_again(counted, schema, snapshots=snapshots).withColumns(
        {
            EARLIEST: F.min(F.when(says_more, F.col(EARLIEST))).over(of_key),
            LATEST: F.max(F.when(says_more, F.col(LATEST))).over(of_key),
            # what shows a state again also shows that the key is there, which matters to one that was deleted
            SHOWN_APART: F.max(SHOWN_APART).over(of_key),
        }
    )
    reopened = F.col(REBUILDS) | (says_more & F.col(REOPENS))
    comes_back = F.col(SHOWN_APART) & F.col(c.IS_DELETED)
    needs = F.coalesce(reopened | comes_back | (F.col(HELD).isNotNull() & _is_split(schema)), F.lit(False))
    return spanned.withColumn(REBUILDS, needs).drop(_MOVES, _SHOWN_AGAIN, REOPENS, EARLIEST, LATEST, SHOWN_APART)


def _with_shown_again(counted: DataFrame, schema: EntitySchema, *, snapshots: bool) -> DataFrame:
    """The rows with whether they are rows of a snapshot that merely show again what is held. Grain: unchanged."""
    if not snapshots:
        return counted.withColumn(_SHOWN_AGAIN, F.lit(False))
    # of versions that start at one instant, the last one of the source's chain covers what comes after
    in_chain = (F.col(c.AT), F.col(HELD).isNull(), F.col(HELD)[c.SOURCE_EFFECTIVE_TO].asc_nulls_last())
    by_source = Window.partitionBy(c.BK, c.SOURCE_SYSTEM).orderBy(*in_chain)
    version = F.when(F.col(HELD).isNotNull(), F.struct(*map(c.col, _OF_VERSION)))
    covering = F.last(version, ignorenulls=True).over(by_source.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return counted.withColumn(_COVERING, covering).withColumn(_SHOWN_AGAIN, _is_shown_again(schema)).drop(_COVERING)


def _with_unsure_order(ordered: DataFrame, *, lazy: bool) -> DataFrame:
    """The statements with a rebuild for those that a file's name puts after another. Grain: unchanged.

    Copies count by the first of their files' names, and a held version has one file's name, whichever came first. So its
    place among statements that the other tiebreakers leave equal is not known once it was seen again.
    """
    rank = F.struct(c.AT, c.RANK, SEQUENCE_ORDER, c.IS_DELETED)
    ties = rank.eqNullSafe(F.lag(rank).over(in_place())) | rank.eqNullSafe(F.lead(rank).over(in_place()))
    was_seen_again = F.lit(True) if lazy else F.col(HELD)[c.SEEN_COUNT] > 1
    unsure = F.col(HELD).isNotNull() & was_seen_again & ties
    return ordered.withColumn(REBUILDS, F.col(REBUILDS) | F.coalesce(unsure, F.lit(False)))


def _is_shown_again(schema: EntitySchema) -> Column:
    """Whether a new snapshot row repeats the state of the version it falls into, and comes after the statement that opened it."""
    held = F.col(_COVERING)
    same_state = is_snapshot() & (F.col(c.ATTR_HASH) == held[c.ATTR_HASH])
    same_rank = (F.col(c.RANK) == held[c.RANK]) & F.col(c.SEQUENCE).eqNullSafe(held[c.SEQUENCE])
    later_file = F.col(c.SOURCE_FILE) > held[c.SOURCE_FILE]
    comes_after = (F.col(c.AT) > held[c.EFFECTIVE_FROM]) | (same_rank & later_file)
    says_all = (F.size(held[c.INHERITED]) == 0) & ~held[c.IS_DELETED] & F.lit(not schema.untracked and not schema.propagate)
    return F.coalesce(F.col(HELD).isNull() & same_state & comes_after & says_all, F.lit(False))


def _is_split(schema: EntitySchema) -> Column:
    """Of a held version: whether something new falls between what it has absorbed, or before a delete that followed from its source."""
    held_until = F.col(HELD)[c.LAST_EVENT_TS]
    touched = (F.col(c.AT) <= F.col(LATEST)) & (held_until >= F.col(EARLIEST))
    falls_between = touched & (F.col(HELD)[c.SEEN_COUNT] > 1)
    deleted_by_source = F.col(c.OP).isin(c.TRUNCATE, c.ABSENT) & (F.col(c.AT) >= F.col(EARLIEST))
    inherits_again = F.col(EARLIEST) <= held_until if schema.propagate else F.lit(False)
    return falls_between | deleted_by_source | inherits_again


def _action(schema: EntitySchema, *, lazy: bool) -> Column:
    """What a version does to the table, given what was held of it."""
    skipped = SIGHTINGS if lazy else ()
    compared = [name for name in changing_columns(schema) if name not in skipped]
    same = every(f"{_comparable(name)} <=> {_comparable(f'{HELD}.{c.quoted(name)}', name)}" for name in compared)
    return F.when(~F.col(OPENS), DELETE).when(F.col(HELD).isNull(), INSERT).when(~F.expr(same), UPDATE).otherwise(KEEP)


def _comparable(value: Sql, name: str | None = None) -> Sql:
    """A value that can be compared: a map cannot, its sorted entries can."""
    column = value if name is not None else c.quoted(value)
    return f"array_sort(map_entries({column}))" if (name or value) == c.INHERITED else column


def _as_statements(concerned: DataFrame, source_level: Sequence[SourceLevel], schema: EntitySchema) -> DataFrame:
    """Held versions as the statements that opened them, with all they have absorbed since. Grain: unchanged."""
    # its successor may be a version that is over by now and not at hand: an end before all that is new stays as it is
    settled = F.when(F.col(c.EFFECTIVE_TO) < F.col(EARLIEST), F.col(c.EFFECTIVE_TO))
    working = {
        c.AT: F.col(c.EFFECTIVE_FROM),
        SPEAKS: F.lit(True),
        EARLIEST: F.col(c.EFFECTIVE_FROM),
        LATEST: F.col(c.EFFECTIVE_FROM),
        SHOWN_APART: F.lit(False),
        SETTLED: settled,
        HELD: F.struct(*(c.col(name) for name in changing_columns(schema))),
        REBUILDS: _no_facts(schema) & F.coalesce(_may_be_deleted(source_level), F.lit(False)),
    }
    recomputed = (c.EFFECTIVE_TO, c.IS_CURRENT, c.SOURCE_EFFECTIVE_TO, c.IS_SOURCE_CURRENT, c.CORRECTS)
    return concerned.withColumns(working).drop(*(name for name in SPAN if name not in working), *recomputed)


def _arriving(new: DataFrame, before: EvidenceState, source_level: Sequence[SourceLevel], known: Sequence[str]) -> DataFrame:
    """New statements beside held versions: each has been seen this once. Grain: unchanged."""
    deleted = F.lit(False)
    for each in source_level:
        spoke_before = (F.col(c.SOURCE_SYSTEM) == each.source) & (F.col(c.EVENT_TS) <= moment(each.at))
        deleted = deleted | (spoke_before & ~_is_shown(each, F.array(snapshot_of())))
    shown_at = F.when(is_snapshot() & (F.col(c.SNAPSHOT_TS) != F.col(c.EVENT_TS)), F.col(c.SNAPSHOT_TS))
    seen = {
        c.AT: F.col(c.EVENT_TS),
        SPEAKS: F.lit(True),
        c.FIRST_SEEN: F.col(c.INGEST_TS),
        c.LAST_SEEN: F.col(c.INGEST_TS),
        c.SEEN_COUNT: F.col(c.COPIES),
        c.LAST_EVENT_TS: F.col(c.EVENT_TS),
        EARLIEST: F.least(F.col(c.EVENT_TS), shown_at),
        LATEST: F.greatest(F.col(c.EVENT_TS), shown_at),
        SHOWN_APART: F.coalesce(shown_at.isNotNull(), F.lit(False)),
        REOPENS: F.coalesce(reopens(before), F.lit(False)),
        REBUILDS: F.coalesce(deleted, F.lit(False)),
    }
    needed = {*known} - {*SPAN, c.ASSERTED, c.FEED} | {c.LOAD_TYPE, c.AT, SPEAKS, REBUILDS, REOPENS, EARLIEST, LATEST, SHOWN_APART}
    timed = new.withColumns(seen)
    return timed.drop(*(name for name in timed.columns if name not in needed))


def _counted_once(together: DataFrame) -> DataFrame:
    """Copies of a statement counted with it, with whether they may move it in its order. Grain: one row per statement."""
    arrival = in_arrival(c.BK, c.STATEMENT_HASH, c.AT)
    same = all_of(arrival)
    held_file = F.first(F.when(F.col(HELD).isNotNull(), F.col(c.SOURCE_FILE)), ignorenulls=True).over(same)
    is_copy = F.col(HELD).isNull() & held_file.isNotNull()
    counted = together.withColumns(
        {
            "__karat_arrival": F.row_number().over(arrival),
            c.FIRST_SEEN: F.min(c.FIRST_SEEN).over(same),
            c.LAST_SEEN: F.max(c.LAST_SEEN).over(same),
            c.SEEN_COUNT: F.sum(c.SEEN_COUNT).over(same),
            ORDER_FILE: F.min(c.SOURCE_FILE).over(same),
            REBUILDS: F.max(REBUILDS).over(same),
            REOPENS: F.max(REOPENS).over(same),
            # of versions of one instant the file decides; and the one that counts now may say other things of those it absorbed
            _MOVES: is_copy | F.coalesce(F.min(c.SOURCE_FILE).over(same) < held_file, F.lit(False)),
            # clocks may run back: a copy that counts as the first one stands for the held version all the same
            **{name: F.first(name, ignorenulls=True).over(same) for name in (HELD, SETTLED)},
        }
    )
    return counted.where(F.col("__karat_arrival") == 1).drop("__karat_arrival")


def _is_shown(each: SourceLevel, shown: Column) -> Column:
    """Whether a key is shown by the snapshot that was complete; a truncate shows nothing."""
    if each.op != c.ABSENT:
        return F.lit(False)
    return F.coalesce(F.array_contains(shown, f"{micros_of(each.at)}@{each.feed}"), F.lit(False))


def _no_facts(schema: EntitySchema) -> Column:
    """Facts do not vanish because a source empties its table."""
    return F.lit(not schema.is_transaction)
