"""Columns that only ride along, packed into one: windows then copy a row's attributes as a whole instead of one by one."""

from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.temporal.columns import col

RIDERS: Final = "__karat_riders"
"""Working: the packed columns."""


def packed(rows: DataFrame, names: Collection[str]) -> DataFrame:
    """The rows with these columns, as far as they are there, as one. Grain: unchanged."""
    riding = [name for name in rows.columns if name in names]
    others = [col(name) for name in rows.columns if name not in names]
    return rows.select(*others, F.struct(*map(col, riding)).alias(RIDERS)) if riding else rows


def unpacked(rows: DataFrame) -> DataFrame:
    """The rows with the packed columns as they were. Grain: unchanged."""
    return rows.select("*", f"{RIDERS}.*").drop(RIDERS) if RIDERS in rows.columns else rows
