"""The shape of every quarantine: refused rows with their reason, each on record once."""

from typing import Final

from pyspark.sql import types as T

_TEXT, _TIME = T.StringType(), T.TimestampType()
QUARANTINE: Final = T.StructType(
    [
        T.StructField("reason", _TEXT),
        T.StructField("rule", _TEXT),
        T.StructField("feed", _TEXT),
        T.StructField("source_path", _TEXT),
        T.StructField("source_file", _TEXT),
        T.StructField("original", _TEXT),
        T.StructField("ingest_ts", _TIME),
        T.StructField("ingest_run_id", _TEXT),
        T.StructField("quarantine_id", _TEXT),
        T.StructField("replayed_by", _TEXT),
    ]
)
