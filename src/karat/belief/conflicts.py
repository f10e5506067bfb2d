"""Where sources differ now: on which attribute, who says what, and whose word stands."""

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from karat.belief.candidates import Subject, candidates, heard, spoken_of, winner
from karat.belief.resolution import last_words, text_of
from karat.config.rules import Group, Rule
from karat.temporal.columns import BK, SK, quoted
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
_BY_STANDING = "(l, r) -> CASE WHEN l.won THEN -1 WHEN r.won THEN 1 WHEN l.source_system < r.source_system THEN -1 ELSE 1 END"


def conflicts(statements: DataFrame, subject: Subject, rule: Rule) -> DataFrame:
    """Every attribute on which sources that are heard say different things. Grain: one row per entity and attribute."""
    key = [quoted(name) for name in (*subject.key, BK, SK)]
    told = [
        f"named_struct('attribute', {literal(name)}, 'says', {_says(subject, name, group)})"
        for name, group in spoken_of(subject, rule).items()
        if len(heard(subject, group)) > 1  # who is heard alone differs from nobody
    ]
    if told:
        each = last_words(statements, subject, rule).selectExpr(*key, f"inline(array({', '.join(told)}))")
    else:
        nothing = ("CAST(NULL AS STRING) AS attribute", f"CAST(NULL AS {SAYS.simpleString()}) AS says")
        each = statements.where("false").selectExpr(*key, *nothing)
    unlike = each.where("size(array_distinct(transform(says, word -> word.value))) > 1")
    stands = "filter(says, word -> word.won)[0].value AS value"
    return unlike.selectExpr(*key, "attribute", stands, f"array_sort(says, {_BY_STANDING}) AS says")


def _says(subject: Subject, attribute: str, group: Group) -> Sql:
    """What every source that is heard says, as text, and whether its word is the one that stands."""
    words = candidates(subject, attribute, group)
    best = winner(words.values(), group.by)
    kind = subject.attributes[attribute]
    entries = [
        f"if({word} IS NULL, NULL, named_struct('source_system', {literal(source)}, 'value', {text_of(f'{word}.value', kind)},"
        f" 'source_event_ts', {word}.at, 'record_hash', {word}.record_hash, 'won', {word}.place = {best}.place))"
        for source, word in words.items()
    ]
    return f"CAST(array_compact(array({', '.join(entries)})) AS {SAYS.simpleString()})"
