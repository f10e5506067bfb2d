"""Expressions over the incoming columns, computed row by row: a value each, and whether computing it failed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.entity import Feed
from karat.contract.attempt import attempted, failed, outcome
from karat.contract.columns import DOCUMENT
from karat.contract.expressions import Expression
from karat.contract.incoming import Incoming
from karat.contract.wanted import Wanted, failure_of, value_of
from karat.errors import ConfigError
from karat.sources.documents import json_at
from karat.temporal.columns import col


@dataclass(frozen=True)
class Computed:
    """Rows with `value_of` and `failure_of` each thing wanted, and the types of the values."""

    rows: DataFrame
    types: Mapping[str, T.DataType]


def computed(image: DataFrame, wanted: Wanted, columns: Incoming, feed: Feed) -> Computed:
    """Every wanted value of every row. Grain: unchanged."""
    direct = {name: found for name, expression in wanted.items() if (found := _direct(expression, columns, feed)) is not None}
    tried = {name: _tried(expression, columns, feed) for name, expression in wanted.items() if name not in direct}
    scope = {
        name: columns.value(name)
        for expression in wanted.values()
        if expression is not None and not _is_path(expression, feed)
        for name in columns.referenced(expression)
    }
    distinct = {name.lower(): name for name in reversed(scope)}
    spread = image.withColumns({name: F.expr(scope[name]) for name in distinct.values() if name not in image.columns})
    attempts = _selected(spread, image.columns, tried, {name: wanted[name] for name in tried}, feed)
    values = [
        direct[name].alias(value_of(name)) if name in direct else outcome(col(value_of(name))).alias(value_of(name)) for name in wanted
    ]
    failures = [(F.lit(False) if name in direct else failed(col(value_of(name)))).alias(failure_of(name)) for name in wanted]
    rows = attempts.select(*(col(name) for name in image.columns), *values, *failures)
    return Computed(rows, {name: rows.schema[value_of(name)].dataType for name in wanted})


def _direct(expression: Expression, columns: Incoming, feed: Feed) -> Column | None:
    """The value of an expression that cannot fail: a column, a field inside a nested one, a JSON path into the document."""
    if _is_path(expression, feed):
        return json_at(F.col(DOCUMENT), expression.text.strip()) if expression.text.strip().startswith("$") else None
    if columns.found(expression.text):  # the name of a column, whatever it would mean in SQL
        return F.expr(columns.value(expression.text))
    if not (parts := expression.parts):
        return None
    whole, head = ".".join(parts), parts[0]
    if len(parts) == 1 or columns.found(whole) or not columns.found(head):
        return F.expr(columns.value(whole))
    if columns.types is not None:
        return None
    return json_at(F.expr(columns.value(head)), "$" + "".join(f"['{part}']" for part in parts[1:]))


def _tried(expression: Expression, columns: Incoming, feed: Feed) -> Callable[[], Column]:
    """How to compute an expression that may fail."""
    if _is_path(expression, feed):
        return partial(_at_xpath, expression.text.strip())
    text = expression.quoting(columns.names)
    return partial(F.expr, text)


def _at_xpath(path: str) -> Column:
    """The text of an element; one that is not there would read as an empty text, so it is asked for first."""
    document = F.col(DOCUMENT)
    return F.when(F.xpath_boolean(document, F.lit(f"boolean({path})")), F.xpath_string(document, F.lit(path)))


def _is_path(expression: Expression, feed: Feed) -> bool:
    """Whether it is a path into a payload's document rather than SQL."""
    return feed.envelope == "payload" and expression.text.strip().startswith(("$", "/"))


def _selected(spread: DataFrame, kept: list[str], tried: Mapping[str, Callable[[], Column]], wanted: Wanted, feed: Feed) -> DataFrame:
    """The columns that are kept and the attempts; an expression that Spark does not understand is named."""

    def attempts(names: list[str]) -> DataFrame:
        return spread.select(*(col(name) for name in kept), *(attempted(tried[name]).alias(value_of(name)) for name in names))

    try:
        selected = attempts(list(tried))
        selected.schema  # noqa: B018  (asking for the schema is what makes Spark look)
    except AnalysisException:
        for name in tried:
            try:
                attempts([name]).schema  # noqa: B018
            except AnalysisException as wrong:
                raise _not_understood(feed, wanted[name], wrong) from wrong
        raise
    return selected


def _not_understood(feed: Feed, expression: Expression, wrong: AnalysisException) -> ConfigError:
    said = str(wrong).split("\n", 1)[0]
    message = f"feed {feed.name}: {expression.setting} is no expression over the incoming columns: {expression.text} ({said})"
    remedy = "write SQL over the columns of the source; names with dots or spaces go in backticks"
    return ConfigError(message, remedy=remedy, feed=feed.name, setting=expression.setting)
