"""The difference between the rows a table should have and the rows it holds. Only the difference is written.

    held      A [1, 4)   B [4, 9)   C [9, …)
    should    A [1, 6)   D [6, 9)   C [9, …)
    changes   update A   delete B   insert D

A row is named by its full identity, key included: rows of different keys, or of one key and one start, may share the rest.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.columns import ACTION, Names, quoted
from karat.temporal.sql import Sql, every

TARGET, SOURCE = "held", "new"
"""The names of the two sides of a merge in its condition."""
INSERT, UPDATE, DELETE, KEEP = "insert", "update", "delete", "keep"
WAS_HELD_UNTIL: Final = "__karat_was_held_until"
"""Working: the end of the held row that an action is about; null where it is open."""


@dataclass(frozen=True)
class TableSpec:
    """What names a row of a table, and how its rows lie in time."""

    columns: Sequence[str]
    identity: Names
    """The key first, then what tells the rows of one key apart."""
    start: str | None = None
    """The start of a row's period."""
    end: str | None = None
    """The end of the row's period."""
    closed_at: str | None = None
    """The end by which rows are kept apart in the table's layout; null for live rows."""
    unread: Names = ()
    """Columns that another column stands for: where that one is the same, so are they."""
    chain: Names = ()
    """Columns that name a chain: of the rows of one, the periods from `start` to `closed_at` do not overlap."""
    generated: Names = ()
    """Columns that the table itself fills in for new rows."""

    @property
    def key(self) -> str:
        """The column that names what a row is about."""
        return self.identity[0]


def difference(fresh: DataFrame, held: DataFrame, spec: TableSpec, ignored: Iterable[str] = ()) -> DataFrame:
    """What turns the held rows into the fresh ones. Grain: one row per row that differs.

    A difference in `ignored` columns alone is none.
    """
    skipped = {*spec.identity, *ignored, *spec.unread}
    compared = [name for name in spec.columns if name not in skipped]
    joined = fresh.alias("fresh").join(held.alias("held"), F.expr(_joined_on(spec)), "full_outer")
    is_new, is_gone = (f"{side}.{quoted(spec.key)} IS NULL" for side in ("held", "fresh"))
    differs = f"NOT ({every(_equal(name, fresh) for name in compared)})"
    action = f"CASE WHEN {is_new} THEN '{INSERT}' WHEN {is_gone} THEN '{DELETE}' WHEN {differs} THEN '{UPDATE}' ELSE '{KEEP}' END"
    values = [f"if({is_gone}, held.{quoted(name)}, fresh.{quoted(name)}) AS {quoted(name)}" for name in spec.columns]
    end = spec.closed_at or spec.end
    until = f"held.{quoted(end)}" if end else "CAST(NULL AS TIMESTAMP)"
    found = joined.selectExpr(*values, f"{action} AS {ACTION}", f"{until} AS {WAS_HELD_UNTIL}")
    return found.where(F.col(ACTION) != KEEP)


def as_inserts(fresh: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows as inserts, for a table that holds nothing yet. Grain: unchanged."""
    nothing = f"CAST(NULL AS TIMESTAMP) AS {WAS_HELD_UNTIL}"
    return fresh.selectExpr(*map(quoted, spec.columns), f"'{INSERT}' AS {ACTION}", nothing)


def overlapping(spec: TableSpec, new_end: Sql, held_end: Sql) -> Sql:
    """Whether both sides are of one chain and their periods overlap; an end that is null is open."""
    if spec.start is None:
        return "false"
    held, new = (f"{side}.{quoted(spec.start)}" for side in (TARGET, SOURCE))
    starts_within = f"({new_end} IS NULL OR {held} < {new_end})"
    ends_after = f"({held_end} IS NULL OR {held_end} > {new})"
    return every([*(same_on(name) for name in spec.chain), starts_within, ends_after])


def _joined_on(spec: TableSpec) -> Sql:
    """The identity; by key and start alone the rows are brought together, so that no second shuffle follows."""
    moved_by = {spec.key, spec.start}
    same = [f"fresh.{quoted(name)} = held.{quoted(name)}" for name in spec.identity if name in moved_by]
    others = [name for name in spec.identity if name not in moved_by]
    # written so that Spark does not take it for a key of the join
    same += [f"array_contains(array(fresh.{quoted(name)}), held.{quoted(name)})" for name in others]
    return every(same)


def _equal(name: str, rows: DataFrame) -> Sql:
    """Null-safe equality of one column; maps cannot be compared, their sorted entries can."""
    is_map = isinstance(rows.schema[name].dataType, T.MapType)
    sides = [f"{side}.{quoted(name)}" for side in ("held", "fresh")]
    return " <=> ".join(f"array_sort(map_entries({side}))" if is_map else side for side in sides)


def same_on(name: str) -> Sql:
    """Whether both sides of a merge have the same value."""
    return f"{TARGET}.{quoted(name)} = {SOURCE}.{quoted(name)}"
