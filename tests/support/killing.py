"""Runs that are killed just before one of their commits, see `killed_run`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.processes import ROOT, script


def killed_before(commit: int, folder: Path, spark: SparkSession | None = None) -> None:
    """The project run by a process that is killed before this commit of its run, counted from 1.

    The process starts a JVM of its own, as users' do, unless a session is given in whose JVM it may work.
    """
    if spark is None:
        with script(folder, "tests.support.killed_run", str(commit)) as started:
            assert started.ended() == -signal.SIGKILL, started.said()
        return
    parameters = spark.sparkContext._gateway.gateway_parameters
    here = {**os.environ, "PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}
    command = [sys.executable, "-m", "tests.support.killed_run", str(folder), str(commit)]
    ended = subprocess.run(command, cwd=ROOT, env=here, start_new_session=True, capture_output=True, check=False, timeout=600)  # noqa: S603
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
