"""Rows that are read more than once in a stage are computed once, and staged under the lake.

The staged rows are files that every executor can read again, so a lost executor costs no more than its own task. They
also end the plan: what is derived from them is planned from the files, however long it took to compute them.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from karat.temporal.columns import quoted

STAGING: Final = "spark.karat.staging"
"""The setting of a stage's session that says where rows are staged; by default in Spark's warehouse."""
_DATABASE: Final = "karat_staging"


@contextmanager
def materialized(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed and staged at once, to the end of the block."""
    session = rows.sparkSession
    table = f"{_staging(session)}.{quoted(f'rows_{uuid.uuid4().hex}')}"
    try:
        rows.write.format("parquet").saveAsTable(table)
        yield session.table(table)
    finally:
        session.sql(f"DROP TABLE IF EXISTS {table}")


def _staging(session: SparkSession) -> str:
    """The database of staged rows: dropping one of its tables removes its files, on every storage."""
    folder = session.conf.get(STAGING, "")
    name = f"spark_catalog.{_DATABASE}"
    location = ""
    if folder:
        name += f"_{uuid.uuid5(uuid.NAMESPACE_URL, folder).hex}"
        location = f" LOCATION '{folder}'"
    session.sql(f"CREATE DATABASE IF NOT EXISTS {name}{location}")
    return name
