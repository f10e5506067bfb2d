"""A batch that may have been delivered before: where all of it is on record, its versions were seen again and nothing else is asked."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.continuation import Past
from karat.bronze.difference import timeline_form
from karat.bronze.repeats import VERSION, beside_versions, can_be_told, filled, is_filled, seen_again
from karat.bronze.terms import Terms
from karat.execute.acts import Acts, settled_acts
from karat.execute.advance import takes_part
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.site import Site
from karat.execute.tally import Tally
from karat.temporal.columns import COPIES
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


def repeated(stamped: DataFrame, near: DataFrame | None, past: Past, terms: Terms) -> Repeated | None:
    """What is known if every row of a batch, computed by now, is a copy of what opened a held version near it; None if any is not."""
    if near is None:
        return None
    with interpreted(stamped.sparkSession):
        beside = kept(beside_versions(stamped, near, past, terms))
        is_copy = takes_part() & F.col(VERSION).isNotNull()
        found = beside.agg(
            F.count_if(~is_copy).alias("others"), F.count_if(~is_filled(terms)).alias("untold"), F.sum(F.col(COPIES) - 1).alias("copies")
        ).collect()[0]
        if found["others"]:
            return None
        acts = settled_acts(seen_again(beside, terms), timeline_form(terms))
    return Repeated(acts, found["copies"] or 0, None if found["untold"] else filled(beside, terms))
