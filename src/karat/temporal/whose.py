"""Whose word a value is: the type that both a timeline and a belief tell it in."""

from typing import Final

from pyspark.sql import types as T

WHOSE: Final = T.StructType(
    [
        T.StructField("source_system", T.StringType()),
        T.StructField("source_event_ts", T.TimestampType()),
        T.StructField("record_hash", T.BinaryType()),
    ]
)
WHOSE_BY_ATTRIBUTE: Final = T.MapType(T.StringType(), WHOSE)
