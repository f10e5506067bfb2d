"""Receipts for the past: what was believed of it before, what is now, and which statement or rule is to blame.

Two readings of the same entity are laid side by side. Where they differ, the belief about that time has changed. It is a
restatement when a rule did it, or a statement that speaks of a time before the last one known of the entity; a statement
that is later than all of them only moves the belief forward, and leaves no receipt.

    known at first   CRM Active @1, CRM Closed @5          believed  Active [1, 5)  Closed [5, on)
    then arrives     CORE Restricted @3, of higher rank    restated  [3, 5) Active → Restricted, [5, on) Closed → Restricted
"""

from collections.abc import Iterable
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.belief.candidates import ENTERED, FIRST_NEW, allowed_sources, decided_attributes, latest_new_on
from karat.belief.resolution import BECAUSE_TYPE, LIFECYCLE_WINNER, belief_columns, believed_moments, comparable, text_of, winning
from karat.config.rules import Rule
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.sql import Sql, literal
from karat.temporal.whose import text_of_words, whose

CHANGED, BEFORE, AFTER, CAUSE = "changed", "before", "after", "cause"
STATEMENT, RULE = "statement", "rule"
FRONTIER: Final = "__karat_frontier"
"""Working: the time of the last statement known of the entity before."""
_CAUSES, _SIDE, _STATE, _GOES_ON, _NEXT = "__karat_causes", "__karat_side", "__karat_state", "__karat_goes_on", "__karat_next"


def receipts_of_statements(before: DataFrame, after: DataFrame, schema: EntitySchema) -> DataFrame:
    """What new statements changed about the past. Grain: one row per entity and stretch of one before, after and because.

    `before` and `after` are believed moments under one rule, `after` from `moments_with_causes`. Entities of which nothing
    new speaks of the past are not in `after`, and get no receipt.
    """
    known = side_by_side(before, after, schema).withColumn(_CAUSES, F.expr(_fitting_causes()))
    # before the first new statement nothing has moved, and what the readings say of that time need not be complete
    known = known.where(f"{FRONTIER} IS NOT NULL AND ({FIRST_NEW} IS NULL OR {c.AT} >= {FIRST_NEW})")
    late = f"filter({CHANGED}, name -> coalesce({_CAUSES}[name].source_event_ts < {FRONTIER}, false))"
    blamed = known.withColumn(CHANGED, F.expr(late))
    because = F.expr(f"map_filter({_CAUSES}, (name, cause) -> array_contains({CHANGED}, name))")
    return _receipts(blamed.withColumns({c.BECAUSE: because, CAUSE: F.lit(STATEMENT)}), schema)


def receipts_of_rule(before: DataFrame, after: DataFrame, schema: EntitySchema) -> DataFrame:
    """What a new rule changed about the same statements. Grain: one row per entity and stretch of one before and after."""
    no_statement = F.expr(f"CAST(map() AS {BECAUSE_TYPE})")
    return _receipts(side_by_side(before, after, schema).withColumns({c.BECAUSE: no_statement, CAUSE: F.lit(RULE)}), schema)


def moments_with_causes(statements: DataFrame, schema: EntitySchema, rule: Rule, known_batch: int) -> DataFrame:
    """Believed moments and, attribute by attribute, which new statement moved it. Grain: one row per entity and instant.

    Takes statements with `FRONTIER`; new are those of batches after `known_batch`.
    """
    moments = believed_moments(statements, schema, rule, known_batch)
    columns = [c.quoted(name) for name in (*belief_columns(schema), c.AT, FIRST_NEW, FRONTIER)]
    return moments.selectExpr(*columns, f"{_causes(schema, rule)} AS {_CAUSES}")


def speaking_of_the_past(statements: DataFrame, known_batch: int, earlier: DataFrame | None = None) -> DataFrame:
    """The statements about entities of which something new may speak of the past, with `FRONTIER`. Grain: unchanged.

    `earlier` are the statements as they were before the new ones; without it they are the old ones among all.
    """
    if earlier is None:
        before = F.max(F.when(F.col(c.BATCH_SEQ) <= known_batch, F.col(c.AT)))
        found = statements.withColumn(FRONTIER, before.over(Window.partitionBy(c.BK)))
    else:
        frontiers = earlier.groupBy(c.BK).agg(F.max(c.AT).alias(FRONTIER))
        found = statements.join(frontiers, c.BK, "inner")
    return found.where(F.col(FRONTIER).isNotNull() & F.coalesce(F.col(FIRST_NEW) < F.col(FRONTIER), F.lit(True)))


def side_by_side(before: DataFrame, after: DataFrame, schema: EntitySchema) -> DataFrame:
    """Both readings at every instant of either, and what differs between them. Grain: one row per entity and instant."""
    together = _one_side(after, AFTER, schema).unionByName(_one_side(before, BEFORE, schema))
    entity, in_turn = Window.partitionBy(c.BK), Window.partitionBy(c.BK).orderBy(c.AT, _SIDE)
    so_far = in_turn.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    carried = together.select(
        *(c.col(name) for name in (*schema.key, c.BK, c.SK, c.AT)),
        *(F.max(name).over(entity).alias(name) for name in (FRONTIER, FIRST_NEW)),
        *(F.last(F.when(F.col(_SIDE) == side, F.col(_STATE)), ignorenulls=True).over(so_far).alias(side) for side in (BEFORE, AFTER)),
        F.last(_CAUSES, ignorenulls=True).over(so_far).alias(_CAUSES),
        F.lead(c.AT).over(in_turn).alias(_NEXT),
    ).where(f"{_NEXT} IS NULL OR {_NEXT} > {c.AT}")
    return carried.withColumn(CHANGED, _changed(schema))


