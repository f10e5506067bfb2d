"""Statements that are on record and arrive once more: the versions they opened, or joined, were seen again, and nothing else follows.

A copy counts once, as its statement was first reconstructed, at that statement's place. The place depends on the first name among the
files that brought it and the reconstruction on which arrival was the first: a copy that is before its statement in either is no mere copy.

    held   CORE  status=A @3   from file b
    new    CORE  status=A @3   from file c     seen twice, that is all
    new    CORE  status=A @3   from file a     may come before what another statement says at 3: only the evidence tells

A statement that opened no version merely repeated another. Versions do not name it, but the evidence has its former arrivals, and the one
version of its source that reaches over its time has absorbed it.

    held   CORE  status=A from 3, last said at 7
    new    CORE  status=A @5   on record       the version was seen once more
    new    CORE  status=A @5   not on record   no copy at all
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.arrival import leaves_unsaid
from karat.bronze.continuation import Past
from karat.bronze.difference import timeline_form
from karat.bronze.inheritance import nobodys_word
from karat.bronze.standing import still_hears
from karat.temporal.columns import (
    ACTION,
    ATTR_HASH,
    COPIES,
    EFFECTIVE_FROM,
    EVENT_TS,
    INGEST_TS,
    INHERITED,
    IS_SOURCE_CURRENT,
    LAST_EVENT_TS,
    LAST_SEEN,
    RECORD_HASH,
    SEEN_COUNT,
    SK,
    SOURCE_FILE,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    TIME_BASIS,
    col,
    quoted,
)
from karat.temporal.difference import WAS_LIVE
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.whose import said

VERSION, HEARD, TELLS = "__karat_version", "__karat_heard", "__karat_tells"
"""Working: the version that a copy's statement opened or joined, null of what is no mere copy; what the statement heard when it came, and
whether it would be heard now as well."""
BESIDE = (VERSION, HEARD, TELLS)
_FIRST, _FILE, _MATCHES = "__karat_first", "__karat_first_file", "__karat_matches"


def can_be_told(past: Past, terms: EntitySchema) -> bool:
    """Whether a version is opened by just one statement at its own time, and shows how often it was seen."""
    return not (terms.swept or terms.shown_apart or past.unseen)


def beside_versions(new: DataFrame, held: DataFrame, past: Past, terms: EntitySchema) -> DataFrame:
    """Statements beside the versions that they opened when they first came. Grain: unchanged."""
    tells = F.expr(f"{SEEN_COUNT} = 1 AND {still_hears(terms, past)}")
    old = held.select(_version(terms), _heard(terms), tells.alias(TELLS))
    same = " AND ".join(
        f"new.{mine} = {VERSION}.{its}" for mine, its in ((SK, SK), (STATEMENT_HASH, STATEMENT_HASH), (EVENT_TS, EFFECTIVE_FROM))
    )
    comes_after = f"new.{INGEST_TS} > {VERSION}.{INGEST_TS} AND (new.{SOURCE_FILE} IS NULL OR new.{SOURCE_FILE} >= {VERSION}.{SOURCE_FILE})"
    # few on both sides: a merge join is a stage, a broadcast would be a job
    return new.alias("new").hint("merge").join(old, F.expr(f"{same} AND {comes_after}"), "left")


def beside_absorbing(new: DataFrame, former: DataFrame, held: DataFrame, past: Past, terms: EntitySchema) -> DataFrame:
    """Statements that opened none beside the versions that have absorbed them, given their former arrivals. Grain: unchanged.

    `held` are all versions of these keys that reach the statements' times.
    """
    told = former.where(F.col(TIME_BASIS).isNotNull()).select(
        SK, STATEMENT_HASH, INGEST_TS, RECORD_HASH, SOURCE_FILE, _heard(terms), F.expr(still_hears(terms, past)).alias(TELLS)
    )
    latest = [F.max_by(name, F.struct(INGEST_TS, RECORD_HASH)).alias(name) for name in (HEARD, TELLS)]
    on_record = told.groupBy(SK, STATEMENT_HASH).agg(F.min(INGEST_TS).alias(_FIRST), F.min(SOURCE_FILE).alias(_FILE), *latest)
    comes_after = f"{INGEST_TS} > {_FIRST} AND ({SOURCE_FILE} IS NULL OR {SOURCE_FILE} >= {_FILE})"
    copies = new.join(on_record.hint("merge"), [SK, STATEMENT_HASH], "left").alias("new")
    reaches = f"new.{EVENT_TS} BETWEEN {VERSION}.{EFFECTIVE_FROM} AND {VERSION}.{LAST_EVENT_TS}"
    same = f"new.{SK} = {VERSION}.{SK} AND new.{SOURCE_SYSTEM} = {VERSION}.{SOURCE_SYSTEM}"
    found = copies.join(held.select(_version(terms)).hint("merge"), F.expr(f"{same} AND {reaches} AND {comes_after}"), "left")
    # at the very instant one version ends and another begins, the order of equal times would have to be asked
    counted = found.withColumn(_MATCHES, F.count(VERSION).over(Window.partitionBy(RECORD_HASH)))
    one = counted.withColumn(VERSION, F.when(F.col(_MATCHES) == 1, F.col(VERSION)))
    return one.dropDuplicates([RECORD_HASH]).drop(_MATCHES, _FIRST, _FILE)


def is_filled(terms: EntitySchema) -> Column:
    """Of a copy beside its version: whether all it leaves unsaid is told."""
    return ~leaves_unsaid(terms) | F.coalesce(TELLS, F.lit(False))


def filled(copies: DataFrame, terms: EntitySchema) -> DataFrame:
    """Copies beside their versions, with what they leave unsaid as it was heard. Grain: unchanged."""
    unsaid = leaves_unsaid(terms)
    heard = {name: F.when(unsaid & ~F.expr(said(name)), F.col(HEARD)[name]).otherwise(col(name)) for name in terms.attributes}
    heard[INHERITED] = F.when(unsaid, F.col(HEARD)[INHERITED]).otherwise(nobodys_word())
    heard[ATTR_HASH] = F.when(unsaid, F.col(HEARD)[ATTR_HASH]).otherwise(F.col(ATTR_HASH))
    return copies.withColumns(heard).drop(*BESIDE)


def seen_again(copies: DataFrame, terms: EntitySchema) -> DataFrame:
    """The acts on the versions beside which copies stand. Grain: one row per version."""
    form = timeline_form(terms)
    seen = copies.groupBy(f"{VERSION}.{SK}", f"{VERSION}.{STATEMENT_HASH}").agg(
        F.first(VERSION).alias("old"), F.max(INGEST_TS).alias("last"), F.sum(COPIES).alias("copies")
    )
    changed = {LAST_SEEN: f"greatest(old.{LAST_SEEN}, last)", SEEN_COUNT: f"old.{SEEN_COUNT} + copies"}
    values = [f"{changed.get(name, f'old.{quoted(name)}')} AS {quoted(name)}" for name in form.columns]
    was_live = f"old.{IS_SOURCE_CURRENT}" if form.live else "true"
    return seen.selectExpr(f"'update' AS {ACTION}", f"{was_live} AS {WAS_LIVE}", *values)


def _version(terms: EntitySchema) -> Column:
    return F.struct(*(col(name) for name in timeline_form(terms).columns)).alias(VERSION)


def _heard(terms: EntitySchema) -> Column:
    """Of a version or an assertion: its state and whose word each part of it is."""
    return F.struct(*(col(name) for name in (*terms.attributes, INHERITED, ATTR_HASH))).alias(HEARD)
