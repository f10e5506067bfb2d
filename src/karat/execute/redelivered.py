"""A batch that may have been delivered before: where all of it is on record, its versions were seen again and nothing else follows."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from karat.bronze.continuation import Past
from karat.bronze.difference import timeline_form
from karat.bronze.repeats import BESIDE, VERSION, beside_absorbing, beside_versions, can_be_told, filled, is_filled, seen_again
from karat.execute.acts import Acts, settled_acts
from karat.execute.advance import Ground, takes_part
from karat.execute.beforehand import said_before
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.site import Site
from karat.execute.tally import Tally
from karat.temporal.columns import COPIES, EVENT_TS, SK, STATEMENT_HASH
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros
from karat.temporal.sketch import FEW_KEYS


@dataclass(frozen=True)
class Repeated:
    """What is known of a batch that says nothing but what is on record."""

    acts: Acts
    """What follows from it."""
    copies: int
    """Rows that say what another one of the batch says."""
    landing: DataFrame | None
    """The batch with what it leaves unsaid filled in; None where versions do not tell all of that."""


def may_be_redelivered(tally: Tally, past: Past, site: Site) -> bool:
    """Whether it is worth asking: few rows, some of them with a time, and nobody gets further than he had got before."""
    is_little = tally.earliest is not None and tally.read <= FEW_KEYS
    return is_little and can_be_told(past, site.terms) and not site.watch.gets_further(tally.watched)


def repeated(stamped: DataFrame, near: DataFrame | None, past: Past, ground: Ground) -> Repeated | None:
    """What is known if every row of a batch, computed by now, is a copy of what opened or joined a version near it; None if any is not."""
    if near is None:
        return None
    terms = ground.terms
    with interpreted(stamped.sparkSession):
        beside = kept(beside_versions(stamped, near, past, terms))
        found = _looked_over(beside, terms)
        if found["others"]:
            joined = _beside_absorbing(beside, found, near, past, ground)
            if joined is None:
                return None
            beside = joined
            found = _looked_over(beside, terms)
            if found["others"]:
                return None
        acts = settled_acts(seen_again(beside, terms), timeline_form(terms))
    return Repeated(acts, found["copies"] or 0, None if found["untold"] else filled(beside, terms))


def _looked_over(beside: DataFrame, terms: EntitySchema) -> Row:
    """How many rows there are, how many of them copies of nothing near, which statements these are, and how many are not filled in."""
    is_copy = takes_part() & F.col(VERSION).isNotNull()
    other = F.when(~is_copy & takes_part(), F.struct(SK, STATEMENT_HASH, F.unix_micros(EVENT_TS).alias("at")))
    return beside.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(~is_copy).alias("others"),
        F.count_if(~takes_part()).alias("strays"),
        F.collect_set(other).alias("statements"),
        F.count_if(~is_filled(terms)).alias("untold"),
        F.sum(F.col(COPIES) - 1).alias("copies"),
    ).collect()[0]


def _beside_absorbing(beside: DataFrame, found: Row, near: DataFrame, past: Past, ground: Ground) -> DataFrame | None:
    """The same with copies of what versions have absorbed beside these; None where that cannot be told, or not without Spark."""
    # a batch that is mostly new was not delivered before, it only speaks of the past: then nothing more is asked
    if found["strays"] or ground.terms.is_transaction or 2 * found["others"] > found["rows"]:
        return None
    statements = [(bytes(row[SK]), bytes(row[STATEMENT_HASH])) for row in found["statements"]]
    first = from_micros(min(row["at"] for row in found["statements"]))
    former = said_before(statements, first, ground)
    if former is None:
        return None
    others = beside.where(F.col(VERSION).isNull()).drop(*BESIDE)
    absorbed = beside_absorbing(others, former, near, past, ground.terms)
    return kept(beside.where(F.col(VERSION).isNotNull()).unionByName(absorbed))
