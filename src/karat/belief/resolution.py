"""A belief is a pure function from statements and a rule to one value per attribute, and to the statement it rests on.

Takes ordered statements (`karat.temporal.statements`): each once, `AT` its time. Whoever asks what was known at a moment
hands in the statements known then, and the rule in force then.

    CRM   status=Active @1      ─────────────┐
    CORE  status=Restricted @2   ┌───────────┼─────────  precedence {CORE: 2, CRM: 1}
    CRM   status=Closed @4       │           └─────────
                                 │
    believed   Active [1, 2)     Restricted [2, on)      because of CORE @2
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.belief.candidates import (
    ENTERED,
    FIRST_NEW,
    NEW,
    allowed_sources,
    candidate_columns,
    candidates,
    decided_attributes,
    last_of_all,
    last_so_far,
    latest_new,
    lifecycle_winner,
    winner,
    with_lives,
)
from karat.config.rules import Rule
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment
from karat.temporal.sql import Sql, literal
from karat.temporal.whose import WHOSE_BY_ATTRIBUTE, hash_of_words, whose
from karat.temporal.windows import all_of

BECAUSE_TYPE: Final = WHOSE_BY_ATTRIBUTE.simpleString()
LIFECYCLE_WINNER: Final = "__karat_lifecycle_winner"
"""Working: the statement that settles whether the thing is there."""
_CHANGES, _NEXT = "__karat_changes", "__karat_next"
_LAST_BECAUSE, _BECAUSE_BEFORE = "__karat_last_because", "__karat_because_before"


def belief_columns(schema: EntitySchema) -> tuple[str, ...]:
    """The columns of a belief, in their order."""
    return (*schema.key, *schema.attributes, c.IS_DELETED, c.RULE_VERSION, c.BECAUSE, c.BK, c.SK)


def as_of(statements: DataFrame, schema: EntitySchema, rule: Rule, valid_at: datetime | None = None) -> DataFrame:
    """What is believed to be true at a time, or at the end of all time. Grain: one row per entity in the belief."""
    until_then = statements if valid_at is None else statements.where(F.col(c.AT) <= moment(valid_at))
    return composed(last_candidates(until_then, schema, rule), schema, rule).selectExpr(*map(c.quoted, belief_columns(schema)))


def last_candidates(statements: DataFrame, schema: EntitySchema, rule: Rule) -> DataFrame:
    """Every source's last candidates for each entity in the belief. Grain: one row per entity."""
    marked = statements.withColumn(NEW, F.lit(False)).transform(with_lives, schema)
    keys = [F.first(c.col(name)).alias(name) for name in (*schema.key, c.SK)]
    return marked.groupBy(c.BK).agg(*keys, *map(F.expr, candidate_columns(schema, rule, last_of_all))).where(ENTERED)


def periods(moments: DataFrame, schema: EntitySchema) -> DataFrame:
    """Moments at which the believed values change, each until the next. Grain: one row per entity and period.

    `because` tells the statements that stood when the period ended, or stand now.
    """
    instants = Window.partitionBy(c.BK).orderBy(c.AT)
    state = believed_state(schema)
    changes = F.row_number().over(instants).eqNullSafe(1) | ~state.eqNullSafe(F.lag(state).over(instants))
    # a period ends where the next one opens, with what stood just before; all in one order, so that it is sorted once
    stood = {_LAST_BECAUSE: F.last(c.BECAUSE).over(all_of(instants)), _BECAUSE_BEFORE: F.lag(c.BECAUSE).over(instants)}
    opening = moments.withColumns({_CHANGES: changes, **stood}).where(_CHANGES)
    ends = F.lead(c.AT).over(instants)
    because = F.when(ends.isNull(), F.col(_LAST_BECAUSE)).otherwise(F.lead(_BECAUSE_BEFORE).over(instants))
    return opening.select(
        *(because.alias(name) if name == c.BECAUSE else c.col(name) for name in belief_columns(schema)),
        F.col(c.AT).alias(c.VALID_FROM),
        ends.alias(c.VALID_TO),
        ends.isNull().alias(c.IS_CURRENT),
        F.col(FIRST_NEW),
    ).withColumn(c.BECAUSE_HASH, F.expr(hash_of_words(c.BECAUSE)))


def believed_moments(statements: DataFrame, schema: EntitySchema, rule: Rule, known_batch: int | None = None) -> DataFrame:
    """What is believed from each instant at which anybody spoke. Grain: one row per entity and instant.

    Statements of batches after `known_batch` count as new: then the candidates and the last new statements are there too,
    see `karat.belief.restatements`.
    """
    new = F.lit(False) if known_batch is None else F.col(c.BATCH_SEQ) > known_batch
    marked = statements.withColumn(NEW, new).transform(with_lives, schema)
    causes = [] if known_batch is None else latest_new(schema, rule)
    following = f"lead({c.AT}) OVER (PARTITION BY {c.BK} ORDER BY {c.PLACE}) AS {_NEXT}"
    weighed = marked.selectExpr("*", *candidate_columns(schema, rule, last_so_far), *causes, following)
    # of several statements at one instant only what holds after the last of them was ever true
    settled = weighed.where(f"{ENTERED} AND ({_NEXT} IS NULL OR {_NEXT} > {c.AT})")
    believed = composed(settled, schema, rule)
    columns = (*belief_columns(schema), c.AT, FIRST_NEW)
    return believed if known_batch is not None else believed.selectExpr(*map(c.quoted, columns))


def composed(weighed: DataFrame, schema: EntitySchema, rule: Rule) -> DataFrame:
    """Candidates settled into one value per attribute. Grain: unchanged."""
    groups = decided_attributes(schema, rule)
    others = [c.quoted(name) for name in weighed.columns if name not in schema.attributes and name != c.IS_DELETED]
    settled = weighed.selectExpr(
        *others,
        f"{lifecycle_winner(schema, rule)} AS {LIFECYCLE_WINNER}",
        *(f"{winner([*candidates(schema, name, group).values()], group.by)} AS {winning(name)}" for name, group in groups.items()),
    )
    gone = f"coalesce({LIFECYCLE_WINNER}.gone, false)" if allowed_sources(schema, rule.delete) else "false"
    values = {name: F.expr(f"{winning(name)}.value" if name in groups else "NULL").cast(kind) for name, kind in schema.attributes.items()}
    because = F.expr(_because(groups))
    return settled.withColumns({**values, c.IS_DELETED: F.expr(gone), c.RULE_VERSION: F.lit(rule.version), c.BECAUSE: because})


def winning(attribute: str) -> Sql:
    """The column that holds the candidate that won."""
    return c.quoted(f"__karat_winner_{attribute}")


def believed_state(schema: EntitySchema) -> Column:
    """What must differ for a belief to have changed."""
    return F.struct(*(comparable(c.col(name), kind) for name, kind in schema.attributes.items()), F.col(c.IS_DELETED))


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
    """Attribute to source, time and record of the candidate that won."""
    entries = []
    for name in attributes:
        won = winning(name)
        entries.append(f"if({won} IS NULL, NULL, named_struct('key', {literal(name)}, 'value', {whose(won)}))")
    found = f"map_from_entries(array_compact(array({', '.join(entries)})))" if entries else "map()"
    return f"CAST({found} AS {BECAUSE_TYPE})"
