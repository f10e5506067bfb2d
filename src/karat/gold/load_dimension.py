"""A dimension brought up to date: states of its members, settled into versions, compared with the held ones, written in one commit."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import Dimension
from karat.errors import ConfigError, ContractBreach
from karat.gold.commit import concluded, prepare, unchanged, write_target
from karat.gold.context import Account, StarContext
from karat.gold.dimension import given_periods, held_states, latest, versions, with_hashdiff
from karat.gold.keys import IS_NEW, check_collisions, with_keys
from karat.gold.members import calendar_days, date_key, reserved_members, without_reserved
from karat.gold.reading import Work, affected_keys, changes, everything, states_of_members, work_for
from karat.gold.refused import refused_rows, split_refused
from karat.gold.schema import (
    AT,
    DELETE,
    DURABLE_KEY,
    EFFECTIVE_AT,
    HASHDIFF,
    HELD_KEY,
    IS_CURRENT,
    IS_SKELETON,
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
from karat.temporal.changes import WAS_HELD_UNTIL, TableSpec, as_inserts, difference
from karat.temporal.columns import ACTION, REASON, Names, col
from karat.temporal.moments import moment


@dataclass(frozen=True)
class _Load:
    """A dimension that is being brought up to date."""

    dimension: Dimension
    context: StarContext
    columns: Names
    """The query's own columns."""
    account: Account = field(default_factory=Account)

    @property
    def keys(self) -> list[str]:
        """The natural key."""
        return list(self.dimension.keys)

    def held(self) -> DataFrame:
        """The held versions, without reserved members, with every column of the query. Grain: one row per version."""
        rows = self.context.tables.read(self.dimension.table)
        return without_reserved(rows, self.dimension).select(*map(col, self.spec.columns))

    @property
    def spec(self) -> TableSpec:
        """How rows are told apart."""
        return dimension_spec(self.columns, self.dimension)


def load_dimension(dimension: Dimension, context: StarContext) -> Outcome:
    """The dimension with all that its sources tell by now."""
    if dimension.calendar is not None:
        return _load_calendar(dimension, context)
    work = work_for(context, from_changes=dimension.from_changes, whole_keys=dimension.periods is not None)
    if work.is_nothing:
        return unchanged(context)
    with _told(dimension, context, work) as (states, members):
        columns = own_columns(states.drop(KIND, AT, ORDER, REASON).columns, str(dimension.table))
        load = _Load(dimension, context, columns)
        _check_columns(load)
        _check_one_content(states, load)
        admitted = split_refused(states, columns, context, load.account)
        prepare(dimension_schema(states.select(*map(col, columns)).schema, dimension), context)
        if dimension.periods is not None:
            return _load_periods(admitted, members, load)
        return _load_states(_with_absent(admitted, load, work), load)


@contextmanager
def _told(dimension: Dimension, context: StarContext, work: Work) -> Iterator[tuple[DataFrame, DataFrame | None]]:
    """The states that sources tell, with a reason where they are refused; and the members that are read whole, None where all are."""
    keys = dimension.keys
    if work.everything or work.row_by_row:
        rows = everything(context) if work.everything else changes(context, work)
        require_columns(rows.columns, keys, str(dimension.table), "natural_keys")
        _check_key_types(rows, dimension, context)
        with materialized(_with_reasons(settled(rows, keys), dimension)) as states:
            yield states, None
        return
    with (
        materialized(affected_keys(context, work, keys)) as concerned,
        materialized(_with_reasons(states_of_members(context, concerned, keys), dimension)) as states,
    ):
        yield states, concerned


def _with_reasons(states: DataFrame, dimension: Dimension) -> DataFrame:
    """The states with their time, those refused with their reason. Grain: unchanged."""
    return refused_rows(dated(states, dimension.effective_at), dimension.keys, "natural key", dimension.effective_at)


def _check_columns(load: _Load) -> None:
    """Raises `ConfigError` where the query lacks a column that a setting names."""
    dimension, table = load.dimension, str(load.dimension.table)
    require_columns(load.columns, dimension.tracked or (), table, "track")
    require_columns(load.columns, dimension.periods or (), table, "periods")
    require_columns(load.columns, (dimension.effective_at,) if dimension.effective_at else (), table, "effective_at")


def _check_key_types(rows: DataFrame, dimension: Dimension, context: StarContext) -> None:
    """Raises `ConfigError` where a part of the natural key has another type than in the table: its values would be other members."""
    if not context.state.exists:
        return
    held = {field.name.lower(): field.dataType for field in context.tables.read(dimension.table, context.state.version).schema}
    for name in dimension.keys:
        new, known = rows.schema[name].dataType, held[name.lower()]
        if known != new and not isinstance(new, T.NullType):
            message = f"{dimension.table}: the natural key {name} is {known.simpleString()}, the query returns {new.simpleString()}"
            raise ConfigError(message, remedy=f"cast it to {known.simpleString()}: keys of another type would be other members")


