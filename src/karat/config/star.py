"""The tables of the star with defaults filled in and names resolved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final, Literal

from karat.config.names import TableName
from karat.config.resolved import OrderBy

MISSING, NOT_APPLICABLE, NOT_YET_KNOWN, BAD_VALUE = -1, -2, -3, -4
RESERVED: Final[Mapping[int, str]] = {
    MISSING: "missing",
    NOT_APPLICABLE: "not applicable",
    NOT_YET_KNOWN: "not yet known",
    BAD_VALUE: "bad value",
}
"""The members that every dimension has, by their key."""
DIMENSION_COLUMNS: Final = (
    *("__valid_from", "__valid_to", "__is_current", "__is_deleted", "__is_skeleton"),
    *("__hashdiff", "__durable_key", "__effective_at"),
)
"""The columns that Karat adds to a dimension."""
CALENDAR_KEY: Final = "date"
"""The natural key of a calendar."""


@dataclass(frozen=True)
class Source:
    """A table that a target reads under an alias."""

    table: TableName
    alias: str
    is_feed: bool
    """Whether only its changes are read."""


@dataclass(frozen=True)
class TargetLayout:
    """How the target's rows lie in files."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    zorder_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class StarTable:
    """What dimensions, facts and bridges have in common."""

    name: str
    table: TableName
    sources: tuple[Source, ...]
    template: str
    on_full_change: Literal["ignore", "rebuild", "affected"]
    layout: TargetLayout
    place: str = field(compare=False, repr=False)
    """File and line of the declaration."""

    @property
    def quarantine(self) -> TableName:
        """The table of refused rows."""
        return self.table.with_suffix("_quarantine")


@dataclass(frozen=True)
class Dimension(StarTable):
    """A dimension with its keys and its kind of history."""

    scd_type: int
    keys: tuple[str, ...]
    surrogate: str
    strategy: Literal["hash", "sequence", "identity"]
    tracked: tuple[str, ...] | None
    effective_at: str | None
    absence_deletes: bool
    open_end: datetime | None
    periods: tuple[str, str] | None
    repoints: bool
    """Whether facts in the period of a version inserted in the past are pointed at it."""
    from_changes: bool
    """Whether a first run reads the change feed from its beginning."""
    calendar: tuple[date, date, int] | None = None
    """First and last day, and the month with which a fiscal year begins."""

    @property
    def has_history(self) -> bool:
        """Whether a member has a row for each of its versions."""
        return self.scd_type == 2  # noqa: PLR2004  (SCD type 2)


@dataclass(frozen=True)
class DimensionLookup:
    """A lookup with the dimension it asks."""

    dimension: Dimension
    on: tuple[tuple[str, str], ...]
    """Columns of the dimension, and the expression of the fact that each is compared with."""
    at: str | None
    into: str
    missing: Literal["skeleton", "member", "quarantine", "fail"]
    when_null: int
    """The reserved member of a fact without a natural key."""


@dataclass(frozen=True)
class Fact(StarTable):
    """A fact table with its grain and its lookups."""

    grain: tuple[str, ...]
    lookups: tuple[DimensionLookup, ...]
    load: Literal["upsert", "append", "accumulating", "periodic"]
    milestones: tuple[str, ...]
    period: str | None
    order: tuple[OrderBy, ...]
    quarantines_duplicates: bool
    keeps_deleted: bool
    """Whether a fact stays when its source's row is gone."""

    @property
    def late_dimensions(self) -> TableName:
        """The table of facts in the period of a version that was inserted in the past."""
        return self.table.with_suffix("_late_dimensions")


@dataclass(frozen=True)
class BridgeSide:
    """One side of a bridge: its role, its dimension, and the query's columns for the dimension's natural key."""

    role: str
    dimension: Dimension
    on: tuple[tuple[str, str], ...]

    @property
    def into(self) -> str:
        """The column of the bridge that carries the member's durable key."""
        return f"{self.role}_key"


@dataclass(frozen=True)
class Bridge(StarTable):
    """A bridge between two dimensions."""

    sides: tuple[BridgeSide, BridgeSide]
    weight: str | None


Star = Dimension | Fact | Bridge
