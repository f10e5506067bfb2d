"""Engines for the store: one that writes and one that cannot, and what their failures mean to the user."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from karat.errors import SetupError, SourceUnavailable

_EXTRAS: Final = {"postgresql": "postgresql", "mysql": "mariadb", "mariadb": "mariadb"}
_RACES: Final = frozenset({1205, 1213, "40001", "40P01"})
"""Lock timeouts, deadlocks and failed serialisations, as MySQL and PostgreSQL number them."""
_CONNECT_SECONDS: Final = 10
_BUSY_SECONDS: Final = 30
"""How long SQLite waits for another writer."""


def writing_engine(url: URL) -> Engine:
    """An engine whose transactions begin as writers; the folder of an SQLite file is made."""
    if not _is_sqlite(url):
        return _server_engine(url)
    file = Path(str(url.database))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as refused:
        message = f"the folder of the state store, {file.parent}, cannot be made: {refused.strerror}"
        raise SourceUnavailable(message, remedy="make it writable, or set state.url to another place") from None
    engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _leave_transactions_to_us)
    # A transaction that first reads and then writes would fail, not wait, when another has written in between.
    event.listen(engine, "begin", _begin_as_writer)
    return engine


def reading_engine(url: URL) -> Engine | None:
    """An engine that can change nothing; None where an SQLite file does not exist yet."""
    if not _is_sqlite(url):
        return _server_engine(url)
    file = Path(str(url.database)).absolute()
    if not file.is_file():
        return None
    # Not mode=ro: that could not roll back what a killed writer left half done.
    opened = url.set(database=file.as_uri(), query={"mode": "rw", "uri": "true"})
    engine = create_engine(opened, connect_args={"timeout": _BUSY_SECONDS}, poolclass=NullPool)
    event.listen(engine, "connect", _refuse_writes)
    return engine


@contextmanager
def reaching(url: URL) -> Iterator[None]:
    """Failures inside become Karat's own, without the password."""
    place = url.render_as_string(hide_password=True)
    extra = _EXTRAS.get(url.get_backend_name())
    try:
        yield
    except ModuleNotFoundError as missing:
        message = f"the state store {place} needs the Python package {missing.name}"
        raise SetupError(message, remedy=f"pip install 'karat[{extra}]'" if extra else f"pip install {missing.name}") from None
    except NoSuchModuleError:
        message = f"no driver is known for the state store {place}"
        raise SetupError(message, remedy="use sqlite, postgresql, mysql, mariadb or singlestore, or install that driver") from None
    except SQLAlchemyError as failed:
        message = f"the state store {place} does not answer: {_reason(failed, url)}"
        raise SourceUnavailable(message, remedy="check state.url, state.password and that the database is up", store=place) from None


def lost_a_race(failed: DBAPIError) -> bool:
    """Whether another process wrote the same row, or stood in our way, just now: the same transaction may succeed when repeated."""
    codes = {getattr(failed.orig, "sqlstate", None), *(failed.orig.args[:1] if failed.orig else ())}
    return isinstance(failed, IntegrityError) or not codes.isdisjoint(_RACES)


def _is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _server_engine(url: URL) -> Engine:
    """One connection at a time is all a run needs; it is tested before use, for a quiet night may have cut it."""
    patience = {"connect_timeout": _CONNECT_SECONDS} if url.get_backend_name() in _EXTRAS else {}
    with reaching(url):
        return create_engine(url, pool_size=1, max_overflow=1, pool_pre_ping=True, connect_args=patience)


def _leave_transactions_to_us(connection: sqlite3.Connection, _record: Any) -> None:  # noqa: ANN401 - SQLAlchemy's hook
    connection.isolation_level = None


def _begin_as_writer(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _refuse_writes(connection: sqlite3.Connection, _record: Any) -> None:  # noqa: ANN401 - SQLAlchemy's hook
    connection.execute("PRAGMA query_only = ON").close()


def _reason(failed: SQLAlchemyError, url: URL) -> str:
    """The driver's own message on one line, without statement, parameters or secret."""
    text = str(failed.orig) if isinstance(failed, DBAPIError) else str(failed)
    line = " ".join(text.split())
    return line.replace(str(url.password), "***") if url.password else line
