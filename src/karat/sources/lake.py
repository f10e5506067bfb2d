"""A lake table by watermark: a bounded read, above `lower` less the lookback, up to and including `upper`.

Rows without a watermark belong to no bound; they are always read, so that nothing can pass unseen.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.temporal.columns import REASON, col
from karat.temporal.moments import from_micros, interval, moment


@dataclass(frozen=True)
class Bounds:
    """(lower - lookback, upper] on one column; an absent bound is open."""

    column: str
    lookback: str
    lower: datetime | None = None
    upper: datetime | None = None

    def up_to(self, upper: datetime | None) -> "Bounds":
        """The same bounds, closed above."""
        return replace(self, upper=upper)


@dataclass(frozen=True)
class Measure:
    """What a batch holds, from one scan of it."""

    rows: int
    refused: int
    highest: datetime | None
    """The highest watermark in it; None when no row has one."""


def rows_between(rows: DataFrame, bounds: Bounds) -> DataFrame:
    """The rows inside the bounds. Grain: as the table's."""
    mark = col(bounds.column).cast("timestamp")
    inside = F.lit(True)
    if bounds.lower is not None:
        inside = mark > moment(bounds.lower) - interval(bounds.lookback)
    if bounds.upper is not None:
        inside = inside & (mark <= moment(bounds.upper))
    unbounded = bounds.lower is None and bounds.upper is None
    return rows if unbounded else rows.where(mark.isNull() | inside)


def measure(rows: DataFrame, watermark: str) -> Measure:
    """How many rows, how many of them refused, and how far they reach, from one aggregate."""
    found = rows.agg(
        F.count(F.lit(1)),
        F.count_if(F.col(REASON).isNotNull()),
        F.max(F.unix_micros(col(watermark).cast("timestamp"))),
    ).first()
    if found is None:
        return Measure(0, 0, None)
    count, refused, highest = found
    return Measure(count, refused, None if highest is None else from_micros(highest))
