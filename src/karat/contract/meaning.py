"""What a row means: what happened, whether it is complete, and which attributes it says something about."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from karat.contract.columns import IMPLIED_OP, KIND
from karat.contract.reading import Reading
from karat.contract.wanted import setting
from karat.sources.raw import BEFORE, CHANGE, COMMIT, GONE, no_text
from karat.temporal.columns import col
from karat.temporal.sql import Sql, every, literal, some, texts

OP: Final = "__karat_op"
"""Working: c, r, u, d, t, or null."""

OP_WORD: Final = "__karat_op_word"
"""Working: the word the feed used for it."""

LOAD_TYPE: Final = "__karat_load_type"
"""Working: FULL, PARTIAL, or null where the row's own marker is neither."""

LISTED: Final = "__karat_listed"
"""Working: what the row's own list says it asserts; null where there is none."""

_WORDS: Final = {
    "c": ("c", "create", "insert", "i"),
    "r": ("r", "read"),
    "u": ("u", "update"),
    "d": ("d", "delete"),
    "t": ("t", "truncate"),
}


def with_op(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with what happened: the feed's word, else the envelope's; a delete by predicate or by change feed is one whatever the word."""
    word = reading.text(setting("op")) if reading.wants("op") else IMPLIED_OP
    spelled = f"lower(trim({word}))"
    words = " ".join(f"WHEN {spelled} IN ({', '.join(map(literal, known))}) THEN '{letter}'" for letter, known in _WORDS.items())
    op = f"CASE {words} END"
    if reading.wants("delete_when"):
        gone = f"coalesce(try_cast({reading.value(setting('delete_when'))} AS BOOLEAN), false)"
        op = f"if({gone} AND NOT coalesce({op} = 't', false), 'd', {op})"
    if CHANGE in rows.columns:
        op = f"if({CHANGE} IN ({', '.join(map(literal, GONE))}), 'd', {op})"
    return rows.selectExpr("*", f"{op} AS {OP}", f"nullif({spelled}, '') AS {OP_WORD}")


def with_load_type(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with their load type. What says nothing about it is partial: then only what it carries is taken for said."""
    if reading.wants("load_type"):
        marker = F.upper(F.trim(F.expr(reading.text(setting("load_type")))))
        unmarked = F.lit("PARTIAL") if reading.is_evidence_only else no_text()
        return rows.select("*", F.when(marker.isin("FULL", "PARTIAL"), marker).otherwise(unmarked).alias(LOAD_TYPE))
    fixed = "FULL" if reading.feed.load_type == "FULL" else "PARTIAL"
    return rows.select("*", F.lit(fixed).alias(LOAD_TYPE))


def with_list(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with the names their own list asserts, in lower case: an array, JSON text, or names between commas."""
    name = setting("asserted")
    if name not in reading.wanted:
        return rows.select("*", F.lit(None).cast("array<string>").alias(LISTED))
    value, text = F.expr(reading.value(name)), F.trim(F.expr(reading.text(name)))
    if isinstance(reading.types[name], T.ArrayType):
        named = value.cast("array<string>")
    else:
        between_commas = F.when(text == "", F.array().cast("array<string>")).otherwise(F.split(text, r"\s*,\s*"))
        named = F.when(text.startswith("["), F.from_json(text, "array<string>")).otherwise(between_commas)
    return rows.select("*", F.transform(named, F.lower).alias(LISTED))


def says(reading: Reading, attribute: str) -> Sql:
    """Whether a row says something about an attribute, be it null; one that tells that something is gone says nothing else."""
    if attribute in reading.drift.unsaid:  # the source has no such column at all: it cannot mean null by that
        return "false"
    named = _is_carried(reading, attribute)
    if reading.wants("asserted"):
        named = f"if({LISTED} IS NOT NULL, {_is_listed(reading, attribute)}, {named})"
    return f"NOT coalesce({OP} IN ('d', 't'), false) AND coalesce({LOAD_TYPE} = 'FULL' OR ({named}), false)"


def without_replaced(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows of a change feed, where a delete whose key the same commit wrote again is ignored: that was a replacement.

    A row as it was before an update is no record of its own: it is only here when its key was not written again, which deletes it.
    Grain: one row per record.
    """
    if COMMIT not in rows.columns:
        return rows
    same_key = Window.partitionBy(F.col(COMMIT), *(F.expr(reading.text(name)) for name in reading.entity.key))
    is_delete = F.col(CHANGE).isin(*GONE)
    written_again = F.col(COMMIT).isNotNull() & is_delete & F.max(~is_delete).over(same_key)
    kind = F.when(written_again, F.when(F.col(CHANGE) == BEFORE, F.lit(BEFORE)).otherwise(F.lit("ignored"))).otherwise(F.col(KIND))
    with_kind = rows.select(*(col(name) for name in rows.columns if name != KIND), kind.alias(KIND))
    return with_kind.where(F.col(KIND) != BEFORE)


def _is_listed(reading: Reading, attribute: str) -> Sql:
    """By the attribute's name, or by that of a column it is made of."""
    names = {attribute.lower(), *(name.lower() for name in reading.columns.referenced(reading.wanted[attribute]))}
    return f"arrays_overlap({LISTED}, {texts(sorted(names))})"


def _is_carried(reading: Reading, attribute: str) -> Sql:
    """By the record's own fields where they tell; else by there being a value."""
    has_value = f"{reading.value(attribute)} IS NOT NULL"
    if not reading.tells_presence:
        return has_value
    expression = reading.wanted[attribute]
    whole = reading.columns.found(expression.text)
    referenced = (expression.text,) if whole else reading.columns.referenced(expression)
    present = [reading.columns.has(name) for name in referenced]
    if len(present) == 1:
        return present[0]
    return f"({every(present)}) OR (({some(present)}) AND {has_value})" if present else "true"
