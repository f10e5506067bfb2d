"""What cannot matter any more at one time, or from one on: whatever a later complete statement of the same source has overtaken.

CRM   name=Ann, status=A @1      status=B @2      name=Ann, status=C @3      name=Bea @4
overtaken                  overtaken        says everything            CRM's last words are here and to the left of it
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.inheritance import leaves_something_unsaid
from karat.temporal.columns import BK, EVENT_TS, IS_DELETED, SNAPSHOT_TS, SOURCE_SYSTEM
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment


def not_overtaken(assertions: DataFrame, terms: EntitySchema, valid_at: datetime | None) -> DataFrame:
    """The assertions that can still be somebody's last word at that time, or at the end of all time. Grain: unchanged."""
    if valid_at is None:
        return _without_overtaken(assertions, terms, F.lit(True))
    spoken = assertions.where(F.least(EVENT_TS, SNAPSHOT_TS) <= moment(valid_at))
    return _without_overtaken(spoken, terms, F.col(EVENT_TS) <= moment(valid_at))


def heard_since(assertions: DataFrame, terms: EntitySchema, since: datetime) -> DataFrame:
    """The assertions that can be somebody's last word just before a time or at any after it. Grain: unchanged."""
    return _without_overtaken(assertions, terms, F.col(EVENT_TS) < moment(since))


def _without_overtaken(spoken: DataFrame, terms: EntitySchema, in_time: Column) -> DataFrame:
    """Those that no complete statement of the same source, itself in time, comes after; statements about everything are left alone."""
    says_all = ~leaves_something_unsaid(terms) & ~F.col(IS_DELETED) & in_time
    latest = F.max(F.when(says_all, F.col(EVENT_TS))).over(Window.partitionBy(BK, SOURCE_SYSTEM))
    # a snapshot may show its row at a later time than the row's own
    still_counts = F.greatest(EVENT_TS, SNAPSHOT_TS) >= F.col("__karat_overtaken_by")
    marked = spoken.withColumn("__karat_overtaken_by", latest)
    kept = F.col(BK).isNull() | F.col("__karat_overtaken_by").isNull() | still_counts
    return marked.where(kept).drop("__karat_overtaken_by")
