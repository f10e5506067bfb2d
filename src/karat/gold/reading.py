"""What a target reads: its query over whole tables, over changed rows, or over the keys that changed rows concern.

everything   the query over the sources as they are
changes      the query over the changed rows of one source, the others as they are; possible where the query goes row by row
affected     the keys that the query gives for changed rows; what they are now is taken from everything
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.query import changes_query, is_row_by_row, parsed, tables_read
from karat.config.resolve.gold import THIS
from karat.config.template import render
from karat.gold.context import SourceState, StarContext
from karat.gold.schema import CHANGE, COMMIT, COMMITTED_AT, DELETE, KIND
from karat.gold.states import settled
from karat.sources.changes import change_rows
from karat.temporal.columns import Names, col
from karat.temporal.moments import moment


@dataclass(frozen=True)
class Work:
    """What is to be read: nothing, everything, or what the changes of some sources concern."""

    everything: bool = False
    drivers: tuple[SourceState, ...] = ()
    """The sources whose changes are followed."""
    row_by_row: bool = False
    """Whether changed rows alone give the changed result."""

    @property
    def is_nothing(self) -> bool:
        """Whether all of it was read before."""
        return not self.everything and not self.drivers


def work_for(context: StarContext, *, from_changes: bool = False, whole_keys: bool = False) -> Work:
    """What the target must read.

    `from_changes`: a first run follows the change feed from its beginning; `whole_keys`: changed rows only tell which keys are concerned.
    """
    star = context.star
    feeds = [each for each in context.sources if each.source.is_feed]
    changed = [each for each in feeds if each.is_changed]
    whole = [each for each in context.sources if not each.source.is_feed and each.is_changed]
    if context.is_first or context.is_reload:
        if not (from_changes and feeds and not context.is_reload):
            return Work(everything=True)
        changed = feeds
    elif not feeds:
        return Work(everything=bool(whole))
    elif whole and star.on_full_change == "rebuild":
        return Work(everything=True)
    elif whole and star.on_full_change == "affected":
        return Work(drivers=(*changed, *whole))
    if not changed:
        return Work()
    query = parsed(sql_of(context))
    follows = not whole_keys and all(is_row_by_row(query, each.source.alias) for each in changed) and _is_divided(context, changed)
    return Work(drivers=tuple(changed), row_by_row=follows)


def _is_divided(context: StarContext, changed: Sequence[SourceState]) -> bool:
    """Whether no two changed sources meet in one SELECT: rows of both that changed together would be missed."""
    if len(changed) == 1:
        return True
    query = parsed(sql_of(context))
    reads = [tables_read(parsed(changes_query(query, each.source.alias))) for each in changed]
    aliases = {each.source.alias.lower() for each in changed}
    return all(len(read & aliases) == 1 for read in reads)


def everything(context: StarContext) -> DataFrame:
    """The query over the sources as they are, each row as an insert of the newest commit. Grain: one row per result row."""
    _show(context, {})
    rows = _without_feed_columns(context.tables.session.sql(sql_of(context)))
    at = moment(context.committed_at)
    return rows.withColumns({CHANGE: F.lit("insert"), COMMIT: F.lit(context.newest).cast("bigint"), COMMITTED_AT: at})


def changes(context: StarContext, work: Work) -> DataFrame:
    """The query over the changed rows of each driver, with how and when they changed. Grain: one row per changed result row."""
    query = parsed(sql_of(context))
    found = []
    for driver in work.drivers:
        alias = driver.source.alias
        _show(context, {alias: changed_rows(context, driver)})
        rows = _without_feed_columns(context.tables.session.sql(changes_query(query, alias)))
        found.append(rows.withColumn(COMMITTED_AT, F.col(COMMITTED_AT).cast("timestamp")))
    return reduce(lambda left, right: left.unionByName(right), found)


def affected_keys(context: StarContext, work: Work, keys: Names) -> DataFrame:
    """The keys that changed rows of the drivers concern, those that are gone included. Grain: one row per key."""
    query = parsed(sql_of(context))
    found = []
    for driver in work.drivers:
        alias = driver.source.alias
        views = {each.source.alias: _with_gone_rows(context, each) for each in work.drivers if each is not driver}
        _show(context, {**views, alias: changed_rows(context, driver)})
        sql = changes_query(query, alias) if is_row_by_row(query, alias) else sql_of(context)
        found.append(context.tables.session.sql(sql).select(*map(col, keys)))
    return reduce(DataFrame.unionByName, found).distinct()


def concerning(rows: DataFrame, keys: DataFrame, names: Names) -> DataFrame:
    """The rows of these keys. Grain: unchanged."""
    return rows.join(keys.select(*map(col, names)), list(names), "left_semi").select(*map(col, rows.columns))


def states_of_members(context: StarContext, members: DataFrame, keys: Names) -> DataFrame:
    """What the query gives for these members now, and a delete for each that it gives no longer. Grain: one row per state."""
    now = settled(concerning(everything(context), members, keys), keys)
    gone = members.join(now.select(*map(col, keys)), list(keys), "left_anti")
    none = {name: F.lit(None).cast(now.schema[name].dataType) for name in now.columns if name not in keys}
    at = {KIND: F.lit(DELETE), COMMITTED_AT: moment(context.committed_at), COMMIT: F.lit(context.newest).cast("bigint")}
    return now.unionByName(gone.withColumns({**none, **at}).select(*map(col, now.columns)))


def sql_of(context: StarContext) -> str:
    """The target's query, its template filled in."""
    star, stamp = context.star, context.run.stamp
    this = {"name": str(star.table), "exists": context.state.exists, "rows": THIS}
    run = {
        "id": stamp.run_id,
        "started_at": f"{stamp.started_at:%Y-%m-%d %H:%M:%S}",
        "date": f"{stamp.started_at:%Y-%m-%d}",
        "is_first": context.is_first,
        "is_reload": context.is_reload,
    }
    return render(star.template, context.run.config.variables, this, run)


def changed_rows(context: StarContext, driver: SourceState) -> DataFrame:
    """What changed in a source since it was read, as Delta's change feed tells it."""
    tables, table = context.tables, driver.source.table
    return change_rows(tables.session, tables.address(table), str(table), driver.read, driver.version)


def _with_gone_rows(context: StarContext, driver: SourceState) -> DataFrame:
    """A source as it is, and the rows that it had before: rows of two sources may be gone together."""
    there = _read(context, driver)
    gone = changed_rows(context, driver).where(F.col("_change_type").isin("delete", "update_preimage")).select(*map(col, there.columns))
    return there.unionByName(gone)


def _show(context: StarContext, instead: dict[str, DataFrame]) -> None:
    """Each source as a view under its alias, on the stage's own session; and the target itself."""
    for each in context.sources:
        rows = instead[each.source.alias] if each.source.alias in instead else _read(context, each)
        rows.createOrReplaceTempView(each.source.alias)
    if context.state.exists:
        context.tables.read(context.star.table, context.state.version).createOrReplaceTempView(THIS)


def _read(context: StarContext, each: SourceState) -> DataFrame:
    return context.tables.read(each.source.table, each.version)


def _without_feed_columns(rows: DataFrame) -> DataFrame:
    return rows.drop("_change_type", "_commit_version", "_commit_timestamp")
