"""Held versions in the place of evidence: what a new statement leaves unsaid is often told by the versions it falls among.

A version that was seen once and knows a word of its own source on every attribute stands for everything that source has said up to it;
a delete leaves its source nothing to say. Where all versions of a key that reach a new statement are such, they tell what it inherits.
Only the first of them need be known not to be overtaken: between it and the next its source said nothing, else it was seen twice.

    held   CORE  name=Ann, status=A   from 1 on      said both
    held   CORE  status=B, name of 1  from 2 on      said one and has the other from itself: as long as CORE has not come back to the past
    held   CRM   name=Bea, status?    from 1 on      only the evidence tells whether CRM ever spoke of status
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.new_evidence import EvidenceState
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import micros_of
from karat.temporal.sql import Sql, literal, some, texts

_WORDS, _FOLLOWS = "__karat_words", "__karat_follows"
_FIRST_WORD = f"least({c.EFFECTIVE_FROM}, array_min(transform(map_values({c.INHERITED}), whose -> whose.source_event_ts)))"
_WORD = (c.EVENT_TS, c.STATEMENT_HASH, c.RECORD_HASH, c.SEQUENCE, c.SOURCE_FILE, c.ASSERTED)


def versions_tell(before: EvidenceState, schema: EntitySchema) -> bool:
    """Whether versions can stand for evidence at all: of states, where nothing was ever said that none of them shows."""
    return not (schema.is_transaction or before.shows_apart or before.unseen)


def stands_for_all(schema: EntitySchema, before: EvidenceState) -> Column:
    """Of a held version: whether it tells everything its source has said up to it that can still be heard.

    Among all versions of its key that end at or after some time; it holds of one if it holds of the earlier ones too.
    """
    told = F.expr(_tells_own_words(schema)) & (F.expr(f"size({c.INHERITED}) = 0 OR {_is_not_overtaken(before)}") | _follows())
    return (F.col(c.SEEN_COUNT) == 1) & (F.col(c.IS_DELETED) | told)


def heard_from() -> Column:
    """Of a held version: a time before which whoever comes after hears nothing of its source but what arrived after the version.

    What the version inherits was the last word on it when it arrived, and what it does not know nobody had said by then.
    """
    return F.expr(f"if({c.IS_DELETED}, {c.EFFECTIVE_FROM}, {_FIRST_WORD})")


def as_assertions(held: DataFrame, schema: EntitySchema) -> DataFrame:
    """Versions that stand for all, as assertions: their own and those the first of each source has the rest from. Grain: a word.

    Of an assertion's columns they have what a version has.
    """
    itself = f"filter({texts(schema.attributes)}, name -> NOT map_contains_key({c.INHERITED}, name))"
    own = _word(c.EVENT_TS, c.STATEMENT_HASH, c.RECORD_HASH, c.SEQUENCE, c.SOURCE_FILE, f"if({c.IS_DELETED}, {texts(())}, {itself})")
    # one statement may be the word on two attributes: each is told apart by the attribute
    apart = "concat(entry.value.record_hash, encode(entry.key, 'UTF-8'))"
    nothing = "CAST(NULL AS STRING)"
    from_it = _word("entry.value.source_event_ts", apart, "entry.value.record_hash", nothing, nothing, "array(entry.key)")
    entries = f"if({c.IS_DELETED} OR {_FOLLOWS}, array(), map_entries({c.INHERITED}))"
    words = held.withColumn(_FOLLOWS, _follows()).withColumn(
        _WORDS, F.expr(f"explode(concat(array({own}), transform({entries}, entry -> {from_it})))")
    )
    rest = [c.quoted(name) for name in held.columns if name not in _WORD]
    return words.selectExpr(*rest, *(f"{_WORDS}.{name} AS {name}" for name in _WORD))


def _follows() -> Column:
    """Whether there is an earlier version of the same key and source."""
    in_turn = Window.partitionBy(c.BK).orderBy(c.SOURCE_SYSTEM, c.EFFECTIVE_FROM)
    return F.coalesce(F.lag(c.SOURCE_SYSTEM).over(in_turn) == F.col(c.SOURCE_SYSTEM), F.lit(False))


def _word(*values: Sql) -> Sql:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in zip(_WORD, values, strict=True))})"


def _tells_own_words(schema: EntitySchema) -> Sql:
    """Whether each attribute was said by the version or comes from its own source; a null may be a word or none, and tells nothing."""
    unknown = some(f"{c.quoted(name)} IS NULL AND NOT map_contains_key({c.INHERITED}, {literal(name)})" for name in schema.attributes)
    return f"NOT ({unknown}) AND NOT exists(map_values({c.INHERITED}), whose -> whose.source_system <> {c.SOURCE_SYSTEM})"


def _is_not_overtaken(before: EvidenceState) -> Sql:
    """Whether the version's source has not come back to the past since the version arrived."""
    if before.overtaken is None:
        return "false"
    came_back = [
        f"{c.SOURCE_SYSTEM} = {literal(source)} AND unix_micros({c.INGEST_TS}) <= {micros_of(at)}"
        for source, at in before.overtaken.items()
    ]
    return f"NOT ({some(came_back)})"
