"""A run that is killed: a process of its own that ends itself by SIGKILL just before one of its commits.

    python -m tests.support.killed_run FOLDER NUMBER

NUMBER counts the commits of the run from 1; one more than it makes is the moment after its last. With
PYSPARK_GATEWAY_PORT in the environment the process works in that JVM, which saves it the start of another; what a
later run can see is in the lake either way.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from karat import Project
from karat.lake.delta import DeltaTables
from karat.runner import run as runner

WRITES = ("merge", "replace", "append", "overwrite", "add_columns")


class Fuse:
    """Counts commits and burns at the one it was set to."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.lock = threading.Lock()

    def burn(self) -> None:
        with self.lock:
            self.left -= 1
            if self.left == 0:
                os.killpg(os.getpgrp(), signal.SIGKILL)  # with the JVM, where it is ours

    def before(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def fused(*arguments: Any, **more: Any) -> Any:  # noqa: ANN401  (whatever the act takes and gives)
            self.burn()
            return act(*arguments, **more)

        return fused

    def before_creating(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def fused(tables: DeltaTables, name: Any, *more: Any) -> Any:  # noqa: ANN401
            if not tables.exists(name):
                self.burn()
            return act(tables, name, *more)

        return fused

    def after(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def fused(*arguments: Any) -> Any:  # noqa: ANN401
            answer = act(*arguments)
            self.burn()
            return answer

        return fused


def session() -> SparkSession | None:
    """A session in the JVM we were told of; None when there is none."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    gateway: Any = launch_gateway()
    found = gateway.jvm.org.apache.spark.api.java.JavaSparkContext(gateway.jvm.org.apache.spark.SparkContext.getOrCreate())
    context = SparkContext(gateway=gateway, jsc=found, conf=SparkConf(_jvm=gateway.jvm, _jconf=found.getConf()))
    return SparkSession(context)


def main() -> None:
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    fuse = Fuse(number)
    own: Any = DeltaTables
    own.create = fuse.before_creating(DeltaTables.create)
    for name in WRITES:
        setattr(own, name, fuse.before(getattr(DeltaTables, name)))
    acting: Any = runner
    acting.write_audit = fuse.after(runner.write_audit)
    Project.open(folder, session()).run()


if __name__ == "__main__":
    main()
