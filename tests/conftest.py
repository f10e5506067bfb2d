"""One Spark session for the whole test process; tests that need none never ask for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from karat.config.settings import SparkSettings
from karat.lake.session import build_session

LONG_LIVED = "-XX:TieredStopAtLevel=4"
"""The profile for short runs keeps to the fast compiler; a session that lives for minutes earns the better one."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session every Spark test shares."""
    settings = SparkSettings(master="local[2]", profile="small", conf={"spark.driver.extraJavaOptions": LONG_LIVED})
    session = build_session(settings, "karat tests")
    yield session
    session.stop()
