"""The difference between the rows a table should have and the rows it holds, and the one commit that writes it.

A table of periods is a chain: the rows of one key follow each other without gaps. So a written row replaces every held
row of its key that starts inside its period, and a held row that goes needs no statement of its own: the period of the
row before it now reaches over its start.

    held      A [1, 4)   B [4, 9)   C [9, …)
    should    A [1, 6)              D [6, 9)   C [9, …)
    written   A [1, 6), D [6, 9)                A replaces A and B, D replaces nothing, C stays

Rows that start at the same instant are written together, changed or not, because a period says nothing about them.
Tables of other shapes are replaced by the columns that name a row, or changed by a MERGE where rows go without a
successor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.lake.delta import DeltaTables
from karat.lake.tables import SOURCE, TARGET, Merge
from karat.state.commits import Commit, Written
from karat.temporal.columns import ACTION, Names, col, quoted
from karat.temporal.moments import from_micros, micros_of
from karat.temporal.sql import Sql, every

INSERT, UPDATE, DELETE, KEEP = "insert", "update", "delete", "keep"
WAS_HELD_UNTIL: Final = "__karat_was_held_until"
"""Working: the end of the held row that an action is about; null where it is open."""
_CHANGED: Final = "__karat_changed"


@dataclass(frozen=True)
class TableSpec:
    """What names a row of a table, and which held rows a written row replaces."""

    columns: Sequence[str]
    identity: Names
    """The key first, then what tells the rows of one key apart."""
    start: str | None = None
    """The start of a row's period; such a table is a chain."""
    end: str | None = None
    """The end of the row's period in that chain."""
    closed_at: str | None = None
    """The end by which rows are kept apart in the table's layout; null for live rows."""
    replaces: Names = ()
    """For a table that is no chain: the columns that a written row shares with the held row it replaces."""
    unread: Names = ()
    """Columns that another column stands for: where that one is the same, so are they."""

    @property
    def key(self) -> str:
        """The column that names what a row is about."""
        return self.identity[0]

    @property
    def is_chain(self) -> bool:
        """Whether the rows of one key follow each other without gaps."""
        return self.start is not None and self.end is not None

    def replacement(self) -> Sql | None:
        """The condition under which a written row replaces a held one; None where only a MERGE can change the table."""
        if self.start is not None and self.end is not None:
            held, new = f"{TARGET}.{quoted(self.start)}", f"{SOURCE}.{quoted(self.start)}"
            end = f"{SOURCE}.{quoted(self.end)}"
            inside = f"({end} IS NULL OR {held} < {end} OR {held} = {new})"
            return every([_same(self.key), f"{held} >= {new}", inside])
        return every(_same(name) for name in self.replaces) if self.replaces else None


