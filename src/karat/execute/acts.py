"""Acts computed once and written in one commit: a MERGE, an append where nothing held is concerned, nothing where nothing differs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from karat.config.names import TableName
from karat.execute.delta import DeltaTables
from karat.execute.kept import kept
from karat.execute.tables import SOURCE, TARGET, Merge
from karat.state.commits import Commit, Written
from karat.temporal.columns import ACT, col, quoted
from karat.temporal.difference import WAS_LIVE, Form
from karat.temporal.moments import from_micros
from karat.temporal.sketch import FEW_KEYS, bitmaps, joined, may_be_among, sketched

MANY = 200_000
"""Rows that are worth laying out when they are first written."""


@dataclass(frozen=True)
class Acts:
    """Acts computed once, and a summary of them: for each kind where the first row concerned begins, and a sketch of their keys."""

    rows: DataFrame
    form: Form
    kinds: Sequence[Row]

    def near(self, kinds: Sequence[Row]) -> Column | None:
        """Of a held row: whether an act of these kinds can be about its key, where they are few. Others need not be moved to be joined."""
        if sum(row["rows"] for row in kinds) > FEW_KEYS:
            return None
        return may_be_among(col(self.form.identity[0], TARGET), joined([bitmaps(row["keys"]) for row in kinds]))


def settled_acts(changes: DataFrame, form: Form) -> Acts:
    """The changes, computed."""
    return all_settled([(changes, form)])[0]


def all_settled(parts: Sequence[tuple[DataFrame, Form]]) -> list[Acts]:
    """The changes of several tables, computed in one go."""
    computed = [(kept(changes), form) for changes, form in parts]
    summaries = [_summary(acts, form).withColumn("part", F.lit(part)) for part, (acts, form) in enumerate(computed)]
    found = reduce(DataFrame.unionByName, summaries).collect()
    return [Acts(acts, form, [row for row in found if row["part"] == part]) for part, (acts, form) in enumerate(computed)]


def _summary(acts: DataFrame, form: Form) -> DataFrame:
    first = F.min(F.unix_micros(form.start)) if form.start else F.lit(None).cast("bigint")
    keys = sketched(col(form.identity[0]))
    return acts.groupBy(ACT, WAS_LIVE).agg(first.alias("first"), F.count(F.lit(1)).alias("rows"), keys.alias("keys"))


def _laid_out(acts: Acts) -> DataFrame:
    """Many rows at once lie in order of time, as had they come day by day: later batches then leave files of old periods shut."""
    if acts.form.start is None or sum(row["rows"] for row in acts.kinds) < MANY:
        return acts.rows
    return acts.rows.repartitionByRange(*(F.col(name) for name in (acts.form.live, acts.form.start) if name))


def write(acts: Acts, into: TableName, tables: DeltaTables, commit: Commit) -> Written:
    """The acts in one commit; none when there are none."""
    if not acts.kinds:
        return Written()
    form = acts.form
    concerned = [row for row in acts.kinds if row[ACT] != "insert"]
    if not concerned:
        return tables.append(_laid_out(acts).drop(ACT, WAS_LIVE), into, commit)
    on = [f"{TARGET}.{quoted(name)} = {SOURCE}.{quoted(name)}" for name in form.identity]
    # literals, because only they keep files unopened: of closed rows when none is concerned, and of older ones
    if form.live and all(row[WAS_LIVE] for row in concerned):
        on.append(f"{TARGET}.{form.live} = true")
    if form.start:
        earliest = from_micros(min(row["first"] for row in concerned))
        on.append(f"{TARGET}.{form.start} >= TIMESTAMP'{earliest.isoformat(sep=' ')}'")
    updated = [name for name in form.columns if name not in form.identity]
    merge = Merge(acts.rows.drop(WAS_LIVE), " AND ".join(on), ACT, updated, form.columns, deletes=True, near=acts.near(concerned))
    return tables.merge(merge, into, commit)
