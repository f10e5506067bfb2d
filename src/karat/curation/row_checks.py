"""Which rows may go on: a row without its key or its watermark is refused with a reason and kept in quarantine."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.temporal.columns import REASON, col

KEY_RULE = "business key is null"
WATERMARK_RULE = "watermark is null"


def with_reason(rows: DataFrame, required: Mapping[str, str]) -> DataFrame:
    """Every row with the first reason to refuse it, or null. `required`: column to the reason that its absence is."""
    broken = [F.when(col(name).isNull(), F.lit(reason)) for name, reason in required.items()]
    return rows.withColumn(REASON, F.coalesce(*broken, F.lit(None).cast("string")))


def requirements(keys: Sequence[str], watermark: str | None, columns: Sequence[str]) -> dict[str, str]:
    """Of the columns that are there, which may not be null, and the reason `rule: column` when one is."""
    present = {name.lower() for name in columns}
    required = {key: f"{KEY_RULE}: {key}" for key in keys if key.lower() in present}
    if watermark is not None and watermark.lower() in present:
        required.setdefault(watermark, f"{WATERMARK_RULE}: {watermark}")
    return required
