"""How rows are computed: few of them are interpreted, because compiling Java for a step takes longer than interpreting it over so few."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@contextmanager
def interpreted(session: SparkSession, *, few: bool = True) -> Iterator[None]:
    """What is planned and computed inside is interpreted, if it is about few rows; scans of whole tables do not belong here."""
    before = {key: session.conf.get(key, None) for key in _INTERPRETED} if few else {}
    for key in before:
        session.conf.set(key, _INTERPRETED[key])
    try:
        yield
    finally:
        for key, value in before.items():
            session.conf.unset(key) if value is None else session.conf.set(key, value)
