"""What a statement leaves unsaid is inherited from what was said before it, and remembers from whom.

Every source has a memory of each attribute: its own last word on it, forgotten when the source deletes the entity. A
statement takes its own source's memory first, then the latest of the others', else the attribute is unknown. Only words
are remembered, never what was itself inherited, so there is no chain of guesses.

    day 1  CRM   name=Ann, status=A
    day 2  CORE  status=R              inherits name=Ann from CRM
    day 3  CRM   name=Bea              inherits status=A: its own word, though CORE's is newer
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.bronze.order import AT, PLACE, before, in_place
from karat.bronze.terms import Terms
from karat.temporal.columns import ASSERTED, INHERITED, IS_DELETED, RECORD_HASH, SOURCE_SYSTEM, col

WHOSE = T.StructType(
    [
        T.StructField("source_system", T.StringType()),
        T.StructField("source_event_ts", T.TimestampType()),
        T.StructField("record_hash", T.BinaryType()),
    ]
)
INHERITED_TYPE = T.MapType(T.StringType(), WHOSE)

SPEAKS = "__karat_speaks"
"""Working: whether the statement is remembered; a copy of one that already was, is not."""


def with_inheritance(statements: DataFrame, terms: Terms, fill: Column) -> DataFrame:
    """The statements where `fill` holds with every attribute they left unsaid, and whose word it is.

    Needs `PLACE` and `SPEAKS`. Other statements, and everything that was said, stay as they are. Grain: one row per statement.
    """
    memories = {
        _memory(attribute, index): F.last(_word(attribute, source), ignorenulls=True).over(before(in_place()))
        for attribute in terms.attributes
        for index, source in enumerate(terms.sources)
    }
    remembered = statements.withColumns(memories)
    taken = {attribute: _taken(attribute, terms) for attribute in terms.attributes}
    filled = {attribute: F.when(fill & ~said(attribute), word["value"]).otherwise(col(attribute)) for attribute, word in taken.items()}
    inherited = F.when(fill, _whose(taken)).otherwise(F.col(INHERITED))
    kept = [col(name) for name in statements.columns if name not in filled and name != INHERITED]
    return remembered.select(*kept, *(value.alias(name) for name, value in filled.items()), inherited.alias(INHERITED))


def said(attribute: str) -> Column:
    """Whether the statement itself spoke of the attribute."""
    return F.array_contains(ASSERTED, attribute)


def nobodys_word() -> Column:
    """An empty map: nothing is inherited."""
    return F.create_map().cast(INHERITED_TYPE)


def _memory(attribute: str, source: int) -> str:
    return f"__karat_memory_{source}_{attribute}"


def _word(attribute: str, source: str) -> Column:
    """What the row does to one source's memory of an attribute: a word replaces it, a delete wipes it, anything else leaves it."""
    word = F.struct(
        F.col(PLACE).alias("place"),
        F.lit(False).alias("gone"),
        col(attribute).alias("value"),
        F.col(SOURCE_SYSTEM).alias("source_system"),
        F.col(AT).alias("source_event_ts"),
        F.col(RECORD_HASH).alias("record_hash"),
    )
    wiped = word.withField("gone", F.lit(True))
    is_its = F.col(SPEAKS) & (F.col(SOURCE_SYSTEM) == source)
    return F.when(is_its & F.col(IS_DELETED), wiped).when(is_its & said(attribute), word)


def _taken(attribute: str, terms: Terms) -> Column:
    """The word a statement inherits: its own source's, else the latest of any; null when nobody spoke."""
    heard = [_heard(_memory(attribute, index)) for index in range(len(terms.sources))]
    own = F.coalesce(*(F.when(F.col(SOURCE_SYSTEM) == source, word) for source, word in zip(terms.sources, heard, strict=True)))
    places = [word["place"] for word in heard]
    latest = F.greatest(*places) if len(places) > 1 else places[0]
    anyones = F.coalesce(*(F.when(word["place"] == latest, word) for word in heard))
    return F.coalesce(own, anyones)


def _heard(memory: str) -> Column:
    return F.when(~col(memory)["gone"], col(memory))


def _whose(taken: Mapping[str, Column]) -> Column:
    """Attribute to the source, time and record of the word it was taken from; only for what was not said and is known."""
    entries = [
        F.when(~said(attribute) & word.isNotNull(), F.struct(F.lit(attribute).alias("key"), _as_whose(word).alias("value")))
        for attribute, word in taken.items()
    ]
    return F.map_from_entries(F.array_compact(F.array(*entries))).cast(INHERITED_TYPE)


def _as_whose(word: Column) -> Column:
    return F.struct(*(word[field.name].alias(field.name) for field in WHOSE))
