"""The one place where a Spark session is made; everything else is handed one.

A profile is a fixed set of Spark settings with a reason for each. What a user writes under `spark.conf` wins over the profile.
Lists to which both may add (jars, extensions, the pattern of redacted settings) are joined, so that a driver's jar does not
cost the user Delta. The settings on which hashes depend (`karat.config.spark_conf.REQUIRED`) are not the user's to change.
"""

import atexit
import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from karat.config.settings import SparkSettings
from karat.config.spark_conf import REDACTION, REQUIRED, redaction
from karat.errors import SetupError
from karat.lake.jars import ensure_jars, java_version

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_QUIET: Final = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"

_ALWAYS: Final = MappingProxyType(
    {
        **REQUIRED,
        # Delta's SQL and its tables
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # tables are found by path or by the user's own catalog: no Hive, no Derby folder in the working directory
        "spark.sql.catalogImplementation": "in-memory",
        # partitions are merged, joins chosen and skew split by what was really measured, whatever the size of a batch
        "spark.sql.adaptive.enabled": "true",
        # a note of the Python line for every column costs several calls into the JVM; Karat's own errors name the setting
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # a batch of one entity compiles several hundred pieces of code; the default of 100 would compile them again for the next batch
        "spark.sql.codegen.cache.maxEntries": "2000",
        # every plan is written out for Spark's page; the long form takes time from each batch
        "spark.sql.ui.explainMode": "simple",
        # Karat shows its own progress
        "spark.ui.showConsoleProgress": "false",
        # a port in use belongs to another session on the machine: try the next hundred
        "spark.port.maxRetries": "100",
    }
)
"""Settings of every session that Karat builds."""

_SMALL: Final = MappingProxyType(
    {
        # the quick compiler and the simplest collector: short jobs end before better code would have paid;
        # the default of 48 MB for compiled code is full after a few stages
        "spark.driver.defaultJavaOptions": f"{_QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
        "spark.driver.memory": "2g",
        # the web page takes most of a second to start
        "spark.ui.enabled": "false",
        # every partition is a task, and a task costs milliseconds before it reads a row
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # tasks in which Delta reads a table's log (its default: 50)
        "spark.databricks.delta.snapshotPartitions": "1",
        # tasks that list folders, for VACUUM above all (default: 10,000)
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
)

_THROUGHPUT: Final = MappingProxyType(
    {
        # all compilers, which suits long work, and a collector that does not take cores from it
        "spark.driver.defaultJavaOptions": f"{_QUIET} -XX:+UseParallelGC",
        "spark.driver.memory": "4g",
        # a long run is worth a page
        "spark.ui.enabled": "true",
        # 10,000 tasks to list a folder would take most of a minute
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    }
)

PROFILES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({"small": _SMALL, "throughput": _THROUGHPUT})
"""`throughput`, the default, suits every size; `small` is for examples, tests and batches of a few thousand rows."""

_JOINED: Final = ("spark.jars", "spark.sql.extensions")

_TASKS_PER_CORE: Final = 4
"""Shuffle partitions per core of a local master: enough to level out skew; adaptive execution merges those that stay small."""


def build_session(settings: SparkSettings, name: str, secrets: Collection[str] = ()) -> SparkSession:
    """The session that is already there, or else a new one by the settings; `provided` never makes one.

    `secrets` names the settings whose values came by reference: Spark redacts them whatever they are called.
    """
    there = present_session()
    if there is not None:
        return there
    if settings.master == "provided":
        message = "spark.master is `provided`, but this process has no Spark session"
        raise SetupError(
            message, remedy="start Karat where a session exists (a notebook, a Databricks job), or set spark.master to local[*]"
        )
    java_version()
    _prepare_process(settings)
    conf = SparkConf(loadDefaults=False).setAppName(name).setMaster(settings.master).setAll(list(session_conf(settings, secrets).items()))
    try:
        SparkContext(conf=conf, gateway=_start_jvm(conf))
        session = SparkSession.builder.getOrCreate()
    except Exception as failure:
        message = f"Spark did not start on {settings.master}: {failure}"
        raise SetupError(message, remedy="`karat doctor` tells what is missing; what the JVM printed is above") from failure
    return session


def session_conf(settings: SparkSettings, secrets: Collection[str] = ()) -> dict[str, str]:
    """Every Spark setting of a new session, the user's own included; fetches the jars if they are missing."""
    conf = {**_ALWAYS, **PROFILES[settings.profile], **_local_conf(settings), "spark.jars": ",".join(map(str, ensure_jars()))}
    conf["spark.driver.memory"] = os.environ.get("KARAT_DRIVER_MEMORY") or conf["spark.driver.memory"]
    conf["spark.sql.warehouse.dir"] = _passing_folder()
    for key, value in settings.conf.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        conf[key] = f"{conf[key]},{text}" if key in _JOINED else text
    conf[REDACTION] = redaction(conf.get(REDACTION), secrets)
    return conf


def with_required_settings(session: SparkSession) -> SparkSession:
    """The session itself, with every setting on which hashes depend; made for a session of one stage, never for the user's own.

    Each of these settings belongs to a session, so a session that was handed in keeps its own. Only a platform that forbids a
    setting to be changed can stand in the way: then its value must be the needed one already, and `SetupError` says where not.
    """
    wrong = []
    for name, needed in REQUIRED.items():
        try:
            session.conf.set(name, needed)
        except PySparkException:
            found = session.conf.get(name, None)
            if str(found).lower() != needed.lower():
                wrong.append(f"{name} is {found} and must be {needed}")
    if wrong:
        message = f"this Spark session forbids settings on which hashes depend: {'; '.join(wrong)}"
        raise SetupError(message, remedy="set them where the session or the cluster is configured, then start again")
    return session


def present_session() -> SparkSession | None:
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
        cores = os.cpu_count() or 1
        conf["spark.sql.shuffle.partitions"] = str(_TASKS_PER_CORE * cores)
        conf["spark.databricks.delta.snapshotPartitions"] = str(cores)  # its default of 50 tasks is meant for a cluster
    return conf


def _prepare_process(settings: SparkSettings) -> None:
    """The process as pyspark needs it before the JVM starts."""
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
