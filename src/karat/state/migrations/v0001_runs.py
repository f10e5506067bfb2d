"""Version 1: runs, their stages, and every event."""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.schema import CreateTable

_LONG: Final = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_SERIAL: Final = BigInteger().with_variant(Integer(), "sqlite")
_COUNTS: Final = ("read", "landed", "copies", "quarantined", "ignored", "inserted", "updated", "deleted")
_OPTIONS: Final[dict[str, Any]] = {
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
    "mariadb_charset": "utf8mb4",
    "mariadb_collate": "utf8mb4_bin",
}


def upgrade(connection: Connection) -> None:
    """Three new tables; a table that is already there was made by the same step, interrupted."""
    for table in (_runs(), _stages(), _events()):
        connection.execute(CreateTable(table, if_not_exists=True))


def _runs() -> Table:
    return Table(
        "karat_runs",
        MetaData(),
        Column("run_id", String(64), primary_key=True),
        Column("project", String(255), nullable=False),
        Column("started_at", String(32), nullable=False),
        Column("finished_at", String(32)),
        Column("ok", Boolean()),
        Column("seconds", Double()),
        Column("config_hash", String(128), nullable=False),
        Column("counts", _LONG, nullable=False),
        **_OPTIONS,
    )


def _stages() -> Table:
    return Table(
        "karat_stages",
        MetaData(),
        Column("run_id", String(64), nullable=False),
        Column("stage", String(255), nullable=False),
        Column("status", String(16), nullable=False),
        Column("started_at", String(32), nullable=False),
        Column("finished_at", String(32)),
        Column("seconds", Double()),
        *(Column(f"rows_{count}", BigInteger(), nullable=False) for count in _COUNTS),
        Column("error", _LONG),
        Column("notes", _LONG, nullable=False),
        PrimaryKeyConstraint("run_id", "stage"),
        UniqueConstraint("stage", "started_at", "run_id", name="karat_stages_latest"),
        **_OPTIONS,
    )


def _events() -> Table:
    return Table(
        "karat_events",
        MetaData(),
        Column("id", _SERIAL, primary_key=True, autoincrement=True),
        Column("run_id", String(64), nullable=False),
        Column("at", String(32), nullable=False),
        Column("kind", String(32), nullable=False),
        Column("body", _LONG, nullable=False),
        **_OPTIONS,
    )
