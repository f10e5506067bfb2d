"""Statements that are on record and arrive once more: the versions they opened were seen again, and nothing else follows.

A copy counts once, as its statement was first reconstructed, at that statement's place. The place depends on the first name among the
files that brought it and the reconstruction on which arrival was the first: a copy that is before its statement in either is no mere copy.

    held   CORE  status=A @3   from file b
    new    CORE  status=A @3   from file c     seen twice, that is all
    new    CORE  status=A @3   from file a     may come before what another statement says at 3: only the evidence tells
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import leaves_unsaid
from karat.bronze.continuation import Past
from karat.bronze.difference import timeline_form
from karat.bronze.inheritance import nobodys_word
from karat.bronze.standing import says_what_it_heard
from karat.bronze.terms import Terms
from karat.temporal.columns import (
    ACT,
    ATTR_HASH,
    COPIES,
    EFFECTIVE_FROM,
    EVENT_TS,
    INGEST_TS,
    INHERITED,
    IS_SOURCE_CURRENT,
    LAST_SEEN,
    SEEN_COUNT,
    SK,
    SOURCE_FILE,
    STATEMENT_HASH,
    col,
    quoted,
)
from karat.temporal.difference import WAS_LIVE
from karat.temporal.whose import said

VERSION, TELLS = "__karat_version", "__karat_tells"
"""Working: the version that a copy's statement opened, null of what is no mere copy; whether it shows what would be heard now as well."""


def can_be_told(past: Past, terms: Terms) -> bool:
    """Whether a version is opened by just one statement at its own time, and shows how often it was seen."""
    return not (terms.swept or terms.shown_apart or past.unseen)


def beside_versions(new: DataFrame, held: DataFrame, past: Past, terms: Terms) -> DataFrame:
    """Statements beside the versions that they opened when they first came. Grain: unchanged."""
    version = F.struct(*(col(name) for name in timeline_form(terms).columns))
    old = held.select(version.alias(VERSION), says_what_it_heard(terms, past).alias(TELLS))
    same = " AND ".join(
        f"new.{mine} = {VERSION}.{its}" for mine, its in ((SK, SK), (STATEMENT_HASH, STATEMENT_HASH), (EVENT_TS, EFFECTIVE_FROM))
    )
    comes_after = f"new.{INGEST_TS} > {VERSION}.{INGEST_TS} AND (new.{SOURCE_FILE} IS NULL OR new.{SOURCE_FILE} >= {VERSION}.{SOURCE_FILE})"
    # few on both sides: a merge join is a stage, a broadcast would be a job
    return new.alias("new").hint("merge").join(old, F.expr(f"{same} AND {comes_after}"), "left")


def is_filled(terms: Terms) -> Column:
    """Of a copy beside its version: whether all it leaves unsaid is told."""
    return ~leaves_unsaid(terms) | F.col(TELLS)


def filled(copies: DataFrame, terms: Terms) -> DataFrame:
    """Copies beside their versions, with what they leave unsaid as these have it. Grain: unchanged."""
    unsaid = leaves_unsaid(terms)
    heard = {name: F.when(unsaid & ~F.expr(said(name)), F.col(VERSION)[name]).otherwise(col(name)) for name in terms.attributes}
    heard[INHERITED] = F.when(unsaid, F.col(VERSION)[INHERITED]).otherwise(nobodys_word())
    heard[ATTR_HASH] = F.when(unsaid, F.col(VERSION)[ATTR_HASH]).otherwise(F.col(ATTR_HASH))
    return copies.withColumns(heard).drop(VERSION, TELLS)


def seen_again(copies: DataFrame, terms: Terms) -> DataFrame:
    """The acts on the versions beside which copies stand. Grain: one row per version."""
    form = timeline_form(terms)
    seen = copies.groupBy(f"{VERSION}.{SK}", f"{VERSION}.{STATEMENT_HASH}").agg(
        F.first(VERSION).alias("old"), F.max(INGEST_TS).alias("last"), F.sum(COPIES).alias("copies")
    )
    changed = {LAST_SEEN: f"greatest(old.{LAST_SEEN}, last)", SEEN_COUNT: f"old.{SEEN_COUNT} + copies"}
    values = [f"{changed.get(name, f'old.{quoted(name)}')} AS {quoted(name)}" for name in form.columns]
    was_live = f"old.{IS_SOURCE_CURRENT}" if form.live else "true"
    return seen.selectExpr(f"'update' AS {ACT}", f"{was_live} AS {WAS_LIVE}", *values)
