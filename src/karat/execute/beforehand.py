"""What is looked up for a batch before it lands: the held versions it may concern, and what its statements leave to be inherited."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.bronze.arrival import UNHEARD, complete_as_said, heard, leaves_unsaid, reconstructed
from karat.bronze.continuation import Past
from karat.bronze.shape import assertions_schema, timeline_schema
from karat.bronze.standing import as_assertions, heard_from, stands_for_all
from karat.execute.advance import FEW_NAMED, Ground, versions_near
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.picked import not_before, of_keys, one_of, picked
from karat.execute.survey import FOREVER
from karat.execute.tally import Tally
from karat.temporal.columns import (
    ATTR_HASH,
    BK,
    EVENT_TS,
    INGEST_TS,
    INHERITED,
    RECORD_HASH,
    SK,
    SOURCE_EFFECTIVE_TO,
    SOURCE_FILE,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    TIME_BASIS,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, moment, roughly
from karat.temporal.sketch import FEW_KEYS, may_be_among
from karat.temporal.sql import Sql, every


@dataclass(frozen=True)
class Untold:
    """Of whom held versions do not tell enough."""

    keys: tuple[str, ...] = ()
    """By `bk`."""
    named: tuple[bytes, ...] = ()
    """By `sk`."""
    heard_from: datetime | None = None
    """Nothing said of an earlier time can be heard about them any more; None: everything may be."""


def near_versions(tally: Tally, reached: datetime | None, ground: Ground, *, now: bool) -> DataFrame | None:
    """The held versions the batch may concern, and few others, looked up now or on first use; None where they are too many.

    `reached` is the latest time anybody has spoken of.
    """
    if tally.read > FEW_KEYS:
        return None
    found = _versions_picked(tally, ground)
    if found is not None:
        return found
    since = tally.earliest and roughly(tally.earliest, reached)
    held = versions_near(ground, tally.keys, since)
    return kept(held if since else held.where(F.lit(False)), now=now)


def untold_by(near: DataFrame, tally: Tally, past: Past, terms: EntitySchema) -> Untold:
    """The keys with something left unsaid about which these versions do not tell enough; by then the versions have been looked up."""
    leaves = near.where(may_be_among(SK, tally.unsaid_keys))
    first = F.min(F.coalesce(F.unix_micros(heard_from(terms)), F.lit(FOREVER)))
    told = leaves.withColumn("stands", stands_for_all(terms, past))
    keys = told.groupBy(BK, SK).agg(F.min("stands").alias("told"), first.alias("first")).where("NOT told")
    with interpreted(near.sparkSession):
        found = keys.agg(F.collect_set(BK).alias("keys"), F.collect_set(SK).alias("named"), F.min("first").alias("first")).collect()[0]
    is_bounded = found["first"] not in (None, FOREVER)
    return Untold(tuple(sorted(found["keys"])), tuple(map(bytes, found["named"])), from_micros(found["first"]) if is_bounded else None)


def told_by(near: DataFrame, tally: Tally, terms: EntitySchema) -> DataFrame:
    """What these versions say about the keys with something left unsaid, and about few others, as assertions. Grain: a word."""
    return near.where(may_be_among(SK, tally.unsaid_keys)).transform(as_assertions, terms)


def prior_of(near: DataFrame, untold: Untold, tally: Tally, ground: Ground) -> DataFrame | None:
    """What these versions tell, and what the evidence does about the others; None where these are too many. Grain: as the evidence."""
    if len(untold.keys) > FEW_NAMED:
        return None
    since = untold.heard_from and roughly(untold.heard_from, tally.earliest or untold.heard_from)
    bounds = [of_keys(untold.named)] + ([not_before(EVENT_TS, since)] if since else [])
    evidence = None if tally.named is None else _evidence_picked(every(bounds), ground)
    if evidence is None:
        evidence = ground.evidence.where(F.col(BK).isin(*untold.keys))
        evidence = kept(heard(evidence.where(F.col(EVENT_TS) >= moment(since)) if since else evidence))
    told = told_by(near, tally, ground.terms).where(~F.col(BK).isin(*untold.keys))
    return evidence.unionByName(told, allowMissingColumns=True)


def prior_in_evidence(stamped: DataFrame, tally: Tally, ground: Ground) -> DataFrame:
    """What was ever said about keys with something left unsaid, and about few others. Grain: as the evidence."""
    if tally.named:
        found = _evidence_picked(of_keys(tally.named, or_of_none=ground.terms.swept), ground)
        if found is not None:
            return found
    evidence = ground.evidence
    if tally.read <= FEW_KEYS:  # what is about others changes nothing, it only takes part in vain
        prior = evidence.where(F.col(BK).isNotNull()).where(may_be_among(SK, tally.unsaid_keys))
    else:
        prior = about(evidence, stamped.where(leaves_unsaid(ground.terms)).select(SK).distinct())
    return kept(heard(prior.unionByName(of_sources(evidence)) if ground.terms.swept else prior))


def said_before(statements: Iterable[tuple[bytes, bytes]], since: datetime, ground: Ground) -> DataFrame | None:
    """The arrivals on record of statements, by `sk` and `statement_hash`; None where only Spark can tell. Grain: as the evidence.

    None of them speaks of a time before `since`. Of their columns those that tell how they came, and what they heard.
    """
    keys, hashes = zip(*statements, strict=True)
    told = (
        SK,
        STATEMENT_HASH,
        RECORD_HASH,
        INGEST_TS,
        SOURCE_FILE,
        SOURCE_SYSTEM,
        TIME_BASIS,
        *ground.terms.attributes,
        INHERITED,
        ATTR_HASH,
    )
    types = {field.name: field for field in assertions_schema(ground.terms)}
    bounds = [of_keys(keys), one_of(STATEMENT_HASH, hashes), not_before(EVENT_TS, since)]
    return picked(ground.tables, ground.entity.assertions, every(bounds), T.StructType([types[name] for name in told]))


def _versions_picked(tally: Tally, ground: Ground) -> DataFrame | None:
    """The held versions of just these keys, where they can be picked out."""
    since = tally.earliest
    if not tally.named or since is None:
        return None
    ends = "true" if ground.terms.is_transaction else f"({SOURCE_EFFECTIVE_TO} IS NULL OR {not_before(SOURCE_EFFECTIVE_TO, since)})"
    return picked(ground.tables, ground.entity.timeline, every([ends, of_keys(tally.named)]), timeline_schema(ground.terms))


def _evidence_picked(where: Sql, ground: Ground) -> DataFrame | None:
    """Of the assertions that meet a condition what can be heard, where they can be picked out. Grain: as the evidence."""
    columns = [field for field in assertions_schema(ground.terms) if field.name not in UNHEARD]
    return picked(ground.tables, ground.entity.assertions, where, T.StructType(columns))


def filled_in(stamped: DataFrame, prior: DataFrame | None, tally: Tally, terms: EntitySchema) -> DataFrame:
    """The batch with what it leaves unsaid taken from what was said before; None: it leaves nothing. Grain: unchanged."""
    if prior is None:
        return stamped.transform(complete_as_said)
    if tally.read > FEW_KEYS:
        return stamped.transform(reconstructed, prior, terms)
    # mostly everything is said; whoever has nothing to inherit need not be put in order with the others and what sources say of all
    may_inherit = F.col(SK).isNull() | F.expr(may_be_among(SK, tally.unsaid_keys))
    rest = stamped.where(~may_inherit).transform(complete_as_said)
    return stamped.where(may_inherit).transform(reconstructed, prior, terms).unionByName(rest)
