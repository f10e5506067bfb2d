"""Runs that are killed: started as a process of their own in the JVM of the tests, see `killed_run`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def killed_before(commit: int, folder: Path, spark: SparkSession) -> None:
    """The project run by a process that is killed before this commit of its run, counted from 1."""
    parameters = spark.sparkContext._gateway.gateway_parameters
    here = {**os.environ, "PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}
    command = [sys.executable, "-m", "tests.support.killed_run", str(folder), str(commit)]
    ended = subprocess.run(command, cwd=ROOT, env=here, start_new_session=True, capture_output=True, check=False, timeout=600)  # noqa: S603
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
