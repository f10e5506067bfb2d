"""The difference between rows that should be and rows that are held: only it is written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.columns import ACTION, Names, quoted
from karat.temporal.moments import micros_of
from karat.temporal.sql import Sql, every

WAS_LIVE = "__karat_was_live"
"""Working: whether the held row an act is about is among the live ones, which are kept apart."""


@dataclass(frozen=True)
class Form:
    """How a table's rows are told apart and laid out."""

    columns: Sequence[str]
    identity: Names
    live: str | None = None
    """The flag by which live rows are kept apart from the others."""
    start: str | None = None
    """The column of the identity that says where a row's period begins."""
    told: Names = ()
    """Columns that another one tells of: where that is the same, so are they, and held ones need not be read."""


def acts_between(fresh: DataFrame, held: DataFrame, form: Form, unseen: Iterable[str] = (), since: datetime | None = None) -> DataFrame:
    """The acts that turn held rows into fresh ones. Grain: one row per row that differs; a difference in `unseen` columns is none.

    With `since`, rows are those that reach that time or begin later. Of each entity at most one begins before; it is the same on both
    sides, wherever the fresh one is thought to begin, and keeps the beginning that is held.
    """
    compared = [name for name in form.columns if name not in form.identity and name not in set(unseen)]
    same = F.expr(
        " AND ".join(f"{_told_apart('new', name, form, since)} = {_told_apart('old', name, form, since)}" for name in form.identity)
    )
    joined = fresh.alias("new").join(held.alias("old"), on=same, how="full_outer")
    is_new, is_gone = (f"{side}.{quoted(form.identity[0])} IS NULL" for side in ("old", "new"))
    act = f"CASE WHEN {is_new} THEN 'insert' WHEN {is_gone} THEN 'delete' WHEN {_differs(compared, fresh)} THEN 'update' END"
    values = [
        f"if({is_new if name in form.identity else 'NOT ' + is_gone}, new.{quoted(name)}, old.{quoted(name)}) AS {quoted(name)}"
        for name in form.columns
    ]
    was_live = f"coalesce(old.{form.live}, true) AS {WAS_LIVE}" if form.live else f"true AS {WAS_LIVE}"
    return joined.selectExpr(f"{act} AS {ACTION}", was_live, *values).where(F.col(ACTION).isNotNull())


def _told_apart(side: str, name: str, form: Form, since: datetime | None) -> Sql:
    """What a column of the identity counts as; all beginnings before a time are one, the last moment before it."""
    if since is None or name != form.start:
        return f"{side}.{quoted(name)}"
    return f"greatest({side}.{quoted(name)}, timestamp_micros({micros_of(since) - 1}))"


def only_inserts(fresh: DataFrame, form: Form) -> DataFrame:
    """The acts where nothing is held. Grain: unchanged."""
    return fresh.selectExpr(f"'insert' AS {ACTION}", f"true AS {WAS_LIVE}", *map(quoted, form.columns))


def _differs(names: Sequence[str], rows: DataFrame) -> Sql:
    """Column by column: of structs Spark makes the order anew for every row. Maps cannot be compared, their sorted entries can."""
    maps = {field.name for field in rows.schema if isinstance(field.dataType, T.MapType)}

    def value(side: str, name: str) -> Sql:
        held = f"{side}.{quoted(name)}"
        return f"array_sort(map_entries({held}))" if name in maps else held

    same = every(f"{value('old', name)} <=> {value('new', name)}" for name in names)
    return f"NOT ({same})"
