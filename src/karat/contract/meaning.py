"""What a row means: what happened, and whether it is complete."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from karat.contract.columns import IMPLIED_OP, KIND
from karat.contract.reading import Reading
from karat.contract.wanted import setting
from karat.sources.raw import BEFORE, CHANGE, COMMIT, GONE, no_text
from karat.temporal.columns import col
from karat.temporal.sql import Sql, literal

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


def with_meaning(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with what happened, how complete they are, and what their own list asserts. Grain: unchanged."""
    word = reading.text(setting("op")) if reading.wants("op") else IMPLIED_OP
    spelled = f"lower(trim({word}))"
    listed = [_list(reading).alias(LISTED)] if reading.wants("asserted") else []
    return rows.select(
        "*",
        F.expr(_op(rows, reading, spelled)).alias(OP),
        F.expr(f"nullif({spelled}, '')").alias(OP_WORD),
        _load_type(reading).alias(LOAD_TYPE),
        *listed,
    )


def may_be_snapshots(reading: Reading) -> bool:
    """Whether any row can be part of a full extract."""
    return reading.feed.load_type == "FULL" or reading.wants("load_type")


def _op(rows: DataFrame, reading: Reading, spelled: Sql) -> Sql:
    """The feed's word, else the envelope's; a delete by predicate or by change feed is one whatever the word."""
    words = ", ".join(f"{literal(known)}, {literal(letter)}" for letter, every in _WORDS.items() for known in every)
    op = f"try_element_at(map({words}), {spelled})"
    if reading.wants("delete_when"):
        gone = f"coalesce(try_cast({reading.value(setting('delete_when'))} AS BOOLEAN), false)"
        op = f"if({gone} AND NOT coalesce({op} = 't', false), 'd', {op})"
    if CHANGE in rows.columns:
        op = f"if({CHANGE} IN ({', '.join(map(literal, GONE))}), 'd', {op})"
    return op


def _load_type(reading: Reading) -> Column:
    """What says nothing about it is partial: then only what it carries is taken for said."""
    if reading.wants("load_type"):
        marker = F.upper(F.trim(F.expr(reading.text(setting("load_type")))))
        unmarked = F.lit("PARTIAL") if reading.is_evidence_only else no_text()
        return F.when(marker.isin("FULL", "PARTIAL"), marker).otherwise(unmarked)
    return F.lit("FULL" if reading.feed.load_type == "FULL" else "PARTIAL")


def _list(reading: Reading) -> Column:
    """The names a row's own list asserts, in lower case: an array, JSON text, or names between commas."""
    name = setting("asserted")
    value, text = F.expr(reading.value(name)), F.trim(F.expr(reading.text(name)))
    if isinstance(reading.types[name], T.ArrayType):
        named = value.cast("array<string>")
    else:
        between_commas = F.when(text == "", F.array().cast("array<string>")).otherwise(F.split(text, r"\s*,\s*"))
        named = F.when(text.startswith("["), F.from_json(text, "array<string>")).otherwise(between_commas)
    return F.transform(named, F.lower)


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
