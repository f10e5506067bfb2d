"""A difference, counted and then written in one commit.

append        nothing that is held changes
replacement   every held row that changes or goes leaves its place to a row that is written: to the one of the same identity,
              or to one of the same chain whose period overlaps; held rows are searched by these few columns
MERGE         a row goes and no written row takes its time, or Delta is older; held rows are searched and compared whole
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.names import TableName
from karat.lake.delta import DeltaTables
from karat.lake.tables import SOURCE, TARGET, Merge
from karat.state.commits import Commit, Written
from karat.temporal.changes import DELETE, INSERT, UPDATE, WAS_HELD_UNTIL, TableSpec, as_inserts, overlapping, same_on
from karat.temporal.columns import ACTION, col, quoted
from karat.temporal.moments import from_micros, micros_of
from karat.temporal.sql import Sql, every

_MATCHED = "__karat_matched"


@dataclass(frozen=True)
class ChangeSet:
    """The rows that differ, each with its action, and what was counted about them."""

    rows: DataFrame
    spec: TableSpec
    counts: Mapping[str, int]
    earliest: datetime | None = None
    """The earliest start of a held row that an action is about."""
    oldest_end: datetime | None = None
    """The earliest end of a held row that an action is about; None where all of them are live."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not any(self.counts.get(action) for action in (INSERT, UPDATE, DELETE))

    @property
    def written(self) -> Written:
        """What the table gains, changes and loses with it."""
        return Written(*(self.counts.get(action, 0) for action in (INSERT, UPDATE, DELETE)))


def change_set(rows: DataFrame, spec: TableSpec) -> ChangeSet:
    """The change, counted in one job; `rows` should be materialized, because they are read again when they are written."""
    is_held = F.col(ACTION).isin(UPDATE, DELETE)
    start = F.when(is_held, F.unix_micros(col(spec.start))) if spec.start else F.lit(None).cast("bigint")
    until = F.unix_micros(F.col(WAS_HELD_UNTIL))
    first = (F.min(start).alias("earliest"), F.min(until).alias("oldest_end"))
    found = rows.groupBy(ACTION).agg(F.count(F.lit(1)).alias("rows"), *first).collect()
    counts = {row[ACTION]: row["rows"] for row in found}
    return ChangeSet(rows, spec, counts, *(_least(row[name] for row in found) for name in ("earliest", "oldest_end")))


def inserts(fresh: DataFrame, spec: TableSpec) -> ChangeSet:
    """The change that fills a table without rows: read once, when it is written, and counted by its commit."""
    return ChangeSet(as_inserts(fresh, spec), spec, {INSERT: 1})


def write(changes: ChangeSet, into: TableName, tables: DeltaTables, commit: Commit) -> Written:
    """The change in one commit; none when nothing differs."""
    if changes.is_empty:
        return Written()
    if changes.counts.keys() == {INSERT}:
        return tables.append(_put(changes), into, commit)
    if not changes.spec.generated and tables.can_replace() and _replaces_what_goes(changes):
        tables.replace(_put(changes), every([*_bounds(changes), _is_replaced(changes.spec)]), into, commit)
        return changes.written
    spec = changes.spec
    updated = [name for name in spec.columns if name not in spec.identity]
    inserted = [name for name in spec.columns if name not in spec.generated]
    same = every([*_bounds(changes), *(same_on(name) for name in spec.identity)])
    merge = Merge(changes.rows.drop(WAS_HELD_UNTIL), same, ACTION, updated, inserted, deletes=True)
    return tables.merge(merge, into, commit)


def _put(changes: ChangeSet) -> DataFrame:
    """The rows that are in the table afterwards."""
    columns = [name for name in changes.spec.columns if name not in changes.spec.generated]
    return changes.rows.where(F.col(ACTION) != DELETE).select(*map(col, columns))


def _replaces_what_goes(changes: ChangeSet) -> bool:
    """Whether every row that goes leaves its time to a row that is written; asked of the rows only if some go."""
    if not changes.counts.get(DELETE):
        return True
    spec = changes.spec
    if not spec.chain or spec.start is None or spec.closed_at is None:
        return False
    periods = [*map(col, spec.chain), col(spec.start)]
    gone = changes.rows.where(F.col(ACTION) == DELETE).select(*periods, WAS_HELD_UNTIL).alias(TARGET)
    put = changes.rows.where(F.col(ACTION) != DELETE).select(*periods, col(spec.closed_at)).alias(SOURCE)
    overlap = overlapping(spec, f"{SOURCE}.{quoted(spec.closed_at)}", f"{TARGET}.{WAS_HELD_UNTIL}")
    return gone.join(put, F.expr(overlap), "left_anti").isEmpty()


def _is_replaced(spec: TableSpec) -> Sql:
    """Whether a held row is replaced by a written one: it is the same row, or one whose time the written row takes."""
    same = every(same_on(name) for name in spec.identity)
    if not spec.chain or spec.closed_at is None:
        return same
    ends = (f"{side}.{quoted(spec.closed_at)}" for side in (SOURCE, TARGET))
    rest = every(same_on(name) for name in spec.identity if name not in spec.chain)
    return every([*(same_on(name) for name in spec.chain), f"(({rest}) OR ({overlapping(spec, *ends)}))"])


def replacing_keys(fresh: DataFrame, keys: DataFrame, spec: TableSpec) -> Merge:
    """A merge after which the keys have exactly the fresh rows, whatever was held of them: missing, extra or doubled rows.

    `keys` has one row per key, `fresh` all rows these keys should have.
    """
    gone = keys.select(col(spec.key), F.lit(DELETE).alias(ACTION)).withColumn(_MATCHED, col(spec.key))
    put = fresh.withColumns({ACTION: F.lit(INSERT), _MATCHED: F.lit(None).cast(fresh.schema[spec.key].dataType)})
    rows = put.unionByName(gone, allowMissingColumns=True)
    return Merge(rows, f"{TARGET}.{quoted(spec.key)} = {SOURCE}.{_MATCHED}", ACTION, (), spec.columns, deletes=True)


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


def _least(found: Iterable[int | None]) -> datetime | None:
    known = [value for value in found if value is not None]
    return from_micros(min(known)) if known else None
