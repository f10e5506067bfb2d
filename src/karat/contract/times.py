"""Texts and values to points in time, in years every reader of the tables can hold."""

from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.moments import micros_of
from karat.temporal.sql import Sql, literal

_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
BEGINS_WITH_A_DATE: Final = r"^\s*[+-]?\d{4,6}(?:-|\s*$)"
"""Spark takes 10:00 for ten o'clock of the day the job runs: a time that changes with every run is none."""
_EPOCHS: Final = {10: 1_000_000, 13: 1_000, 16: 1}
"""Microseconds in a unit, by how many digits a moment since 2001 has in it."""


def told_time(value: Sql, data_type: T.DataType) -> Sql:
    """The point in time a value tells, in whatever year; null where it tells none.

    Texts are ISO dates and times, with or without an offset (UTC), or whole seconds, milli-, micro- or nanoseconds since 1970.
    """
    match data_type:
        case T.TimestampType() | T.TimestampNTZType() | T.DateType():
            return f"CAST({value} AS TIMESTAMP)"
        case T.StringType():
            return time_in(value)
        case _:
            return time_in(f"CAST({value} AS STRING)")


def time_in(text: Sql) -> Sql:
    """The point in time a text tells, in whatever year."""
    digits = f"trim({text})"
    told = [f"WHEN rlike({text}, {literal(BEGINS_WITH_A_DATE)}) THEN try_cast({text} AS TIMESTAMP)"]
    for length, micros in _EPOCHS.items():
        pattern = literal(rf"^\d{{{length}}}$")
        told.append(f"WHEN rlike({digits}, {pattern}) THEN timestamp_micros(try_cast({digits} AS BIGINT) * {micros})")
    nanos = f"try_cast(substring({digits}, 1, 16) AS BIGINT)"
    return f"CASE {' '.join(told)} WHEN rlike({digits}, {literal('^[0-9]{19}$')}) THEN timestamp_micros({nanos}) END"


def epoch_time(text: Column, micros: int) -> Column:
    """The point in time a text of whole units since 1970 tells; a unit is so many microseconds."""
    return F.timestamp_micros(F.try_multiply(text.try_cast("bigint"), F.lit(micros).cast("bigint")))


def is_in_range(time: Sql) -> Sql:
    """Whether a point in time lies between the years 1 and 9999, UTC."""
    return f"{time} BETWEEN timestamp_micros({micros_of(_FIRST)}) AND timestamp_micros({micros_of(_LAST)})"