@dataclass(frozen=True)
class ChangeSet:
    """The rows that differ, each with its action, and what was counted about them."""

    rows: DataFrame
    spec: TableSpec
    counts: Mapping[str, int]
    earliest: datetime | None = None
    """The earliest start of a row that is written or goes."""
    oldest_end: datetime | None = None
    """The earliest end of a held row that an action is about; None where all of them are live."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not any(self.counts.get(action) for action in (INSERT, UPDATE, DELETE))

    @property
    def written(self) -> Written:
        """What the change comes to."""
        return Written(*(self.counts.get(action, 0) for action in (INSERT, UPDATE, DELETE)))


def difference(fresh: DataFrame, held: DataFrame, spec: TableSpec, ignored: Iterable[str] = ()) -> DataFrame:
    """What turns the held rows into the fresh ones. Grain: one row per row that differs, or starts where one differs.

    A difference in `ignored` columns alone is none.
    """
    skipped = {*spec.identity, *ignored, *spec.unread}
    compared = [name for name in spec.columns if name not in skipped]
    joined = fresh.alias("fresh").join(held.alias("held"), F.expr(_joined_on(spec)), "full_outer")
    is_new, is_gone = (f"{side}.{quoted(spec.key)} IS NULL" for side in ("held", "fresh"))
    differs = f"NOT ({every(_equal(name, fresh) for name in compared)})"
    action = (
        f"CASE WHEN {is_new} THEN '{INSERT}' WHEN {is_gone} THEN '{DELETE}' WHEN {differs} THEN '{UPDATE}' ELSE '{KEEP}' END"
    )
    values = [f"if({is_gone}, held.{quoted(name)}, fresh.{quoted(name)}) AS {quoted(name)}" for name in spec.columns]
    end = spec.closed_at or spec.end
    until = f"held.{quoted(end)}" if end else "CAST(NULL AS TIMESTAMP)"
    found = joined.selectExpr(*values, f"{action} AS {ACTION}", f"{until} AS {WAS_HELD_UNTIL}")
    return with_instants_whole(found, spec)


def with_instants_whole(rows: DataFrame, spec: TableSpec) -> DataFrame:
    """Rows with their action, less those that stay and start where nothing changes. Grain: one row per remaining row."""
    if not spec.is_chain or spec.start is None:
        return rows.where(F.col(ACTION) != KEEP)
    instant = Window.partitionBy(col(spec.key), col(spec.start))
    marked = rows.withColumn(_CHANGED, F.max(F.col(ACTION) != KEEP).over(instant))
    return marked.where(F.col(_CHANGED)).drop(_CHANGED)


def as_inserts(fresh: DataFrame, spec: TableSpec) -> DataFrame:
    """The rows as inserts, for a table that holds nothing yet. Grain: unchanged."""
    nothing = f"CAST(NULL AS TIMESTAMP) AS {WAS_HELD_UNTIL}"
    return fresh.selectExpr(*map(quoted, spec.columns), f"'{INSERT}' AS {ACTION}", nothing)


def change_set(rows: DataFrame, spec: TableSpec) -> ChangeSet:
    """The change, counted in one job; `rows` should be materialized, because they are read again when they are written."""
    start = F.unix_micros(col(spec.start)) if spec.start else F.lit(None).cast("bigint")
    until = F.unix_micros(F.col(WAS_HELD_UNTIL))
    first = (F.min(start).alias("earliest"), F.min(until).alias("oldest_end"))
    found = rows.groupBy(ACTION).agg(F.count(F.lit(1)).alias("rows"), *first).collect()
    counts = {row[ACTION]: row["rows"] for row in found}
    return ChangeSet(rows, spec, counts, *(_least(row[name] for row in found) for name in ("earliest", "oldest_end")))


def write(changes: ChangeSet, into: TableName, tables: DeltaTables, commit: Commit) -> Written:
    """The change in one commit; none when nothing differs."""
    if changes.is_empty:
        return Written()
    working = (ACTION, WAS_HELD_UNTIL)
    if changes.counts.keys() == {INSERT}:
        return tables.append(changes.rows.drop(*working), into, commit)
    on = changes.spec.replacement()
    if on is not None:
        rows = changes.rows.where(F.col(ACTION) != DELETE).drop(*working)
        tables.replace(rows, every([*_bounds(changes), on]), into, commit)
        return changes.written
    spec = changes.spec
    updated = [name for name in spec.columns if name not in spec.identity]
    same = every([*_bounds(changes), *(_same(name) for name in spec.identity)])
    merge = Merge(changes.rows.drop(WAS_HELD_UNTIL), same, ACTION, updated, spec.columns, deletes=True)
    return tables.merge(merge, into, commit)


def _bounds(changes: ChangeSet) -> list[Sql]:
    """Conditions on held rows that keep files closed: of periods that ended, or that start, too early to be concerned."""
    spec, bounds = changes.spec, []
    if spec.closed_at is not None:
        closed = f"{TARGET}.{quoted(spec.closed_at)}"
        later = "" if changes.oldest_end is None else f" OR {closed} >= {_timestamp(changes.oldest_end)}"
        bounds.append(f"{closed} IS NULL{later}")
    if spec.start is not None and changes.earliest is not None:
        bounds.append(f"{TARGET}.{quoted(spec.start)} >= {_timestamp(changes.earliest)}")
    return bounds


def _timestamp(moment: datetime) -> Sql:
    return f"timestamp_micros({micros_of(moment)})"


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


def _same(name: str) -> Sql:
    return f"{TARGET}.{quoted(name)} = {SOURCE}.{quoted(name)}"


def _least(found: Iterable[int | None]) -> datetime | None:
    known = [value for value in found if value is not None]
    return from_micros(min(known)) if known else None

