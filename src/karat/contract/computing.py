"""Expressions over the incoming columns, computed row by row: a value each, and, where computing it can fail, whether it did."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.declared.entity import Feed
from karat.contract.attempt import attempted, failed, outcome
from karat.contract.columns import DOCUMENT
from karat.contract.expressions import Expression, json_path
from karat.contract.field_paths import ROOT, FieldPath, with_inner_objects
from karat.contract.incoming import Incoming, field_names
from karat.contract.wanted import Wanted, failure_of, value_of
from karat.errors import ConfigError
from karat.sources.documents import json_at
from karat.sources.raw import FIELDS
from karat.temporal.columns import col
from karat.temporal.sql import Sql


@dataclass(frozen=True)
class Computed:
    """Rows with `value_of` each thing wanted, and `failure_of` each that may fail, and the types of the values."""

    rows: DataFrame
    types: Mapping[str, T.DataType]
    may_fail: frozenset[str]


def computed(image: DataFrame, wanted: Wanted, columns: Incoming, feed: Feed, more: Mapping[str, Sql] | None = None) -> Computed:
    """Every wanted value of every row, and the columns that `more` computes from its fields. Grain: unchanged."""
    paths = {name: path for name, expression in wanted.items() if (path := field_of(expression, columns, feed)) is not None}
    opened = with_inner_objects(image, [*paths.values(), *(path for each in wanted.values() for path in _used(each, columns, feed))])
    others = {name: each for name, each in wanted.items() if name not in paths}
    direct = {name: found for name, each in others.items() if (found := _direct(each, columns, feed)) is not None}
    direct |= {name: F.expr(path.value) for name, path in paths.items()}
    tried = {name: each for name, each in wanted.items() if name not in direct}
    extra = [F.expr(expression).alias(name) for name, expression in (more or {}).items()]
    passed = [col(name) for name in image.columns]
    values = [value.alias(value_of(name)) for name, value in direct.items()]
    types = {name: _type_of(wanted[name], name in paths, columns) for name in direct}
    if not tried:
        return Computed(opened.select(*passed, *extra, *values), types, frozenset())
    spread = _with_scope(opened, tried, columns, feed)
    attempts = _selected(spread, [*passed, *extra, *values], tried, columns, feed)
    results = [outcome(col(value_of(name))).alias(value_of(name)) for name in tried]
    failures = [failed(col(value_of(name))).alias(failure_of(name)) for name in tried]
    there = [col(name) for name in attempts.columns if name not in set(map(value_of, tried))]
    rows = attempts.select(*there, *results, *failures)
    schema = rows.schema
    return Computed(rows, {**types, **{name: schema[value_of(name)].dataType for name in tried}}, frozenset(tried))


def field_of(expression: Expression, columns: Incoming, feed: Feed) -> FieldPath | None:
    """The field that a setting names by the names on the way to it; None where it computes something, or the records are typed."""
    if is_path(expression, feed):
        return FieldPath(ROOT, parts) if (parts := json_path(expression.text)) else None
    if columns.types is not None or columns.is_column(expression):
        return None
    parts = expression.parts
    return FieldPath(columns.field(parts).root, parts) if len(parts) > 1 else None


def is_path(expression: Expression, feed: Feed) -> bool:
    """Whether it is a path into a payload's document rather than SQL."""
    return feed.envelope == "payload" and expression.is_path


def _direct(expression: Expression, columns: Incoming, feed: Feed) -> Column | None:
    """The value of an expression that cannot fail: a column, a JSON path into the document."""
    if is_path(expression, feed):
        return json_at(F.col(DOCUMENT), expression.text.strip()) if expression.text.strip().startswith("$") else None
    if columns.is_column(expression):  # the name of a column, whatever it would mean in SQL
        return F.expr(columns.value((expression.text,)))
    parts = expression.parts
    if len(parts) == 1 or (parts and columns.found(".".join(parts))) or (parts and not columns.found(parts[0])):
        return F.expr(columns.value(parts))
    return None


def _type_of(expression: Expression, is_field: bool, columns: Incoming) -> T.DataType:  # noqa: FBT001
    name = expression.text if columns.is_column(expression) else ".".join(expression.parts)
    return T.StringType() if is_field or not name else columns.type_of(name)


def _used(expression: Expression, columns: Incoming, feed: Feed) -> list[FieldPath]:
    """The fields inside others that an expression over records of text uses."""
    if columns.types is not None or is_path(expression, feed):
        return []
    return [columns.field(parts) for parts in columns.paths(expression) if len(parts) > 1]


def _with_scope(opened: DataFrame, tried: Wanted, columns: Incoming, feed: Feed) -> DataFrame:
    """Rows with each column that an expression speaks of under the name it uses. Grain: unchanged."""
    scope: dict[str, Sql] = {}
    for expression in tried.values():
        if is_path(expression, feed):
            continue
        if columns.types is None:
            scope.update({".".join(parts): columns.value(parts) for parts in expression.paths})
        else:
            scope.update({name: columns.value((name,)) for name in columns.referenced(expression)})
    distinct = {name.lower(): name for name in reversed(scope)}
    return opened.withColumns({name: F.expr(scope[name]) for name in distinct.values() if name not in opened.columns})


def _attempt(expression: Expression, columns: Incoming, feed: Feed) -> Callable[[], Column]:
    """How to compute an expression that may fail."""
    if is_path(expression, feed):
        return partial(_at_xpath, expression.text.strip())
    inside = {".".join(parts) for parts in expression.paths} if columns.types is None else columns.names
    return partial(F.expr, expression.quoting(inside))


def _at_xpath(path: str) -> Column:
    """The text of an element; one that is not there would read as an empty text, so it is asked for first."""
    document = F.col(DOCUMENT)
    return F.when(F.xpath_boolean(document, F.lit(f"boolean({path})")), F.xpath_string(document, F.lit(path)))


def _selected(spread: DataFrame, others: list[Column], tried: Wanted, columns: Incoming, feed: Feed) -> DataFrame:
    """The other columns and the attempts; an expression Spark does not understand is named."""
    attempts = {name: _attempt(expression, columns, feed) for name, expression in tried.items()}

    def selected(names: list[str]) -> DataFrame:
        return spread.select(*others, *(attempted(attempts[name]).alias(value_of(name)) for name in names))

    try:
        rows = selected(list(tried))
        rows.schema  # noqa: B018  (asking for the schema is what makes Spark look)
    except AnalysisException:
        for name in tried:
            try:
                selected([name]).schema  # noqa: B018
            except AnalysisException as wrong:
                raise _not_understood(spread, feed, tried[name], wrong) from wrong
        raise
    return rows


def _not_understood(rows: DataFrame, feed: Feed, expression: Expression, wrong: AnalysisException) -> ConfigError:
    said = str(wrong).split("\n", 1)[0]
    message = f"feed {feed.name}: {expression.setting} is no expression over the incoming columns: {expression.text} ({said})"
    remedy = "write SQL over the columns of the source; names with dots or spaces go in backticks"
    if FIELDS in rows.columns and expression.text in field_names(rows):
        remedy = f"put the column's name in backticks: `{expression.text}`"
    return ConfigError(message, remedy=remedy, feed=feed.name, setting=expression.setting)
