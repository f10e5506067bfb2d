"""A batch made ready to land: what it leaves unsaid filled in, and the held versions near it looked up."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import collapsed_copies
from karat.bronze.continuation import Past
from karat.bronze.identity import HASH_FORMAT, told_apart
from karat.bronze.shape import assertion_columns
from karat.bronze.standing import tell_enough
from karat.contract.columns import GATE, KIND
from karat.execute.advance import FEW_TO_INTERPRET, Arrivals, InOrder, is_carried_on, takes_part
from karat.execute.beforehand import filled_in, near_versions, prior_in_evidence, prior_of, told_by, untold_by
from karat.execute.beside import beside
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.redelivered import Repeated, may_be_redelivered, repeated
from karat.execute.site import Site
from karat.execute.snapshots import Complete
from karat.execute.tally import Tally
from karat.temporal.columns import BATCH_SEQ, COPIES, ENTITY_TYPE, HASH_VERSION, INGEST_TS, RUN_ID
from karat.temporal.moments import moment
from karat.temporal.sketch import FEW_KEYS


@dataclass(frozen=True)
class Ready:
    """A batch that can land."""

    arrivals: Arrivals
    """What lands, and the held versions near it."""
    repeated: Repeated | None
    """What follows, where the batch says nothing but what is on record."""
    copies: int | None
    """Rows of the batch that say what another one says; None where the survey of what is carried on will tell."""


def made_ready(batch: DataFrame, complete: Complete | None, past: Past, tally: Tally, site: Site) -> Ready:
    """Everything that can be found out before the batch lands; held versions are looked up meanwhile."""
    session, ground = site.tables.session, site.ground
    swept = tuple(sorted({*tally.truncates, *(complete.until if complete else ())}))
    reached = tally.earliest and site.reached(tally)
    elsewhere, asked = replace(ground, tables=site.tables.apart()), bool(tally.unsaid) and tell_enough(past, site.terms)
    is_doubtful = not swept and may_be_redelivered(tally, past, site)
    is_later = not swept and tally.read <= FEW_KEYS and tell_enough(past, site.terms) and site.is_behind(tally)
    with beside(session, lambda: None if swept else near_versions(tally, reached, elsewhere, now=is_doubtful or not asked)) as near:
        stamped = _stamped(batch, complete, tally, site)
        waits = (asked or is_doubtful or is_later) and tally.read <= FEW_KEYS
        if waits and tally.copies != 0:  # otherwise nobody waits for the versions, or there is nothing to compute meanwhile
            with interpreted(session):
                stamped = kept(stamped, now=not is_later)
        in_order = _in_order(stamped, tally) if is_later else None
        again = repeated(stamped, near(), past, ground) if is_doubtful else None
        if again is not None and again.landing is not None:
            landing = _as_assertions(again.landing, tally, site)
        else:
            landing = _landing(stamped, near, past, tally, site)
        arrivals = Arrivals(landing, swept, past, tally.read, tally.earliest, near(), reached, in_order)
        if again is not None:
            return Ready(arrivals, again, again.copies)
        if is_carried_on(arrivals, ground):
            return Ready(arrivals, None, None)
        return Ready(arrivals, None, _copies(landing, tally))


def _in_order(stamped: DataFrame, tally: Tally) -> InOrder:
    """A batch later than anything on record, counted; it is computed afterwards."""
    if tally.copies is not None and tally.count is not None:
        return InOrder(tally.copies, tally.count)
    with interpreted(stamped.sparkSession):
        found = stamped.agg(F.sum(F.col(COPIES) - 1).alias("copies"), F.count_if(takes_part()).alias("count")).collect()[0]
    return InOrder(found["copies"] or 0, found["count"])


def _landing(stamped: DataFrame, near: Callable[[], DataFrame | None], past: Past, tally: Tally, site: Site) -> DataFrame:
    """What lands, computed on first use."""
    if not tally.unsaid:
        return _whole(stamped, None, tally, site)
    held, prior = near(), None
    if held is not None and tell_enough(past, site.terms):
        # mostly nothing is missing, and what follows then takes as long to put together as to find out
        with beside(held.sparkSession, partial(untold_by, held, tally, past, site.terms)) as untold:
            told = filled_in(stamped, told_by(held, tally, site.terms), tally, site.terms)
        if not untold().keys:
            return _as_assertions(told, tally, site)
        prior = prior_of(held, untold(), tally, site.ground)
    return _whole(stamped, prior_in_evidence(stamped, tally, site.ground) if prior is None else prior, tally, site)


def _stamped(batch: DataFrame, complete: Complete | None, tally: Tally, site: Site) -> DataFrame:
    """The admitted rows, told apart by now, with when they came. Grain: one row per statement and file, and per snapshot."""
    said = batch.where(F.col(KIND) == "row")
    if complete:
        said = said.unionByName(complete.frame.transform(told_apart, site.terms))
    stamp = {
        INGEST_TS: moment(site.world.stamp.started_at),
        RUN_ID: F.lit(site.world.stamp.run_id),
        BATCH_SEQ: F.lit(site.previous.sequence + 1),
        ENTITY_TYPE: F.lit(site.entity.declared.type),
        HASH_VERSION: F.lit(HASH_FORMAT),
    }
    if tally.copies == 0:
        return said.drop(*GATE).withColumns({COPIES: F.lit(1).cast("bigint"), **stamp})
    return said.drop(*GATE).transform(collapsed_copies).withColumns(stamp)


def _whole(stamped: DataFrame, prior: DataFrame | None, tally: Tally, site: Site) -> DataFrame:
    """The rows as assertions, what they left unsaid filled in. Grain: unchanged."""
    return _as_assertions(filled_in(stamped, prior, tally, site.terms), tally, site)


def _as_assertions(rows: DataFrame, tally: Tally, site: Site) -> DataFrame:
    """The rows as they land, computed on first use. Grain: unchanged."""
    with interpreted(site.tables.session, few=tally.read <= FEW_TO_INTERPRET):
        return kept(rows.selectExpr(*assertion_columns(site.terms)))


def _copies(landing: DataFrame, tally: Tally) -> int:
    """How many rows say what another one says; where they are not few, the batch is computed by then."""
    if tally.copies is not None:
        return tally.copies
    with interpreted(landing.sparkSession, few=tally.read <= FEW_TO_INTERPRET):
        return int(landing.agg(F.sum(F.col(COPIES) - 1)).collect()[0][0] or 0)
