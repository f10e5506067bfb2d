"""The tables of the state store, as the newest version has them.

Lengths are explicit because MySQL indexes nothing without one. There are no foreign keys, because SingleStore has none, and no index
apart from the keys, because those can be made in the same statement as the table. Times are text: 32 characters of ISO 8601 in UTC,
which keep their microseconds and their order in every database.
"""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from karat.telemetry.events import Rows

TABLE_OPTIONS: Final[dict[str, Any]] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}
"""A server's own defaults may fold case (two stages become one) or lack letters."""


def storable(text: str) -> str:
    """The text as every database takes it: no NUL, no half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")


class LongText(TypeDecorator[str]):
    """Text of any length and any content."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Errors come from anywhere and may hold anything."""
        return None if value is None else storable(value)


class UtcTime(TypeDecorator[datetime]):
    """An instant to the microsecond; one without a zone is taken as UTC."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        """To text of one width, so that order by text is order by time."""
        if value is None:
            return None
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Back to an aware time in UTC."""
        return None if value is None else datetime.fromisoformat(value)


METADATA: Final = MetaData()
ROW_COUNTS: Final = tuple(field.name for field in fields(Rows))

STATE: Final = Table(
    "karat_state",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("upgraded_at", UtcTime, nullable=False),
    **TABLE_OPTIONS,
)
"""One row per upgrade the store has seen; its version is the largest. The one table no upgrade may change: it is read before any."""

RUNS: Final = Table(
    "karat_runs",
    METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("project", String(255), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    Column("ok", Boolean),
    Column("seconds", Double),
    Column("config_hash", String(128), nullable=False),
    Column("counts", LongText, nullable=False),
    **TABLE_OPTIONS,
)
"""One row per run; `finished_at` stays null while it works, and for ever when it was killed."""

STAGES: Final = Table(
    "karat_stages",
    METADATA,
    Column("run_id", String(64), nullable=False),
    Column("stage", String(255), nullable=False),
    Column("status", String(16), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime),
    Column("seconds", Double),
    *(Column(f"rows_{count}", BigInteger, nullable=False) for count in ROW_COUNTS),
    Column("error", LongText),
    Column("notes", LongText, nullable=False),
    PrimaryKeyConstraint("run_id", "stage"),
    UniqueConstraint("stage", "started_at", "run_id", name="karat_stages_latest"),
    **TABLE_OPTIONS,
)
"""One row per stage of a run; the unique key finds the latest of each stage."""

EVENTS: Final = Table(
    "karat_events",
    METADATA,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("run_id", String(64), nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("body", LongText, nullable=False),
    **TABLE_OPTIONS,
)
"""One row per event, whole, as the JSON log has it."""

WATERMARKS: Final = Table(
    "karat_watermarks",
    METADATA,
    Column("stage", String(255), primary_key=True),
    Column("position", LongText, nullable=False),
    Column("run_id", String(64), nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    **TABLE_OPTIONS,
)
"""One row per stage that reads a source: how far it has come, mirrored from the lake's commits."""
