"""Rows computed once, however often they are used."""

from pyspark.sql import DataFrame


def kept(rows: DataFrame, *, now: bool = False) -> DataFrame:
    """The rows, computed on first use, or now; what is built on them plans from here, not from where they came.

    A cache would save the computing but not the planning: every later step would analyse the whole way from the source again,
    and a long way takes seconds to plan for rows that take milliseconds to move. Spark lets the rows go when nothing refers to them.
    """
    return rows.localCheckpoint(eager=now)
