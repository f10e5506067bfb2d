"""Whose word a value is: what a timeline and a belief both ask of a statement, and the type they tell it in."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import types as T

from karat.temporal.columns import ASSERTED
from karat.temporal.sql import Sql, literal, texts

WHOSE: Final = T.StructType(
    [
        T.StructField("source_system", T.StringType()),
        T.StructField("source_event_ts", T.TimestampType()),
        T.StructField("record_hash", T.BinaryType()),
    ]
)
WHOSE_BY_ATTRIBUTE: Final = T.MapType(T.StringType(), WHOSE)


def said(attribute: str) -> Sql:
    """Whether the statement itself spoke of the attribute."""
    return f"array_contains({ASSERTED}, {literal(attribute)})"


def says_all(attributes: Iterable[str]) -> Sql:
    """Whether the statement itself spoke of every attribute."""
    return f"size(array_except({texts(attributes)}, {ASSERTED})) = 0"


def text_of_words(words: Sql) -> Sql:
    """Whose words they are, attribute by attribute, as one text. A record's hash covers its source, but not the time it counts from."""
    word = "concat(word.key, '=', hex(word.value.record_hash), '@', unix_micros(word.value.source_event_ts))"
    return f"array_join(array_sort(transform(map_entries({words}), word -> {word})), '|')"


def hash_of_words(words: Sql) -> Sql:
    """sha2-256 of that text."""
    return f"unhex(sha2({text_of_words(words)}, 256))"


def whose(word: Sql) -> Sql:
    """Whose word it is, of a word that has `source_system`, `at` and `record_hash`; null where there is none."""
    fields = f"'source_system', {word}.source_system, 'source_event_ts', {word}.at, 'record_hash', {word}.record_hash"
    return f"if({word} IS NULL, NULL, named_struct({fields}))"
