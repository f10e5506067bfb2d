"""Work done beside other work: a scan or a commit mostly waits for one core, and there are more."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar
from uuid import uuid4

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


def through(session: SparkSession, rows: DataFrame) -> DataFrame:
    """The same rows in this session: a commit is made by the settings of the session its rows are of."""
    if rows.sparkSession is session:
        return rows
    name = f"karat_{uuid4().hex}"
    rows.createGlobalTempView(name)
    try:
        return session.table(f"{session.conf.get('spark.sql.globalTempDatabase')}.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)


@contextmanager
def beside(session: SparkSession, act: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """The act begins at once on a thread of its own, in the stage's job group; call what is given to wait for its result.

    Of two acts on one session only one may commit, for the commit's number is among the session's settings.
    Whatever happens meanwhile, it has ended when this ends.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="karat-beside") as pool:
        yield pool.submit(inheritable_thread_target(session)(act)).result
