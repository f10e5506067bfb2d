"""Rows of a dimension that no source tells of: the reserved members, and the days of a calendar."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import CALENDAR_KEY, RESERVED, Dimension
from karat.gold.schema import (
    ADDED,
    BEGIN,
    CHANGE,
    COMMIT,
    COMMITTED_AT,
    DURABLE_KEY,
    EFFECTIVE_AT,
    HASHDIFF,
    IS_CURRENT,
    IS_DELETED,
    IS_SKELETON,
    VALID_FROM,
    VALID_TO,
)
from karat.temporal.columns import Names, col
from karat.temporal.moments import moment


def reserved_members(session: SparkSession, schema: T.StructType, dimension: Dimension) -> DataFrame:
    """The members for facts without one: missing, not applicable, not yet known, bad value. Texts say which. Grain: one row each."""
    rows = session.range(1).select(
        F.inline(F.array(*(F.struct(F.lit(key).alias("key"), F.lit(name).alias("name")) for key, name in RESERVED.items())))
    )
    open_end = F.lit(None) if dimension.open_end is None else moment(dimension.open_end)
    fixed: dict[str, Column] = {
        dimension.surrogate: F.col("key"),
        DURABLE_KEY: F.col("key"),
        VALID_FROM: moment(BEGIN),
        EFFECTIVE_AT: moment(BEGIN),
        VALID_TO: open_end,
        IS_CURRENT: F.lit(True),
        IS_DELETED: F.lit(False),
        IS_SKELETON: F.lit(False),
        HASHDIFF: F.lit(None),
    }
    keys = {name.lower() for name in dimension.keys}

    def value(field: T.StructField) -> Column:
        if field.name in fixed:
            return fixed[field.name]
        is_label = isinstance(field.dataType, T.StringType) and field.name.lower() not in keys
        return F.col("name") if is_label else F.lit(None)

    return rows.select(*(value(field).cast(field.dataType).alias(field.name) for field in schema))


def calendar_days(session: SparkSession, dimension: Dimension, at: Column) -> DataFrame:
    """A row for each day of the calendar, shaped as changes of a source. Grain: one row per day."""
    if dimension.calendar is None:
        return session.range(0)
    first, last, fiscal_start = dimension.calendar
    days = session.range((last - first).days + 1).select(F.date_add(F.lit(first), F.col("id").cast("int")).alias(CALENDAR_KEY))
    day = F.col(CALENDAR_KEY)
    fiscal = F.add_months(day, 12 - fiscal_start + 1 if fiscal_start > 1 else 0)
    columns = {
        "year": F.year(day),
        "quarter": F.quarter(day),
        "month": F.month(day),
        "month_name": F.date_format(day, "MMMM"),
        "day_of_month": F.dayofmonth(day),
        "day_of_year": F.dayofyear(day),
        "day_of_week": F.weekday(day) + 1,
        "day_name": F.date_format(day, "EEEE"),
        "iso_week": F.weekofyear(day),
        "iso_year": F.extract(F.lit("YEAROFWEEK"), day),
        "is_weekend": F.weekday(day) >= 5,  # noqa: PLR2004  (Saturday)
        "is_month_end": day == F.last_day(day),
        "month_start": F.trunc(day, "month"),
        "month_end": F.last_day(day),
        "fiscal_year": F.year(fiscal),
        "fiscal_quarter": F.quarter(fiscal),
    }
    told = days.select(day, *(column.alias(name) for name, column in columns.items()))
    return told.withColumns({CHANGE: F.lit("insert"), COMMIT: F.lit(0).cast("bigint"), COMMITTED_AT: at})


def date_key() -> Column:
    """The key of a day as people read it: 20260131."""
    day = F.col(CALENDAR_KEY)
    return (F.year(day) * 10_000 + F.month(day) * 100 + F.dayofmonth(day)).cast("bigint")


def without_reserved(held: DataFrame, dimension: Dimension) -> DataFrame:
    """Held rows less the reserved members. Grain: unchanged."""
    return held.where(~col(dimension.surrogate).isin(*RESERVED))


def columns_of(schema: T.StructType, dimension: Dimension) -> Names:
    """The user's own columns of a held dimension."""
    return tuple(name for name in schema.names if name not in ADDED and name != dimension.surrogate)
