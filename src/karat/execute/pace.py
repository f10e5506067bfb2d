"""How rows are computed: few are interpreted, since compiling Java for them takes longer; small answers are planned once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

_PLANNED_ONCE: Final = {"spark.sql.adaptive.enabled": "false"}
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextmanager
def interpreted(session: SparkSession, *, few: bool = True) -> Iterator[None]:
    """What is planned and computed inside is interpreted, if it is about few rows; scans of whole tables do not belong here."""
    with _settings(session, _INTERPRETED if few else {}):
        yield


@contextmanager
def planned_once(session: SparkSession) -> Iterator[None]:
    """What is computed inside is one job, not one for every exchange after which it might have been planned anew."""
    with _settings(session, _PLANNED_ONCE):
        yield


@contextmanager
def _settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {key: session.conf.get(key, None) for key in settings}
    for key, chosen in settings.items():
        session.conf.set(key, chosen)
    try:
        yield
    finally:
        for key, value in before.items():
            session.conf.unset(key) if value is None else session.conf.set(key, value)
