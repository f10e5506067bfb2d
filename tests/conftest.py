"""One Spark session for the whole test process; tests that need none never ask for it.

Tests of tables with a handful of rows spend their time on planning and code generation. So this session interprets
expressions, plans once and keeps to one task a shuffle. The cluster, the benchmarks' command and every test that starts a
process of its own run with the settings that users have.
"""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from karat.config.settings import SparkSettings
from karat.lake.session import PROFILES, build_session

JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": False,
    "spark.sql.shuffle.partitions": 1,
    "spark.default.parallelism": 1,
    # this process lives for many minutes: the better compiler pays
    JAVA_OPTIONS: PROFILES["small"][JAVA_OPTIONS].replace("-XX:TieredStopAtLevel=1 ", ""),
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session every Spark test shares."""
    settings = SparkSettings.model_validate({"master": "local[2]", "profile": "small", "conf": FEW_ROWS})
    session = build_session(settings, "karat tests")
    yield session
    session.stop()
