"""Rows that a target of the star refuses: to quarantine with their reason, before anything else is written."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.gold.context import Account, StarContext
from karat.gold.schema import AT, KIND, UPSERT
from karat.gold.states import without_key
from karat.lake.quarantine import RefusedBy, record_refused
from karat.temporal.columns import REASON, Names, col
from karat.temporal.moments import moment


def refused_rows(states: DataFrame, keys: Names, what: str, effective_at: str | None = None) -> DataFrame:
    """The states with a reason where a row lacks its key or its time; deletes without a key say nothing and go. Grain: unchanged."""
    lacks = without_key(keys)
    reason = F.when(lacks, F.lit(f"null key: the {what} has no value"))
    if effective_at is not None:
        reason = reason.when(F.col(AT).isNull(), F.lit(f"null time: {effective_at} has no value"))
    said = F.when(F.col(KIND) == UPSERT, reason).cast("string")
    return states.where((F.col(KIND) == UPSERT) | ~lacks).withColumn(REASON, said)


def split_refused(states: DataFrame, columns: Names, context: StarContext, account: Account) -> DataFrame:
    """The admitted states; the others are on record afterwards. Grain: unchanged."""
    refused = states.where(F.col(REASON).isNotNull())
    count = refused.count()
    if count:
        record(refused.select(*map(col, columns), REASON), context)
        account.quarantined += count
        account.read += count
    return states.where(F.col(REASON).isNull()).drop(REASON)


def record(refused: DataFrame, context: StarContext) -> int:
    """Refused rows in the target's quarantine."""
    star = context.star
    feed = ", ".join(str(source.table) for source in star.sources)
    by = RefusedBy(star.table, star.quarantine, feed, star.place, moment(context.run.stamp.started_at))
    return record_refused(refused, by, context.tables, context.commit())
