"""What is looked up for a batch before it lands: the held versions it may concern, and what its statements leave to be inherited."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import heard, leaves_unsaid
from karat.bronze.continuation import Past
from karat.bronze.standing import as_assertions, heard_from, stands_for_all
from karat.execute.advance import Ground, versions_near
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.tally import Tally
from karat.temporal.columns import BK, EVENT_TS, SK
from karat.temporal.moments import from_micros, moment, roughly
from karat.temporal.sketch import FEW_KEYS, may_be_among

FEW_UNTOLD = 200
"""Keys that can be named in a search: files and pages that cannot hold them stay shut."""
FOREVER = -(2**63)


@dataclass(frozen=True)
class Near:
    """The held versions a batch may concern, and few others."""

    rows: DataFrame
    untold: tuple[str, ...]
    """Keys with something left unsaid about which these versions do not tell enough."""
    heard_from: datetime | None
    """Nothing said of an earlier time can be heard about them any more; None: everything may be."""


def near_versions(tally: Tally, since: datetime | None, past: Past, ground: Ground) -> Near | None:
    """The versions looked up; None where they are too many to be told beforehand."""
    if tally.read > FEW_KEYS:
        return None
    for setting, value in {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}.items():
        ground.tables.session.conf.set(setting, value)
    held = versions_near(ground, tally.keys, since)
    rows = kept(held if since else held.where(F.lit(False)))
    leaves = rows.where(may_be_among(SK, tally.unsaid_keys))
    lacks, heard_since = (
        F.max(~stands_for_all(ground.terms, past)),
        F.min(F.coalesce(F.unix_micros(heard_from(ground.terms)), F.lit(FOREVER))),
    )
    keys = leaves.groupBy(BK).agg(lacks.alias("lacks"), heard_since.alias("since")).where("lacks")
    with interpreted(ground.tables.session):
        found = keys.agg(F.collect_set(BK).alias("untold"), F.min("since").alias("since")).collect()[0]
    bounded = found["since"] not in (None, FOREVER)
    return Near(rows, tuple(sorted(found["untold"])), from_micros(found["since"]) if bounded else None)


def prior_of(stamped: DataFrame, tally: Tally, past: Past, near: Near | None, ground: Ground) -> DataFrame:
    """What was said about the keys of statements that leave something unsaid, as far as they can hear it, and about few others.

    By the versions where they tell, by the evidence where not. Grain: as the evidence.
    """
    terms = ground.terms
    shows_all = not (terms.is_transaction or terms.swept or terms.shown_apart or past.unseen)
    if near is None or not shows_all or len(near.untold) > FEW_UNTOLD:
        return _from_evidence(stamped, tally, ground)
    told = near.rows.where(may_be_among(SK, tally.unsaid_keys)).transform(as_assertions, terms)
    if not near.untold:
        return told
    evidence = ground.evidence.where(F.col(BK).isin(*near.untold))
    if near.heard_from is not None:
        evidence = evidence.where(F.col(EVENT_TS) >= moment(roughly(near.heard_from, tally.earliest or near.heard_from)))
    asked = kept(heard(evidence))
    return asked.unionByName(told.where(~F.col(BK).isin(*near.untold)), allowMissingColumns=True)


def _from_evidence(stamped: DataFrame, tally: Tally, ground: Ground) -> DataFrame:
    evidence = ground.evidence
    if tally.read <= FEW_KEYS:  # what is about others changes nothing, it only takes part in vain
        prior = evidence.where(F.col(BK).isNotNull()).where(may_be_among(SK, tally.unsaid_keys))
    else:
        prior = about(evidence, stamped.where(leaves_unsaid(ground.terms)).select(SK).distinct())
    return kept(heard(prior.unionByName(of_sources(evidence)) if ground.terms.swept else prior))
