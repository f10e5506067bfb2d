"""A belief is a pure function from statements and a rule to one value per attribute, and to the statement it rests on.

Takes statements as bronze gives them (`karat.bronze.timeline.statements`): each once, in order, `AT` its time. Whoever asks
what was known at a moment hands in the statements known then, and the rule in force then.

    CRM   status=Active @1      ─────────────┐
    CORE  status=Restricted @2   ┌───────────┼─────────  precedence {CORE: 2, CRM: 1}
    CRM   status=Closed @4       │           └─────────
                                 │
    believed   Active [1, 2)     Restricted [2, on)      because of CORE @2
"""

from collections.abc import Iterable
from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.belief.candidates import (
    ENTERED,
    NEW,
    Subject,
    candidates,
    end_word,
    heard,
    news,
    of_all,
    picked,
    so_far,
    spoken_of,
    winner,
    with_lives,
)
from karat.config.rules import Rule
from karat.temporal.columns import (
    AT,
    BATCH_SEQ,
    BECAUSE,
    BECAUSE_HASH,
    BK,
    IS_CURRENT,
    IS_DELETED,
    PLACE,
    RULE_VERSION,
    SK,
    VALID_FROM,
    VALID_TO,
    col,
    quoted,
)
from karat.temporal.moments import moment
from karat.temporal.sql import Sql, literal
from karat.temporal.whose import WHOSE_BY_ATTRIBUTE, hash_of_words, whose
from karat.temporal.windows import all_of

BECAUSE_TYPE = WHOSE_BY_ATTRIBUTE.simpleString()
END_WORD = "__karat_end_word"
"""Working: the word that settles whether the thing is there."""
CHANGES = "__karat_changes"
"""Working: whether what is believed is another than before."""
LAST_WORDS, WORDS_BEFORE = "__karat_last_words", "__karat_words_before"
"""Working: the words that stand in the end, and those that stood just before."""


def belief_columns(subject: Subject) -> tuple[str, ...]:
    """The columns of a belief, in their order."""
    return (*subject.key, *subject.attributes, IS_DELETED, RULE_VERSION, BECAUSE, BK, SK)


def as_of(statements: DataFrame, subject: Subject, rule: Rule, valid_at: datetime | None = None) -> DataFrame:
    """What is believed to be true at a time, or at the end of all time. Grain: one row per entity in the belief."""
    told = statements if valid_at is None else statements.where(F.col(AT) <= moment(valid_at))
    return composed(last_words(told, subject, rule), subject, rule).selectExpr(*map(quoted, belief_columns(subject)))


def last_words(statements: DataFrame, subject: Subject, rule: Rule) -> DataFrame:
    """Every source's last words on each entity in the belief. Grain: one row per entity."""
    words = statements.withColumn(NEW, F.lit(False)).transform(with_lives, subject)
    keys = [F.first(col(name)).alias(name) for name in (*subject.key, SK)]
    return words.groupBy(BK).agg(*keys, *map(F.expr, picked(subject, rule, of_all))).where(ENTERED)


def history(statements: DataFrame, subject: Subject, rule: Rule) -> DataFrame:
    """Every period of the belief. Grain: one row per entity and period in which the believed values are the same."""
    return periods(believed_moments(statements, subject, rule), subject)


def periods(moments: DataFrame, subject: Subject) -> DataFrame:
    """Moments at which the believed values change, each until the next. Grain: one row per entity and period.

    `because` tells the words that stood when the period ended, or stand now.
    """
    instants = Window.partitionBy(BK).orderBy(AT)
    state = composed_state(subject)
    changes = F.row_number().over(instants).eqNullSafe(1) | ~state.eqNullSafe(F.lag(state).over(instants))
    # a period ends where the next one opens, with what stood just before; all in one order, so that it is sorted once
    stood = {LAST_WORDS: F.last(BECAUSE).over(all_of(instants)), WORDS_BEFORE: F.lag(BECAUSE).over(instants)}
    opening = moments.withColumns({CHANGES: changes, **stood}).where(CHANGES)
    ends = F.lead(AT).over(instants)
    because = F.when(ends.isNull(), F.col(LAST_WORDS)).otherwise(F.lead(WORDS_BEFORE).over(instants))
    return opening.select(
        *(because.alias(name) if name == BECAUSE else col(name) for name in belief_columns(subject)),
        F.col(AT).alias(VALID_FROM),
        ends.alias(VALID_TO),
        ends.isNull().alias(IS_CURRENT),
    ).withColumn(BECAUSE_HASH, F.expr(hash_of_words(BECAUSE)))


