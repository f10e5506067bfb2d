"""Points in time and spans of it, exact to the microsecond and out of reach of any session's time zone."""

import re
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column
from pyspark.sql import functions as F

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)


def from_micros(micros: int) -> datetime:
    """The moment this many microseconds after 1970 began, UTC."""
    return EPOCH + timedelta(microseconds=micros)


def micros_of(value: datetime) -> int:
    """The other way round."""
    return (value - EPOCH) // timedelta(microseconds=1)


def moment(value: datetime) -> Column:
    """A point in time as a literal column."""
    return F.expr(f"timestamp_micros({micros_of(value)})")


def roughly(value: datetime, seen_from: datetime | None) -> datetime:
    """A moment at or shortly before the value, the same one for most values near it: the further away, the rougher, an hour at least.

    For bounds of searches, which only keep what is old out of the way. A time is written into the code that Spark compiles for a scan:
    with the exact one every batch would compile it anew, and the JVM would learn to run it anew, which takes longer than the scan. Where
    nothing is compiled the exact time is better: it lets fewer rows through. Seen from nowhere, it is exact.
    """
    if seen_from is None:
        return value
    unit = timedelta(hours=1)
    while unit * 16 <= abs(seen_from - value):
        unit *= 2
    past = (value - EPOCH) % unit
    return value - past if value - _FIRST >= past else value


def interval(text: str) -> Column:
    """Spark's interval for a text that configuration has already checked."""
    words = re.sub(r"(?i)^interval\s+", "", text)
    if words.startswith("'") and words.endswith("'"):
        words = words[1:-1]
    return F.expr(f"INTERVAL {words}") if "'" in words else F.expr(f"CAST('{words}' AS INTERVAL)")
