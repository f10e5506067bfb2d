"""Work done beside other work: a scan or a commit mostly waits for one core, and there are more."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

T = TypeVar("T")


@contextmanager
def beside(session: SparkSession, act: Callable[[], T]) -> Iterator[Callable[[], T]]:
    """The act begins at once on a thread of its own, in the stage's job group; call what is given to wait for its result.

    Of two acts on one session only one may commit, for the commit's number is among the session's settings.
    Whatever happens meanwhile, it has ended when this ends.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="karat-beside") as pool:
        yield pool.submit(inheritable_thread_target(session)(act)).result
