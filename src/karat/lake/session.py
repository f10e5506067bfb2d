"""The one place where a Spark session is made; everything else is handed one.

A profile is a set of Spark settings with a reason for each. What a user writes under `spark.conf` wins over the profile;
only lists that both may add to (jars, extensions) are joined, so that a driver's jar does not cost the user Delta.
"""

import atexit
import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from karat.config.settings import SparkSettings
from karat.errors import SetupError
from karat.lake.jars import ensure_jars, java_version

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_QUIET: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"

_ALWAYS: Final = MappingProxyType(
    {
        # one clock: a timestamp means the same on every machine and in every answer
        "spark.sql.session.timeZone": "UTC",
        # Spark's own default overflows at year 9999 for other readers of the files
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Delta's SQL and its tables
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # tables are found by path or by the user's own catalog: no Hive, no Derby folder in the working directory
        "spark.sql.catalogImplementation": "in-memory",
        # a note of the Python line for every column costs several round trips to the JVM; Karat's own errors name the setting
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # compiled code is found again by its text; with room for 100 pieces (the default) a batch would push out its own before the next
        "spark.sql.codegen.cache.maxEntries": "2000",
        # every query's plan is written out for the web page, whether or not anybody looks; in its long form that takes time from each batch
        "spark.sql.ui.explainMode": "simple",
        # Karat draws its own progress
        "spark.ui.showConsoleProgress": "false",
        # a port in use is somebody else's session, not a failure: try the next hundred
        "spark.port.maxRetries": "100",
    }
)

_SMALL: Final = MappingProxyType(
    {
        # the fast compiler only and the simplest collector: short jobs end before better code would have paid;
        # and room for what it compiles: the 48 MB it has by default are full after a few stages, and all later code is interpreted
        "spark.driver.defaultJavaOptions": f"{_QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
        "spark.driver.memory": "2g",
        # a web server costs most of a second and nobody looks at a short run
        "spark.ui.enabled": "false",
        # planning again after every exchange costs more than a few thousand rows can win back
        "spark.sql.adaptive.enabled": "false",
        # compiling Java for each stage takes longer than interpreting it over so few rows
        "spark.sql.codegen.wholeStage": "false",
        # nor for a single projection: a wide one takes tenths of a second to compile, in every task that meets it first
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # every partition is a task, and a task costs milliseconds before it reads a row
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # Delta replays a table's log in this many tasks (its default: 50)
        "spark.databricks.delta.snapshotPartitions": "1",
        # listing folders, for VACUUM above all, takes this many tasks (its default: 10,000)
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
)

_THROUGHPUT: Final = MappingProxyType(
    {
        # the JVM's own choice of compilers suits long work; a collector that works beside it would take its share of few cores
        "spark.driver.defaultJavaOptions": f"{_QUIET} -XX:+UseParallelGC",
        "spark.driver.memory": "4g",
        # a long run deserves its page
        "spark.ui.enabled": "true",
        # partitions are merged and skew is split by what was really measured
        "spark.sql.adaptive.enabled": "true",
        # compiled stages are several times faster over millions of rows
        "spark.sql.codegen.wholeStage": "true",
        # Delta replays a table's log in this many tasks (its default: 50), and each takes tenths of a second before it reads an action
        "spark.databricks.delta.snapshotPartitions": "1",
        # 10,000 tasks to list a folder would take most of a minute
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    }
)

PROFILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({"small": _SMALL, "throughput": _THROUGHPUT})

_JOINED: Final = ("spark.jars", "spark.sql.extensions")

_TASKS_PER_CORE: Final = 4
"""Shuffle partitions per core of a local master: enough to level out skew, few enough to stay cheap when empty."""


def build_session(settings: SparkSettings, name: str) -> SparkSession:
    """The session that is already there, or else a new one by the settings; `provided` never makes one."""
    there = _present_session()
    if there is not None:
        return there
    if settings.master == "provided":
        message = "spark.master is `provided`, but this process has no Spark session"
        raise SetupError(
            message, remedy="start Karat where a session exists (a notebook, a Databricks job), or set spark.master to local[*]"
        )
    java_version()
    _prepare_process(settings)
    conf = SparkConf(loadDefaults=False).setAppName(name).setMaster(settings.master).setAll(list(session_conf(settings).items()))
    try:
        SparkContext(conf=conf, gateway=_start_jvm(conf))
        session = SparkSession.builder.getOrCreate()
    except Exception as failure:
        message = f"Spark did not start on {settings.master}: {failure}"
        raise SetupError(message, remedy="`karat doctor` tells what is missing; what the JVM printed is above") from failure
    return session


def session_conf(settings: SparkSettings) -> dict[str, str]:
    """Every Spark setting of a new session, the user's own included; fetches the jars if they are missing."""
    conf = {**_ALWAYS, **PROFILES[settings.profile], **_local_conf(settings), "spark.jars": ",".join(map(str, ensure_jars()))}
    conf["spark.driver.memory"] = os.environ.get("KARAT_DRIVER_MEMORY") or conf["spark.driver.memory"]
    conf["spark.sql.warehouse.dir"] = _passing_folder()
    for key, value in settings.conf.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        conf[key] = f"{conf[key]},{text}" if key in _JOINED else text
    return conf


def _present_session() -> SparkSession | None:
    """The thread's session, or the process's: a worker thread has none of its own."""
    return SparkSession.getActiveSession() or SparkSession._instantiatedSession  # noqa: SLF001  (as SparkSession.active() does, without raising)


def _is_local(settings: SparkSettings) -> bool:
    return settings.master.startswith("local")


def _local_conf(settings: SparkSettings) -> dict[str, str]:
    """What holds for a master inside this process only; a cluster's executors must reach the driver and have cores of their own."""
    if not _is_local(settings):
        return {}
    # nothing outside this machine is listened to, whatever its name resolves to
    conf = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if settings.profile == "throughput":
        conf["spark.sql.shuffle.partitions"] = str(_TASKS_PER_CORE * (os.cpu_count() or 1))
    return conf


def _prepare_process(settings: SparkSettings) -> None:
    """What pyspark reads from the process itself, before the JVM starts."""
    if _is_local(settings):
        os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must see the packages that the driver sees
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # and the web page is for this machine only
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # pyspark would print as JSON what the exception says anyway
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _start_jvm(conf: SparkConf) -> "JavaGateway | None":
    """A JVM all of whose output passes through `_relay`; None when this process has one already, which Spark then uses.

    Standard output belongs to Karat's own answers: Delta prints a line of its own there when it cleans up.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001  (pyspark keeps the JVM of a stopped session there)
        return None
    reading, writing = os.pipe()
    threading.Thread(target=_relay, args=(reading,), name="karat-jvm-output", daemon=True).start()
    try:
        return launch_gateway(conf, {"stderr": writing, "stdout": writing})  # type: ignore[no-untyped-call]  # pyspark leaves it so
    finally:
        os.close(writing)


def _relay(reading: int) -> None:
    """What the JVM prints, to standard error, less the one line that no logging configuration can silence."""
    with open(reading, encoding="utf-8", errors="replace") as lines, contextlib.suppress(OSError, ValueError):
        for line in lines:
            if not line.startswith("WARNING: Using incubator modules") and sys.__stderr__ is not None:
                sys.__stderr__.write(line)
                sys.__stderr__.flush()


def _passing_folder() -> str:
    """A warehouse that ends with the process; tables live in the lake, so only a mistake would write here."""
    folder = tempfile.mkdtemp(prefix="karat-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