def _check_one_content(states: DataFrame, load: _Load) -> None:
    """Raises `ContractBreach` where one key, time and commit have two contents: nobody can say which of them counts."""
    dimension = load.dimension
    time = [F.col(AT)] if dimension.has_history else []
    start = [col(dimension.periods[0])] if dimension.periods else []
    content = F.xxhash64(F.to_json(F.struct(*map(col, load.columns)), {"ignoreNullFields": "false"}))
    keys = list(map(col, load.keys))
    said = states.where((F.col(KIND) == UPSERT) & F.col(REASON).isNull())
    twice = said.groupBy(*keys, F.col(ORDER), *time, *start).agg(F.count_distinct(content).alias("contents")).where(F.col("contents") > 1)
    names = F.concat_ws(", ", *(key.cast("string") for key in keys))
    found = [row["member"] for row in twice.select(names.alias("member")).take(3)]
    if found:
        message = f"{dimension.table}: the query returns several rows of one natural key ({'; '.join(found)})"
        remedy = "let the query return one row of each, or declare the column by which they follow each other (effective_at)"
        raise ContractBreach(message, remedy=remedy)


def _with_absent(states: DataFrame, load: _Load, work: Work) -> DataFrame:
    """The states, and a delete for each current member that a whole reading lacks, where absence means that. Grain: one row per state."""
    context = load.context
    if not work.everything or context.is_first or not (load.dimension.absence_deletes or context.is_reload):
        return states
    current = load.held().where(F.col(IS_CURRENT) & ~F.col(IS_SKELETON))
    there = states.where(F.col(KIND) == UPSERT).select(*map(col, load.keys))
    fixed = {KIND: F.lit(DELETE), AT: moment(context.committed_at), ORDER: F.lit(context.newest).cast("bigint")}
    absent = current.join(there, load.keys, "left_anti").withColumns(fixed)
    return states.unionByName(absent.select(*map(col, states.columns)))


def _load_states(states: DataFrame, load: _Load) -> Outcome:
    """States and held versions of the same members, settled and compared."""
    dimension, columns = load.dimension, load.columns
    found = states.agg(F.count(F.lit(1)).alias("rows"), F.min(F.unix_micros(AT)).alias("earliest")).collect()[0]
    load.account.read += found["rows"]
    held = load.held().where(_may_matter(found["earliest"], dimension))
    near = held.join(states.select(*map(col, load.keys)).distinct(), load.keys, "left_semi").select(*map(col, held.columns))
    with materialized(near) as there:
        new = with_hashdiff(states, columns, dimension).withColumn(HELD_KEY, F.lit(None).cast("bigint"))
        wanted = [*map(col, columns), *map(F.col, (HASHDIFF, KIND, AT, HELD_KEY, ORDER))]
        told = new.select(*wanted).unionByName(held_states(there, columns, dimension).select(*wanted))
        fresh = versions(told, columns, dimension) if dimension.has_history else latest(told, columns, dimension)
        return _write(fresh, there, load)


def _may_matter(earliest: int | None, dimension: Dimension) -> Column:
    """Whether a held version can have to do with states from a time on; a bound that lets files stay closed."""
    if not dimension.has_history or earliest is None:
        return F.lit(True)
    return F.col(IS_CURRENT) | F.col(VALID_TO).isNull() | (F.col(VALID_TO) > F.expr(f"timestamp_micros({earliest})"))


def _load_periods(rows: DataFrame, members: DataFrame | None, load: _Load) -> Outcome:
    """Rows that have periods already, in place of all that was held of their members."""
    held = load.held()
    of_members = held if members is None else held.join(members, load.keys, "left_semi").select(*map(col, held.columns))
    load.account.read += rows.count()
    with materialized(of_members) as there:
        fresh = given_periods(rows.where(F.col(KIND) == UPSERT), load.columns, load.dimension)
        known = there.select(*load.keys, VALID_FROM, col(load.dimension.surrogate).alias(HELD_KEY))
        keyed = fresh.join(known, [*load.keys, VALID_FROM], "left").withColumn(load.dimension.surrogate, F.col(HELD_KEY))
        return _write(keyed.select(*map(col, held.columns)), there, load)


def _write(fresh: DataFrame, held: DataFrame, load: _Load) -> Outcome:
    """The difference with its new keys, in one commit; the first one brings the reserved members."""
    dimension, context, spec = load.dimension, load.context, load.spec
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
        if dimension.has_history:
            load.account.closed = keyed.where(_is_closed()).count()
        written = write_target(keyed, spec, context)
    return concluded(context, load.account, written)


def _is_closed() -> Column:
    """Whether a row of the difference ends a version that was open."""
    was_open = F.col(WAS_HELD_UNTIL).isNull() | (F.col(WAS_HELD_UNTIL) > F.col(VALID_TO))
    return (F.col(ACTION) == "update") & ~F.col(IS_CURRENT) & was_open


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
    load = _Load(dimension, context, own_columns(days.columns, str(dimension.table)))
    prepare(dimension_schema(days.select(*map(col, load.columns)).schema, dimension), context)
    told = with_hashdiff(dated(settled(days, dimension.keys), None), load.columns, dimension)
    fresh = latest(told.withColumn(HELD_KEY, F.lit(None).cast("bigint")), load.columns, dimension)
    numbered = fresh.withColumns({dimension.surrogate: date_key(), DURABLE_KEY: date_key()}).select(*map(col, load.spec.columns))
    held = load.held()
    found = difference(numbered, held, load.spec, ignored=[EFFECTIVE_AT]).where(F.col(ACTION) != "delete")  # facts may point at any day
    if not context.state.checkpoint.position.get("calendar"):
        found = found.unionByName(as_inserts(reserved_members(context.tables.session, held.schema, dimension), load.spec))
    with materialized(found) as rows:
        written = write_target(rows, load.spec, context, calendar=declared)
    return concluded(context, Account(read=days.count()), written)
