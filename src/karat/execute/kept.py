"""Rows computed once, however often they are used."""

from types import MappingProxyType
from typing import Final

from pyspark.sql import DataFrame, SparkSession

WRITTEN_AS_KEPT: Final = MappingProxyType(
    {
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.merge.materializeSource": "none",
        "spark.databricks.delta.insertReplaceOnOrUsing.materializeSource": "none",
    }
)
"""Settings of a session all of whose commits write rows that are kept: they are the same however often Delta looks at them."""


def kept(rows: DataFrame, *, now: bool = False) -> DataFrame:
    """The rows, computed on first use, or now; what is built on them plans from here, not from where they came.

    A cache would save the computing but not the planning: every later step would analyse the whole way from the source again,
    and a long way takes seconds to plan for rows that take milliseconds to move. Spark lets the rows go when nothing refers to them.
    """
    return rows.localCheckpoint(eager=now)


def write_as_kept(session: SparkSession) -> None:
    """What this session writes from now on is kept: no second copy of it is made, and it is planned once."""
    for key, value in WRITTEN_AS_KEPT.items():
        session.conf.set(key, value)
