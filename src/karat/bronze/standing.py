"""Held versions in the place of evidence: what a new statement leaves unsaid is often told by the versions it falls among.

A version that was seen once and knows a word of its own source on every attribute stands for everything that source has said up to it;
a delete leaves its source nothing to say. Where all versions of a key that reach a new statement are such, they tell what it inherits.

    held   CORE  name=Ann, status=A   from 1 on      said both
    held   CORE  status=B, name of 1  from 2 on      said one and has the other from itself: as long as CORE has not come back to the past
    held   CRM   name=Bea, status?    from 1 on      only the evidence tells whether CRM ever spoke of status
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.continuation import Past
from karat.bronze.terms import Terms
from karat.temporal.columns import (
    ASSERTED,
    EFFECTIVE_FROM,
    EVENT_TS,
    INGEST_TS,
    INHERITED,
    IS_DELETED,
    RECORD_HASH,
    SEEN_COUNT,
    SEQUENCE,
    SOURCE_FILE,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    quoted,
)
from karat.temporal.moments import micros_of
from karat.temporal.sql import Sql, literal, some, texts

_WORDS = "__karat_words"
_WORD = (EVENT_TS, STATEMENT_HASH, RECORD_HASH, SEQUENCE, SOURCE_FILE, ASSERTED)


def stands_for_all(terms: Terms, past: Past) -> Column:
    """Of a held version: whether it tells everything its source has said up to it that can still be heard."""
    told = f"({_tells_own_words(terms)}) AND (size({INHERITED}) = 0 OR {_is_not_overtaken(past)})"
    return F.expr(f"{SEEN_COUNT} = 1 AND ({IS_DELETED} OR ({told}))")


def heard_from(terms: Terms) -> Column:
    """Of a held version: a time before which nothing its source said can be heard any more by whoever comes after; null if there is none.

    What it has from its own source was the last word on it when the version arrived, and is unless a later one has arrived since.
    """
    first = f"least({EFFECTIVE_FROM}, array_min(transform(map_values({INHERITED}), whose -> whose.source_event_ts)))"
    return F.expr(f"CASE WHEN {IS_DELETED} THEN {EFFECTIVE_FROM} WHEN {_tells_own_words(terms)} THEN {first} END")


def as_assertions(held: DataFrame, terms: Terms) -> DataFrame:
    """Versions that stand for all, as assertions: their own and those they have the rest from. Grain: one row per version and word.

    Of an assertion's columns they have what a version has. No two of one source speak of the same attribute at the same time.
    """
    itself = f"filter({texts(terms.attributes)}, name -> NOT map_contains_key({INHERITED}, name))"
    own = _word(EVENT_TS, STATEMENT_HASH, RECORD_HASH, SEQUENCE, SOURCE_FILE, f"if({IS_DELETED}, {texts(())}, {itself})")
    # one statement may be the word on two attributes: each is told apart by the attribute
    apart = "concat(entry.value.record_hash, encode(entry.key, 'UTF-8'))"
    nothing = "CAST(NULL AS STRING)"
    from_it = _word("entry.value.source_event_ts", apart, "entry.value.record_hash", nothing, nothing, "array(entry.key)")
    others = f"if({IS_DELETED}, filter(array({own}), word -> false), transform(map_entries({INHERITED}), entry -> {from_it}))"
    words = held.withColumn(_WORDS, F.expr(f"explode(concat(array({own}), {others}))"))
    rest = [quoted(name) for name in held.columns if name not in _WORD]
    return words.selectExpr(*rest, *(f"{_WORDS}.{name} AS {name}" for name in _WORD))


def _word(*values: Sql) -> Sql:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in zip(_WORD, values, strict=True))})"


def _tells_own_words(terms: Terms) -> Sql:
    """Whether each attribute was said by the version or comes from its own source; a null may be a word or none, and tells nothing."""
    unknown = some(f"{quoted(name)} IS NULL AND NOT map_contains_key({INHERITED}, {literal(name)})" for name in terms.attributes)
    return f"NOT ({unknown}) AND NOT exists(map_values({INHERITED}), whose -> whose.source_system <> {SOURCE_SYSTEM})"


def _is_not_overtaken(past: Past) -> Sql:
    """Whether the version's source has not come back to the past since the version arrived."""
    if past.behind is None:
        return "false"
    came_back = [
        f"{SOURCE_SYSTEM} = {literal(source)} AND unix_micros({INGEST_TS}) <= {micros_of(at)}" for source, at in past.behind.items()
    ]
    return f"NOT ({some(came_back)})"
