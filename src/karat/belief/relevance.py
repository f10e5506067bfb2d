"""Which assertions can still be a source's last word at some time, or from some time on.

A statement that speaks of every attribute overtakes everything its source said before it.

    CRM   name=Ann, status=A @1   status=B @2   name=Ann, status=C @3   name=Bea @4
          overtaken by @3         overtaken     stays                   stays            asked of @3 or later
"""

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.temporal.columns import BK, EVENT_TS, IS_DELETED, SNAPSHOT_TS, SOURCE_SYSTEM
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment
from karat.temporal.whose import says_all

_OVERTAKEN_BY: Final = "__karat_overtaken_by"


def relevant_at(assertions: DataFrame, schema: EntitySchema, valid_at: datetime | None) -> DataFrame:
    """The assertions that can be a source's last word at that time, or at the end of all time. Grain: unchanged."""
    if valid_at is None:
        return _without_overtaken(assertions, schema, F.lit(True))
    until_then = assertions.where(F.least(EVENT_TS, SNAPSHOT_TS) <= moment(valid_at))
    return _without_overtaken(until_then, schema, F.col(EVENT_TS) <= moment(valid_at))


def relevant_since(assertions: DataFrame, schema: EntitySchema, since: Column) -> DataFrame:
    """The assertions that can be a source's last word just before a time or at any after it. Grain: unchanged."""
    return _without_overtaken(assertions, schema, F.col(EVENT_TS) < since)


def _without_overtaken(assertions: DataFrame, schema: EntitySchema, in_time: Column) -> DataFrame:
    """The rows without those that a complete statement of the same source, itself in time, comes after."""
    overtakes = F.expr(says_all(schema.attributes)) & ~F.col(IS_DELETED) & in_time
    latest = F.max(F.when(overtakes, F.col(EVENT_TS))).over(Window.partitionBy(BK, SOURCE_SYSTEM))
    # a snapshot may show its row at a later time than the row's own
    still_counts = F.greatest(EVENT_TS, SNAPSHOT_TS) >= F.col(_OVERTAKEN_BY)
    marked = assertions.withColumn(_OVERTAKEN_BY, latest)
    about_sources = F.col(BK).isNull()
    return marked.where(about_sources | F.col(_OVERTAKEN_BY).isNull() | still_counts).drop(_OVERTAKEN_BY)
