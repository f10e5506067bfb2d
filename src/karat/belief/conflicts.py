"""Where sources differ now: on which attribute, who says what, and whose word stands."""

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from karat.belief.candidates import allowed_sources, candidates, decided_attributes, winner
from karat.belief.resolution import last_candidates, text_of
from karat.config.rules import Group, Rule
from karat.temporal.columns import BK, SK, quoted
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.sql import Sql, literal

SAYS = T.ArrayType(
    T.StructType(
        [
            T.StructField("source_system", T.StringType()),
            T.StructField("value", T.StringType()),
            T.StructField("source_event_ts", T.TimestampType()),
            T.StructField("record_hash", T.BinaryType()),
            T.StructField("won", T.BooleanType()),
        ]
    )
)
_WINNER_FIRST = "(l, r) -> CASE WHEN l.won THEN -1 WHEN r.won THEN 1 WHEN l.source_system < r.source_system THEN -1 ELSE 1 END"


def conflicts(statements: DataFrame, schema: EntitySchema, rule: Rule) -> DataFrame:
    """Every attribute on which sources that count say different things. Grain: one row per entity and attribute."""
    key = [quoted(name) for name in (*schema.key, BK, SK)]
    on_each = [
        f"named_struct('attribute', {literal(name)}, 'says', {_says(schema, name, group)})"
        for name, group in decided_attributes(schema, rule).items()
        if len(allowed_sources(schema, group)) > 1  # a source that decides alone differs from nobody
    ]
    if on_each:
        each = last_candidates(statements, schema, rule).selectExpr(*key, f"inline(array({', '.join(on_each)}))")
    else:
        nothing = ("CAST(NULL AS STRING) AS attribute", f"CAST(NULL AS {SAYS.simpleString()}) AS says")
        each = statements.where("false").selectExpr(*key, *nothing)
    unlike = each.where("size(array_distinct(transform(says, word -> word.value))) > 1")
    stands = "filter(says, word -> word.won)[0].value AS value"
    return unlike.selectExpr(*key, "attribute", stands, f"array_sort(says, {_WINNER_FIRST}) AS says")


def _says(schema: EntitySchema, attribute: str, group: Group) -> Sql:
    """What every source that counts says, as text, and whether its word is the one that stands."""
    of_sources = candidates(schema, attribute, group)
    best = winner([*of_sources.values()], group.by)
    kind = schema.attributes[attribute]
    entries = [
        f"if({word} IS NULL, NULL, named_struct('source_system', {literal(source)}, 'value', {text_of(f'{word}.value', kind)},"
        f" 'source_event_ts', {word}.at, 'record_hash', {word}.record_hash, 'won', {word}.place = {best}.place))"
        for source, word in of_sources.items()
    ]
    return f"CAST(array_compact(array({', '.join(entries)})) AS {SAYS.simpleString()})"
