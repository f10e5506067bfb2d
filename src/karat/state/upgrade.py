"""Bringing a store to the version this Karat writes, whoever else is opening it at the same moment."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Connection, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.schema import CreateTable

from karat.errors import ConfigError
from karat.state.migrations import v0001_runs, v0002_watermarks, v0003_star_counts
from karat.state.schema import STATE

UPGRADES: Final[tuple[Callable[[Connection], None], ...]] = (v0001_runs.upgrade, v0002_watermarks.upgrade, v0003_star_counts.upgrade)
STATE_VERSION: Final = len(UPGRADES)
"""The version of the store that this Karat writes."""

_LOCK_KEY: Final = 5_498_317_260_451
"""Any number no other program would choose for a PostgreSQL advisory lock."""


def version_of(connection: Connection) -> int:
    """The store's version; 0 where there is none yet. A store from a newer Karat is refused."""
    if not inspect(connection).has_table(STATE.name):
        return 0
    version: int = connection.scalar(select(func.coalesce(func.max(STATE.c.version), 0))) or 0
    if version > STATE_VERSION:
        message = f"the state store has version {version}, this Karat knows versions up to {STATE_VERSION}"
        raise ConfigError(
            message, remedy="install the newer Karat that wrote it, or set state.url to another store", version=version, known=STATE_VERSION
        )
    return version


def upgrade(connection: Connection) -> None:
    """Run the steps the store has not seen, inside the caller's transaction.

    SQLite and PostgreSQL do all of it or nothing. MySQL and its kin commit every table at once, so each step can be repeated.
    """
    if version_of(connection) == STATE_VERSION:
        return
    _lock(connection)
    connection.execute(CreateTable(STATE, if_not_exists=True))
    for version in range(version_of(connection) + 1, STATE_VERSION + 1):
        UPGRADES[version - 1](connection)
        with suppress(IntegrityError):  # where no lock could be had, another may have taken the same step: once is enough
            connection.execute(insert(STATE).values(version=version, upgraded_at=datetime.now(UTC)))


def unlock(connection: Connection) -> None:
    """Let the next one upgrade; only MySQL's lock outlives its transaction."""
    if connection.dialect.name in {"mysql", "mariadb"}:
        _ask_for_lock(connection, "SELECT RELEASE_LOCK(CONCAT('karat.', MD5(DATABASE())))")


def _lock(connection: Connection) -> None:
    """One upgrade at a time; SQLite's transaction already began as the only writer."""
    match connection.dialect.name:
        case "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_LOCK_KEY)))
        case "mysql" | "mariadb":
            _ask_for_lock(connection, "SELECT GET_LOCK(CONCAT('karat.', MD5(DATABASE())), 60)")
        case _:
            pass


def _ask_for_lock(connection: Connection, question: str) -> None:
    """SingleStore may not know named locks; there the repeatable steps alone must do."""
    try:
        connection.execute(text(question))
    except DBAPIError:
        return