def believed_moments(statements: DataFrame, subject: Subject, rule: Rule, known_batch: int | None = None) -> DataFrame:
    """What is believed from each instant at which anybody spoke. Grain: one row per entity and instant.

    Statements of batches after `known_batch` count as new; then the words and the news are there too, see `karat.belief.restatements`.
    """
    new = F.lit(False) if known_batch is None else F.col(BATCH_SEQ) > known_batch
    words = statements.withColumn(NEW, new).transform(with_lives, subject)
    causes = [] if known_batch is None else news(subject, rule)
    following = f"lead({AT}) OVER (PARTITION BY {BK} ORDER BY {PLACE}) AS __karat_next"
    told = words.selectExpr("*", *picked(subject, rule, so_far), *causes, following)
    # of several statements at one instant only what holds after the last of them was ever true
    settled = told.where(f"{ENTERED} AND (__karat_next IS NULL OR __karat_next > {AT})")
    believed = composed(settled, subject, rule)
    return believed if known_batch is not None else believed.selectExpr(*map(quoted, (*belief_columns(subject), AT)))


def composed(words: DataFrame, subject: Subject, rule: Rule) -> DataFrame:
    """Words settled into one value per attribute. Grain: unchanged."""
    groups = spoken_of(subject, rule)
    kept = [quoted(name) for name in words.columns if name not in subject.attributes and name != IS_DELETED]
    weighed = words.selectExpr(
        *kept,
        f"{end_word(subject, rule)} AS {END_WORD}",
        *(f"{winner(candidates(subject, name, group).values(), group.by)} AS {winning(name)}" for name, group in groups.items()),
    )
    gone = f"coalesce({END_WORD}.gone, false)" if heard(subject, rule.delete) else "false"
    values = {name: F.expr(f"{winning(name)}.value" if name in groups else "NULL").cast(kind) for name, kind in subject.attributes.items()}
    return weighed.withColumns({**values, IS_DELETED: F.expr(gone), RULE_VERSION: F.lit(rule.version), BECAUSE: F.expr(_because(groups))})


def winning(attribute: str) -> Sql:
    """The column that holds the word that won."""
    return quoted(f"__karat_winner_{attribute}")


def composed_state(subject: Subject) -> Column:
    """What must differ for a belief to have changed."""
    return F.struct(*(comparable(col(name), kind) for name, kind in subject.attributes.items()), F.col(IS_DELETED))


def comparable(value: Column, kind: T.DataType) -> Column:
    """A value that can be compared: maps cannot, their text can."""
    if isinstance(kind, T.MapType):
        return F.array_sort(F.map_entries(value))
    return F.to_json(F.struct(value.alias("v")), {"ignoreNullFields": "false"}) if "map<" in kind.simpleString() else value


def text_of(value: Sql, kind: T.DataType) -> Sql:
    """A value as people read it."""
    if isinstance(kind, T.BinaryType):
        return f"lower(hex({value}))"
    return f"to_json({value})" if isinstance(kind, T.StructType | T.ArrayType | T.MapType) else f"CAST({value} AS STRING)"


def _because(attributes: Iterable[str]) -> Sql:
    """Attribute to source, time and record of the word that won."""
    entries = []
    for name in attributes:
        word = winning(name)
        entries.append(f"if({word} IS NULL, NULL, named_struct('key', {literal(name)}, 'value', {whose(word)}))")
    found = f"map_from_entries(array_compact(array({', '.join(entries)})))" if entries else "map()"
    return f"CAST({found} AS {BECAUSE_TYPE})"
