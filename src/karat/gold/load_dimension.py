"""A dimension brought up to date: states of its members, settled into versions, compared with the held ones, written in one commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import Dimension
from karat.errors import ConfigError, ContractBreach
from karat.gold.commit import concluded, prepare, unchanged, write_target
from karat.gold.context import Account, StarContext
from karat.gold.dimension import given_periods, held_states, latest, versions, with_hashdiff
from karat.gold.keys import IS_NEW, check_collisions, with_keys
from karat.gold.members import calendar_days, columns_of, date_key, reserved_members, without_reserved
from karat.gold.reading import Work, affected_keys, changes, concerning, everything, work_for
from karat.gold.refused import refused_rows, split_refused
from karat.gold.schema import (
    AT,
    COMMIT,
    COMMITTED_AT,
    DELETE,
    DURABLE_KEY,
    HASHDIFF,
    HELD_KEY,
    IS_CURRENT,
    KIND,
    ORDER,
    UPSERT,
    VALID_FROM,
    VALID_TO,
    dimension_schema,
    dimension_spec,
    own_columns,
    require_columns,
)
from karat.gold.skeletons import highest_key
from karat.gold.states import dated, settled
from karat.lake.materialized import materialized
from karat.lake.outcome import Outcome
from karat.temporal.changes import as_inserts, difference
from karat.temporal.columns import REASON, Names, col
from karat.temporal.moments import moment


def load_dimension(dimension: Dimension, context: StarContext) -> Outcome:
    """The dimension with all that its sources tell by now."""
    if dimension.calendar is not None:
        return _load_calendar(dimension, context)
    work = work_for(context, from_changes=dimension.from_changes, whole_keys=dimension.periods is not None)
    if work.is_nothing:
        return unchanged(context)
    account = Account()
    with _told(dimension, context, work) as (states, gone):
        columns = own_columns(states.drop(KIND, AT, ORDER, REASON).columns, str(dimension.table))
        _check(states, columns, dimension, context)
        admitted = split_refused(states, columns, context, account)
        prepare(dimension_schema(states.select(*map(col, columns)).schema, dimension), context)
        held = _held(dimension, context, columns)
        if dimension.periods is not None:
            return _load_periods(admitted, gone, held, dimension, context, account)
        return _load_states(_with_absent(admitted, held, dimension, context, work), held, columns, dimension, context, account)


@contextmanager
def _told(dimension: Dimension, context: StarContext, work: Work) -> Iterator[tuple[DataFrame, DataFrame | None]]:
    """The states that sources tell, each row once, with a reason where it is refused; and the keys that are to be replaced whole."""
    keys = dimension.keys
    if work.everything or work.row_by_row:
        rows = everything(context) if work.everything else changes(context, work)
        require_columns(rows.columns, keys, str(dimension.table), "natural_keys")
        with materialized(_with_reasons(dated(settled(rows, keys), dimension.effective_at), dimension)) as states:
            yield states, None
        return
    with materialized(affected_keys(context, work, keys)) as concerned:
        now = concerning(everything(context), concerned, keys)
        gone = concerned.join(now.select(*map(col, keys)), list(keys), "left_anti")
        none = {name: F.lit(None).cast(now.schema[name].dataType) for name in now.columns if name not in keys}
        at = {KIND: F.lit(DELETE), COMMITTED_AT: moment(context.committed_at), COMMIT: F.lit(context.newest).cast("bigint")}
        deletes = gone.withColumns({**none, **at}).select(*map(col, now.columns), KIND)
        there = settled(now, keys)
        states = there.unionByName(deletes.drop("__karat_change_type"))
        with materialized(_with_reasons(dated(states, dimension.effective_at), dimension)) as told:
            yield told, concerned


def _with_reasons(states: DataFrame, dimension: Dimension) -> DataFrame:
    """The states, those refused with their reason. Grain: unchanged."""
    return refused_rows(states, dimension.keys, "natural key", dimension.effective_at)


def _check(states: DataFrame, columns: Names, dimension: Dimension, context: StarContext) -> None:
    """Raises `ContractBreach` where one key, time and commit have two contents: nobody can say which of them counts."""
    require_columns(columns, dimension.tracked or (), str(dimension.table), "track")
    require_columns(columns, dimension.periods or (), str(dimension.table), "periods")
    require_columns(columns, (dimension.effective_at,) if dimension.effective_at else (), str(dimension.table), "effective_at")
    if context.state.exists:
        _check_key_types(states, dimension, context)
    time = [F.col(AT)] if dimension.has_history else []
    start = [col(dimension.periods[0])] if dimension.periods else []
    content = F.xxhash64(F.to_json(F.struct(*map(col, columns)), {"ignoreNullFields": "false"}))
    keys = list(map(col, dimension.keys))
    said = states.where((F.col(KIND) == UPSERT) & F.col(REASON).isNull())
    twice = said.groupBy(*keys, F.col(ORDER), *time, *start).agg(F.count_distinct(content).alias("contents")).where(F.col("contents") > 1)
    names = F.concat_ws(", ", *(key.cast("string") for key in keys))
    found = [row["member"] for row in twice.select(names.alias("member")).take(3)]
    if found:
        message = f"{dimension.table}: the query returns several rows of one natural key ({'; '.join(found)})"
        remedy = "let the query return one row of each, or declare the column by which they follow each other (effective_at)"
        raise ContractBreach(message, remedy=remedy)


def _check_key_types(states: DataFrame, dimension: Dimension, context: StarContext) -> None:
    held = {field.name.lower(): field.dataType for field in context.tables.read(dimension.table, context.state.version).schema}
    for name in dimension.keys:
        new = states.schema[name].dataType
        known = held.get(name.lower())
        if known is not None and known != new and not isinstance(new, T.NullType):
            message = f"{dimension.table}: the natural key {name} is {known.simpleString()}, the query returns {new.simpleString()}"
            raise ConfigError(
                message, remedy=f"cast it to {known.simpleString()} in the query: keys of another type would be other members"
            )


def _held(dimension: Dimension, context: StarContext, columns: Names) -> DataFrame:
    """The held versions, without reserved members, with every column of the query."""
    rows = context.tables.read(dimension.table)
    return without_reserved(rows, dimension).select(*map(col, dimension_spec(columns, dimension).columns))


def _with_absent(states: DataFrame, held: DataFrame, dimension: Dimension, context: StarContext, work: Work) -> DataFrame:
    """The states, and a delete for each current member that a whole reading lacks, where absence means that. Grain: one row per state."""
    if not work.everything or context.is_first or not (dimension.absence_deletes or context.is_reload):
        return states
    current = held.where(F.col(IS_CURRENT) & ~F.col("__is_skeleton"))
    absent = current.join(states.where(F.col(KIND) == UPSERT).select(*map(col, dimension.keys)), list(dimension.keys), "left_anti")
    fixed = {KIND: F.lit(DELETE), AT: moment(context.committed_at), ORDER: F.lit(context.newest).cast("bigint")}
    return states.unionByName(absent.withColumns(fixed).select(*map(col, states.columns)))


def _load_states(
    states: DataFrame, held: DataFrame, columns: Names, dimension: Dimension, context: StarContext, account: Account
) -> Outcome:
    """States and held versions of the same members, settled and compared."""
    earliest = states.agg(F.min(AT).alias("at"), F.count(F.lit(1)).alias("rows"), F.min(F.unix_micros(AT)).alias("micros")).collect()[0]
    account.read += earliest["rows"]
    keys = list(dimension.keys)
    near = held if earliest["micros"] is None else held.where(_may_matter(earliest["micros"], dimension))
    near = near.join(states.select(*map(col, keys)).distinct(), keys, "left_semi").select(*map(col, held.columns))
    with materialized(near) as there:
        new = with_hashdiff(states, columns, dimension).withColumn(HELD_KEY, F.lit(None).cast("bigint"))
        wanted = [*map(col, columns), F.col(HASHDIFF), *map(F.col, (KIND, AT, HELD_KEY)), F.col(ORDER)]
        told = new.select(*wanted).unionByName(held_states(there, columns, dimension).select(*wanted))
        fresh = versions(told, columns, dimension) if dimension.has_history else latest(told, columns, dimension)
        return _write(fresh, there, columns, dimension, context, account)


def _may_matter(micros: int, dimension: Dimension) -> F.Column:  # type: ignore[name-defined]
    """Whether a held version can have to do with states of this time or later; a bound that lets files stay closed."""
    if not dimension.has_history:
        return F.lit(True)
    return F.col(VALID_TO).isNull() | (F.col(VALID_TO) > F.timestamp_micros(F.lit(micros))) | F.col(IS_CURRENT)


def _load_periods(
    rows: DataFrame, replaced: DataFrame | None, held: DataFrame, dimension: Dimension, context: StarContext, account: Account
) -> Outcome:
    """Rows that have periods already, in place of all that was held of their members."""
    keys = list(dimension.keys)
    columns = columns_of(held.schema, dimension)
    of_members = held if replaced is None else held.join(replaced, keys, "left_semi").select(*map(col, held.columns))
    account.read += rows.count()
    with materialized(of_members) as there:
        fresh = given_periods(rows.where(F.col(KIND) == UPSERT), columns, dimension)
        known = there.select(*keys, VALID_FROM, col(dimension.surrogate).alias(HELD_KEY))
        keyed = fresh.join(known, [*keys, VALID_FROM], "left").withColumn(dimension.surrogate, F.col(HELD_KEY))
        return _write(keyed.select(*map(col, held.columns)), there, columns, dimension, context, account)


def _write(fresh: DataFrame, held: DataFrame, columns: Names, dimension: Dimension, context: StarContext, account: Account) -> Outcome:
    """The difference with its new keys, in one commit."""
    spec = dimension_spec(columns, dimension)
    all_held = context.tables.read(dimension.table)
    found = difference(fresh, held, spec, ignored=[DURABLE_KEY])
    if context.is_first:
        members = reserved_members(context.tables.session, all_held.schema, dimension)
        if dimension.strategy == "identity":  # Delta numbers what it is given without a key, so these come by themselves
            context = _with_members_written(members, context)
        else:
            found = found.unionByName(as_inserts(members, spec))
    with materialized(found) as rows, materialized(with_keys(rows, dimension, highest_key(all_held, dimension))) as keyed:
        check_collisions(keyed.where(IS_NEW), all_held, dimension)
        written = write_target(keyed, spec, context)
    return concluded(context, account, written)


def _with_members_written(members: DataFrame, context: StarContext) -> StarContext:
    """The context after the reserved members have been written in a commit of their own, once."""
    stage = str(context.star.table)
    if "members" in context.state.checkpoint.position:
        return context
    commit = context.run.commit(stage, context.state.next_number, members=True)
    context.tables.append(members, context.star.table, commit)
    return replace(context, state=context.tables.state(context.star.table, stage))


def _load_calendar(dimension: Dimension, context: StarContext) -> Outcome:
    """The days of the calendar, generated once and whenever its declaration changes."""
    declared = [str(part) for part in dimension.calendar or ()]
    if context.state.checkpoint.position.get("calendar") == declared:
        return unchanged(context)
    days = calendar_days(context.tables.session, dimension, moment(context.run.stamp.started_at))
    columns = own_columns(days.columns, str(dimension.table))
    prepare(dimension_schema(days.select(*map(col, columns)).schema, dimension), context)
    spec = dimension_spec(columns, dimension)
    states = with_hashdiff(dated(settled(days, dimension.keys), None), columns, dimension).withColumn(HELD_KEY, F.lit(None).cast("bigint"))
    fresh = latest(states, columns, dimension).withColumns({dimension.surrogate: date_key(), DURABLE_KEY: date_key()})
    held = without_reserved(context.tables.read(dimension.table), dimension).select(*map(col, spec.columns))
    stays = ["__effective_at"]
    found = difference(fresh.select(*map(col, spec.columns)), held, spec, ignored=stays)
    if not context.state.checkpoint.position.get("calendar"):
        found = found.unionByName(as_inserts(reserved_members(context.tables.session, held.schema, dimension), spec))
    with materialized(found) as rows:
        written = write_target(rows.where(F.col("__karat_action") != "delete"), spec, context, calendar=declared)
    return concluded(context, Account(read=days.count()), written)
