"""One Spark session for the whole test process; tests that need none never ask for it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from karat.config.settings import SparkSettings
from karat.lake.session import build_session
from tests.support.sessions import FEW_ROWS_LONG


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session every Spark test shares."""
    settings = SparkSettings.model_validate({"master": "local[2]", "profile": "small", "conf": FEW_ROWS_LONG})
    session = build_session(settings, "karat tests")
    yield session
    session.stop()