def _one_side(moments: DataFrame, side: str, schema: EntitySchema) -> DataFrame:
    """Moments as one of two sides; what is not known of a side is null."""
    state = F.struct(*(c.col(name) for name in (*schema.attributes, c.IS_DELETED)))
    unknown = {_CAUSES: BECAUSE_TYPE, FRONTIER: "timestamp", FIRST_NEW: "timestamp"}
    known = [F.col(name) if name in moments.columns else F.lit(None).cast(kind).alias(name) for name, kind in unknown.items()]
    key = [c.col(name) for name in (*schema.key, c.BK, c.SK, c.AT)]
    return moments.select(*key, state.alias(_STATE), *known, F.lit(side).alias(_SIDE))


def _changed(schema: EntitySchema) -> Column:
    """Names of what differs, in order."""
    before, after = F.col(BEFORE), F.col(AFTER)
    pairs = [(name, comparable(before[name], kind), comparable(after[name], kind)) for name, kind in schema.attributes.items()]
    pairs.append((c.IS_DELETED, before[c.IS_DELETED], after[c.IS_DELETED]))
    return F.array_sort(F.array_compact(F.array(*(F.when(~old.eqNullSafe(new), F.lit(name)) for name, old, new in pairs))))


def _receipts(instants: DataFrame, schema: EntitySchema) -> DataFrame:
    """Instants to stretches of one before, after and because. Grain: one row per entity and stretch.

    Of both readings only what changed is told, so that a receipt is not cut where something else moved on; as text, and
    null where nothing was believed.
    """
    key = [c.quoted(name) for name in (*schema.key, c.BK, c.SK, c.AT, CHANGED)]
    sides = [f"if({side} IS NULL, NULL, {_texts(side, schema)}) AS {side}" for side in (BEFORE, AFTER)]
    told = instants.selectExpr(*key, *sides, c.BECAUSE, CAUSE)
    in_time = Window.partitionBy(c.BK).orderBy(c.AT)
    # the same names have their values in the same order; texts are compared much faster than entries
    content = [c.col(CHANGED), F.map_values(BEFORE), F.map_values(AFTER), F.expr(text_of_words(c.BECAUSE))]
    goes_on = reduce(Column.__and__, (each.eqNullSafe(F.lag(each).over(in_time)) for each in content), F.row_number().over(in_time) > 1)
    opening = told.withColumn(_GOES_ON, goes_on).where(f"NOT {_GOES_ON}")
    stretches = opening.withColumns({c.VALID_FROM: F.col(c.AT), c.VALID_TO: F.lead(c.AT).over(in_time)}).where(F.size(CHANGED) > 0)
    columns = (*schema.key, c.BK, c.SK, c.VALID_FROM, c.VALID_TO, CHANGED, BEFORE, AFTER, c.BECAUSE, CAUSE)
    return stretches.select(*map(c.col, columns))


def _texts(side: str, schema: EntitySchema) -> Sql:
    values = {name: text_of(f"{side}.{c.quoted(name)}", kind) for name, kind in schema.attributes.items()}
    entries = {**values, c.IS_DELETED: f"CAST({side}.{c.IS_DELETED} AS STRING)"}
    pairs = ", ".join(f"{literal(name)}, {value}" for name, value in entries.items())
    return f"map_filter(map({pairs}), (name, value) -> array_contains({CHANGED}, name))"


def _causes(schema: EntitySchema, rule: Rule) -> Sql:
    """Attribute to the statement that moved it: the one that won if it is new, else the last new one that may have."""
    moved = {name: (winning(name), latest_new_on(name)) for name in decided_attributes(schema, rule)}
    if allowed_sources(schema, rule.delete):
        moved[c.IS_DELETED] = (LIFECYCLE_WINNER, latest_new_on(c.IS_DELETED))
        moved[ENTERED] = (LIFECYCLE_WINNER, latest_new_on(ENTERED))
    else:
        moved[ENTERED] = (latest_new_on(ENTERED), latest_new_on(ENTERED))
    return _map_of((name, f"if(coalesce({won}.is_new, false), {whose(won)}, {whose(new)})") for name, (won, new) in moved.items())


def _fitting_causes() -> Sql:
    """An entity that was not in the belief was not "there" either: who brings it in brings that too, with or without a say."""
    appears = f"({BEFORE} IS NULL OR {AFTER} IS NULL) AND {_CAUSES}['{ENTERED}'] IS NOT NULL"
    others = f"map_filter({_CAUSES}, (name, cause) -> name NOT IN ('{c.IS_DELETED}', '{ENTERED}'))"
    entering = f"map_concat({others}, map('{c.IS_DELETED}', {_CAUSES}['{ENTERED}']))"
    return f"if({appears}, {entering}, map_filter({_CAUSES}, (name, cause) -> name <> '{ENTERED}'))"


def _map_of(entries: Iterable[tuple[str, Sql]]) -> Sql:
    pairs = ", ".join(f"{literal(name)}, {value}" for name, value in entries)
    return f"CAST(map_filter(map({pairs}), (name, cause) -> cause IS NOT NULL) AS {BECAUSE_TYPE})"
