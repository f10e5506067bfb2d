"""Rows that are read more than once in a stage are computed once."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame


@contextmanager
def materialized(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, kept from their first use to the end of the block.

    Spark keeps what they were computed from: the partitions of a lost executor are computed again.
    """
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()
