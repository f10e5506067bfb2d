"""Raw records to images: what a record says of one row, taken out of whatever it is wrapped in.

The image frame has the raw frame's columns, FIELDS (and ROW) now those of the image, and what the envelope implies: op, time and
sequence. KIND tells tombstones and messages about something else (`ignored`) from rows.
"""

from typing import assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import FeedOf
from karat.contract.change_streams import debezium, goldengate
from karat.contract.columns import DOCUMENT, IMPLIED_OP, IMPLIED_SEQUENCE, IMPLIED_TIME, KIND
from karat.contract.payloads import payload
from karat.sources.raw import BROKEN, CHANGE, COMMIT, COMMITTED_AT, FIELDS, FILE, GONE, LINE, PATH, ROW, no_text


def images(raw: DataFrame, feed: FeedOf) -> DataFrame:
    """The image of every record. Grain: one row per record."""
    match feed.feed.envelope:
        case "flat":
            return flat(raw)
        case "debezium":
            return debezium(raw)
        case "goldengate":
            return goldengate(raw)
        case "payload":
            return payload(raw, feed.feed)
        case _:
            assert_never(feed.feed.envelope)


def flat(raw: DataFrame) -> DataFrame:
    """The record is the image; of a change feed's rows the deletes are known. Grain: one row per record."""
    passed = [name for name in (LINE, FIELDS, ROW, PATH, FILE, BROKEN, CHANGE, COMMIT, COMMITTED_AT) if name in raw.columns]
    says = F.col(FIELDS).isNotNull() | F.col(BROKEN).isNotNull()
    return raw.select(
        *passed,
        F.when(says, F.lit("row")).otherwise(F.lit("ignored")).alias(KIND),
        _implied_op(raw).alias(IMPLIED_OP),
        F.lit(None).cast("timestamp").alias(IMPLIED_TIME),
        no_text().alias(IMPLIED_SEQUENCE),
        no_text().alias(DOCUMENT),
    )


def _implied_op(raw: DataFrame) -> Column:
    return F.when(F.col(CHANGE).isin(*GONE), F.lit("d")) if CHANGE in raw.columns else no_text()
