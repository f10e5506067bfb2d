"""What a statement leaves unsaid is inherited from what was said before it, and remembers from whom.

Every source has a memory of each attribute: its own last word on it, forgotten when the source deletes the entity. A
statement takes its own source's memory first, then the latest of the others', else the attribute is unknown. Only words
are remembered, never what was itself inherited, so there is no chain of guesses.

    day 1  CRM   name=Ann, status=A
    day 2  CORE  status=R              inherits name=Ann from CRM
    day 3  CRM   name=Bea              inherits status=A: its own word, though CORE's is newer
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.sql import Sql, literal
from karat.temporal.statements import SPEAKS, takes_part
from karat.temporal.whose import WHOSE, WHOSE_BY_ATTRIBUTE, said, says_all

FILL = "__karat_fill"
"""Working: whether the statement is to be filled in."""


def with_inheritance(statements: DataFrame, schema: EntitySchema, fill: Column, *, copies: bool = False) -> DataFrame:
    """The statements where `fill` holds with every attribute they left unsaid, and whose word it is.

    Needs `PLACE` and `SPEAKS`. Other statements, and everything that was said, stay as they are. With `copies`, there may be rows that
    do not speak: they hear what their statement heard, not the statement itself. Grain: one row per statement.
    """
    kept = [c.quoted(name) for name in statements.columns if name not in schema.attributes and name != c.INHERITED]
    names = [c.quoted(name) for name in (*schema.attributes, c.INHERITED)]
    remembered = statements.select("*", fill.alias(FILL), *map(F.expr, _memories(schema)))
    taken = remembered.selectExpr(*kept, *names, FILL, *(f"{_taken(name, schema)} AS {_word_on(name)}" for name in schema.attributes))
    if copies:
        taken = taken.selectExpr(*kept, *names, FILL, *(f"{_as_its_statement(name)} AS {_word_on(name)}" for name in schema.attributes))
    filled = [
        f"if({FILL} AND NOT {said(name)}, {_word_on(name)}.value, {c.quoted(name)}) AS {c.quoted(name)}" for name in schema.attributes
    ]
    return taken.selectExpr(*kept, *filled, f"if({FILL}, {_whose(schema)}, {c.INHERITED}) AS {c.INHERITED}")


def leaves_something_unsaid(schema: EntitySchema) -> Column:
    """Whether the statement is silent on any attribute."""
    return ~F.expr(says_all(schema.attributes))


def leaves_unsaid(schema: EntitySchema) -> Column:
    """Whether a statement about a key that takes part is silent on any attribute: a partial, or a delete."""
    return leaves_something_unsaid(schema) & takes_part()


def nobodys_word() -> Column:
    """An empty map: nothing is inherited."""
    return F.create_map().cast(WHOSE_BY_ATTRIBUTE)


def _memory(attribute: str, source: int) -> Sql:
    return c.quoted(f"__karat_memory_{source}_{attribute}")


def _word_on(attribute: str) -> Sql:
    return c.quoted(f"__karat_word_{attribute}")


def _memories(schema: EntitySchema) -> list[Sql]:
    """Each source's last word on each attribute before the row, as a word that replaces it, or a delete that wipes it."""
    earlier = f"(PARTITION BY {c.BK} ORDER BY {c.PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    found = []
    for attribute in schema.attributes:
        word = (
            f"named_struct('place', {c.PLACE}, 'gone', {c.IS_DELETED}, 'value', {c.quoted(attribute)}, 'source_system', {c.SOURCE_SYSTEM},"
            f" 'source_event_ts', {c.AT}, 'record_hash', {c.RECORD_HASH})"
        )
        for index, source in enumerate(schema.sources):
            changes = f"{SPEAKS} AND {c.SOURCE_SYSTEM} = {literal(source)} AND ({c.IS_DELETED} OR {said(attribute)})"
            found.append(f"last(if({changes}, {word}, NULL), true) OVER {earlier} AS {_memory(attribute, index)}")
    return found


def _taken(attribute: str, schema: EntitySchema) -> Sql:
    """The word a statement inherits: its own source's, else the latest of any; null when nobody spoke."""
    memories = [_memory(attribute, index) for index in range(len(schema.sources))]
    heard = [f"if({memory}.gone, NULL, {memory})" for memory in memories]
    own = [f"if({c.SOURCE_SYSTEM} = {literal(source)}, {word}, NULL)" for source, word in zip(schema.sources, heard, strict=True)]
    places = [f"if({memory}.gone, NULL, {memory}.place)" for memory in memories]
    latest = f"greatest({', '.join(places)})" if len(places) > 1 else places[0]
    anyones = [f"if({memory}.place = {latest}, {memory}, NULL)" for memory in memories]
    return f"coalesce({', '.join((*own, *anyones))})"


def _as_its_statement(attribute: str) -> Sql:
    first = f"first({_word_on(attribute)}) OVER (PARTITION BY {c.BK}, {c.STATEMENT_HASH}, {c.AT} ORDER BY {c.PLACE})"
    return f"if({SPEAKS}, {_word_on(attribute)}, {first})"


def _whose(schema: EntitySchema) -> Sql:
    """Attribute to the source, time and record of the word it was taken from; only for what was not said and is known."""
    entries = []
    for attribute in schema.attributes:
        word = _word_on(attribute)
        whose = ", ".join(f"'{field.name}', {word}.{field.name}" for field in WHOSE)
        entry = f"named_struct('key', {literal(attribute)}, 'value', named_struct({whose}))"
        entries.append(f"if({said(attribute)} OR {word} IS NULL, NULL, {entry})")
    return f"CAST(map_from_entries(array_compact(array({', '.join(entries)}))) AS {WHOSE_BY_ATTRIBUTE.simpleString()})"
