"""How rows are computed: few are interpreted, since compiling Java for them takes longer; small answers are planned once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Final
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

_PLANNED_ONCE: Final = {"spark.sql.adaptive.enabled": "false"}
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_LOCK: Final = Lock()
_INSIDE: Final[WeakKeyDictionary[SparkSession, dict[str, tuple[int, str | None]]]] = WeakKeyDictionary()
"""Session to each setting chosen for it: how many are inside, and what it was before the first of them."""


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
    """The settings hold while anybody is inside, on whatever thread: the first to come sets them, the last to go takes them back."""
    for key, chosen in settings.items():
        _enter(session, key, chosen)
    try:
        yield
    finally:
        for key in settings:
            _leave(session, key)


def _enter(session: SparkSession, key: str, chosen: str) -> None:
    with _LOCK:
        inside = _INSIDE.setdefault(session, {})
        count, before = inside.get(key) or (0, session.conf.get(key, None))
        if count == 0:
            session.conf.set(key, chosen)
        inside[key] = (count + 1, before)


def _leave(session: SparkSession, key: str) -> None:
    with _LOCK:
        count, before = _INSIDE[session].pop(key)
        if count > 1:
            _INSIDE[session][key] = (count - 1, before)
        elif before is None:
            session.conf.unset(key)
        else:
            session.conf.set(key, before)
