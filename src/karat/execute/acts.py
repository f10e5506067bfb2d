"""Acts computed once and written in one commit: rows in the place of others, an append where all are new, nothing where nothing differs.

What a MERGE does in three searches of the table a replacement does in one: docs/decisions/0010.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.execute.kept import kept
from karat.lake.delta import DeltaTables
from karat.lake.tables import SOURCE, TARGET, Merge, Replacement
from karat.state.commits import Commit, Written
from karat.temporal.columns import ACTION, col, quoted
from karat.temporal.difference import WAS_LIVE, Form
from karat.temporal.moments import from_micros, roughly
from karat.temporal.sketch import FEW_KEYS, bitmaps, joined, may_be_among, sketched
from karat.temporal.sql import Sql, literal

MANY = 200_000
"""Rows that are worth laying out when they are first written."""
FEW_GONE = 200
"""Rows that go and leave nothing in their place, up to which each can be named in the commit."""


@dataclass(frozen=True)
class Acts:
    """Acts computed once, and a summary: for each kind where its rows begin, the first and the last, and a sketch of their keys."""

    rows: DataFrame
    form: Form
    kinds: Sequence[Row]

    @property
    def concerned(self) -> list[Row]:
        """The kinds that are about held rows."""
        return [row for row in self.kinds if row[ACTION] != "insert"]

    @property
    def meant(self) -> Written:
        """How many rows of each kind there are."""
        count = {act: sum(row["rows"] for row in self.kinds if row[ACTION] == act) for act in ("insert", "update", "delete")}
        return Written(count["insert"], count["update"], count["delete"])

    def near(self, kinds: Sequence[Row]) -> list[Sql]:
        """Of a held row: whether an act of these kinds can be about its key, where they are few. Others need not be moved to be joined."""
        if sum(row["rows"] for row in kinds) > FEW_KEYS:
            return []
        return [may_be_among(f"{TARGET}.{quoted(self.form.identity[0])}", joined([bitmaps(row["keys"]) for row in kinds]))]


def settled_acts(changes: DataFrame, form: Form) -> Acts:
    """The changes, computed."""
    return all_settled([(changes, form)])[0]


def all_settled(parts: Sequence[tuple[DataFrame, Form]]) -> list[Acts]:
    """The changes of several tables, computed in one go."""
    computed = [(kept(changes), form) for changes, form in parts]
    summaries = [_summary(acts, form).withColumn("part", F.lit(part)) for part, (acts, form) in enumerate(computed)]
    found = reduce(DataFrame.unionByName, summaries).collect()
    return [Acts(acts, form, [row for row in found if row["part"] == part]) for part, (acts, form) in enumerate(computed)]


def write(acts: Acts, into: TableName, tables: DeltaTables, commit: Commit) -> Written:
    """The acts in one commit; none when there are none."""
    if not acts.kinds:
        return Written()
    if not acts.concerned:
        return tables.append(_laid_out(acts).drop(ACTION, WAS_LIVE), into, commit)
    gone = _gone(acts)
    if gone is not None:
        rows = acts.rows.where(F.col(ACTION) != "delete") if gone else acts.rows
        return tables.replace(Replacement(rows.drop(ACTION, WAS_LIVE), _matched(acts, gone), acts.meant), into, commit)
    updated = [name for name in acts.form.columns if name not in acts.form.identity]
    merge = Merge(acts.rows.drop(WAS_LIVE), _matched(acts, ()), ACTION, updated, acts.form.columns, deletes=True)
    return tables.merge(merge, into, commit)


def _summary(acts: DataFrame, form: Form) -> DataFrame:
    start = F.unix_micros(form.start) if form.start else F.lit(None).cast("bigint")
    keys = sketched(col(form.identity[0]))
    spans = (F.min(start).alias("first"), F.max(start).alias("last"))
    return acts.groupBy(ACTION, WAS_LIVE).agg(*spans, F.count(F.lit(1)).alias("rows"), keys.alias("keys"))


def _laid_out(acts: Acts) -> DataFrame:
    """Many rows at once lie in order of time, as had they come day by day: later batches then leave files of old periods shut."""
    if acts.form.start is None or sum(row["rows"] for row in acts.kinds) < MANY:
        return acts.rows
    return acts.rows.repartitionByRange(*(F.col(name) for name in (acts.form.live, acts.form.start) if name))


def _gone(acts: Acts) -> Sequence[str] | None:
    """The held rows that go and leave nothing in their place, by name; None where not all can be told of beside a row of the same key."""
    meant = acts.meant
    if meant.updated + meant.deleted > FEW_KEYS or meant.deleted > FEW_GONE:
        return None
    if not meant.deleted:
        return ()
    is_written = F.max(F.col(ACTION) != "delete").over(Window.partitionBy(col(acts.form.identity[0])))
    names = acts.rows.select(ACTION, is_written.alias("beside"), F.expr(_name(acts)).alias("name")).where(F.col(ACTION) == "delete").collect()
    return [row["name"] for row in names] if all(row["beside"] for row in names) else None


def _matched(acts: Acts, gone: Sequence[str]) -> Sql:
    """The held rows an act is about: its own, and those of the same key that go."""
    form, concerned = acts.form, acts.concerned
    key, *others = [f"{TARGET}.{quoted(name)} = {SOURCE}.{quoted(name)}" for name in form.identity]
    on = acts.near(concerned)
    # literals, because only they keep files unopened: of closed rows when none is concerned, and of older ones
    if form.live and all(row[WAS_LIVE] for row in concerned):
        on.append(f"{TARGET}.{form.live} = true")
    if form.start:
        first, last = min(row["first"] for row in concerned), max(row["last"] for row in acts.kinds)
        earliest = roughly(from_micros(first), from_micros(last))
        on.append(f"{TARGET}.{form.start} >= TIMESTAMP'{earliest.isoformat(sep=' ')}'")
    itself = " AND ".join(others)
    if gone:
        itself = f"({itself} OR {_name(acts, TARGET)} IN ({', '.join(map(literal, gone))}))"
    return " AND ".join(filter(None, [*on, key, itself]))


def _name(acts: Acts, side: str | None = None) -> Sql:
    """What tells a row from others of its key, as one text."""
    types = {field.name: field.dataType for field in acts.rows.schema}
    parts = []
    for name in acts.form.identity[1:]:
        value = quoted(name) if side is None else f"{side}.{quoted(name)}"
        is_time, is_bytes = isinstance(types[name], T.TimestampType), isinstance(types[name], T.BinaryType)
        parts.append(f"unix_micros({value})" if is_time else f"hex({value})" if is_bytes else value)
    return f"to_json(array({', '.join(f'CAST({part} AS STRING)' for part in parts)}))"
