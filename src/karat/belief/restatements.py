"""Receipts for the past: what was believed of it before, what is now, and which statement or rule is to blame.

Two readings of the same entity are laid side by side. Where they differ, the belief about that time has changed. It is a
restatement when a rule did it, or a statement that speaks of a time before the last one known of the entity; a statement
that is later than all of them only moves the belief forward, and leaves no receipt.

    known at first   CRM Active @1, CRM Closed @5          believed  Active [1, 5)  Closed [5, on)
    then arrives     CORE Restricted @3, of higher rank    restated  [3, 5) Active → Restricted, [5, on) Closed → Restricted
"""

from collections.abc import Iterable
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.belief.candidates import ENTERED, Subject, heard, last_new, spoken_of
from karat.belief.resolution import BECAUSE_TYPE, END_WORD, belief_columns, comparable, text_of, winning
from karat.config.rules import Rule
from karat.temporal.columns import AT, BECAUSE, BK, IS_DELETED, SK, VALID_FROM, VALID_TO, col, quoted
from karat.temporal.moments import micros_of, moment
from karat.temporal.sql import Sql, literal
from karat.temporal.whose import text_of_words, whose

CHANGED, BEFORE, AFTER, CAUSE = "changed", "before", "after", "cause"
STATEMENT, RULE = "statement", "rule"
CAUSES = "__karat_causes"
"""Working: attribute to the new statement that moved it."""
FRONTIER = "__karat_frontier"
"""Working: the time of the last statement known of the entity before."""
_SIDE = "__karat_side"


def receipts_of_statements(before: DataFrame, after: DataFrame, late: DataFrame, subject: Subject, since: datetime | None) -> DataFrame:
    """What new statements changed about the past. Grain: one row per entity and stretch of one before, after and because.

    `before` and `after` are believed moments under one rule, `after` with its causes; `late` has `FRONTIER` per `SK` of those who may have
    a receipt. Nothing new speaks of a time before `since`; what the readings say of an earlier one need not be the same.
    """
    known = side_by_side(before, after, subject, late).withColumn(CAUSES, F.expr(_fitting_causes()))
    known = known if since is None else known.where(F.col(AT) >= moment(since))
    late_ones = f"filter({CHANGED}, name -> coalesce({CAUSES}[name].source_event_ts < {FRONTIER}, false))"
    blamed = known.withColumn(CHANGED, F.expr(late_ones))
    because = F.expr(f"map_filter({CAUSES}, (name, cause) -> array_contains({CHANGED}, name))")
    return _receipts(blamed.withColumns({BECAUSE: because, CAUSE: F.lit(STATEMENT)}), subject)


def receipts_of_rule(before: DataFrame, after: DataFrame, subject: Subject) -> DataFrame:
    """What a new rule changed about the same statements. Grain: one row per entity and stretch of one before and after."""
    no_statement = F.expr(f"CAST(map() AS {BECAUSE_TYPE})")
    return _receipts(side_by_side(before, after, subject).withColumns({BECAUSE: no_statement, CAUSE: F.lit(RULE)}), subject)


def with_causes(moments: DataFrame, subject: Subject, rule: Rule, since: datetime | None) -> DataFrame:
    """Believed moments with their news as what is believed and, attribute by attribute, which news moved it. Grain: unchanged.

    Nothing new speaks of a time before `since`: there nothing was moved.
    """
    believed = [quoted(name) for name in (*belief_columns(subject), AT)]
    causes = _causes(subject, rule)
    moved = causes if since is None else f"if({AT} >= timestamp_micros({micros_of(since)}), {causes}, NULL)"
    return moments.selectExpr(*believed, f"{moved} AS {CAUSES}")


def frontiers(statements: DataFrame) -> DataFrame:
    """The time of the last statement of each entity. Grain: one row per entity."""
    return statements.groupBy(SK).agg(F.max(AT).alias(FRONTIER))


def side_by_side(before: DataFrame, after: DataFrame, subject: Subject, among: DataFrame | None = None) -> DataFrame:
    """Both readings at every instant of either, and what differs between them. Grain: one row per entity and instant.

    With `among`, of those entities only, and with what is told there about them.
    """
    together = _sided(after, AFTER, subject).unionByName(_sided(before, BEFORE, subject))
    told = () if among is None else tuple(name for name in among.columns if name != SK)
    # by one key and already together: a merge join is a stage, a broadcast would be a job
    together = together if among is None else together.join(among.hint("merge"), SK, "inner")
    in_turn = Window.partitionBy(SK).orderBy(AT, _SIDE)
    so_far = in_turn.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    carried = together.select(
        *(col(name) for name in (*subject.key, BK, SK, AT, *told)),
        *(F.last(F.when(F.col(_SIDE) == side, F.col("state")), ignorenulls=True).over(so_far).alias(side) for side in (BEFORE, AFTER)),
        F.last(CAUSES, ignorenulls=True).over(so_far).alias(CAUSES),
        F.lead(AT).over(in_turn).alias("__karat_next"),
    ).where(f"__karat_next IS NULL OR __karat_next > {AT}")
    return carried.withColumn(CHANGED, _changed(subject))


def _sided(moments: DataFrame, side: str, subject: Subject) -> DataFrame:
    """Moments as one of two sides; causes only where they are known."""
    state = F.struct(*(col(name) for name in (*subject.attributes, IS_DELETED)))
    causes = F.col(CAUSES) if CAUSES in moments.columns else F.lit(None).cast(BECAUSE_TYPE)
    key = [col(name) for name in (*subject.key, BK, SK, AT)]
    return moments.select(*key, state.alias("state"), causes.alias(CAUSES), F.lit(side).alias(_SIDE))


def _changed(subject: Subject) -> Column:
    """Names of what differs, in order."""
    pairs = [
        (name, comparable(F.col(BEFORE)[name], kind), comparable(F.col(AFTER)[name], kind)) for name, kind in subject.attributes.items()
    ]
    pairs.append((IS_DELETED, F.col(BEFORE)[IS_DELETED], F.col(AFTER)[IS_DELETED]))
    return F.array_sort(F.array_compact(F.array(*(F.when(~old.eqNullSafe(new), F.lit(name)) for name, old, new in pairs))))


def _receipts(instants: DataFrame, subject: Subject) -> DataFrame:
    """Instants to stretches of one before, after and because. Grain: one row per entity and stretch.

    Of both readings only what changed is told, so that a receipt is not cut where something else moved on; as text, and null where
    nothing was believed.
    """
    key = [quoted(name) for name in (*subject.key, BK, SK, AT, CHANGED)]
    sides = [f"if({side} IS NULL, NULL, {_texts(side, subject)}) AS {side}" for side in (BEFORE, AFTER)]
    told = instants.selectExpr(*key, *sides, BECAUSE, CAUSE)
    in_time = Window.partitionBy(SK).orderBy(AT)
    # the same names have their values in the same order; texts are compared much faster than entries
    content = [col(CHANGED), F.map_values(BEFORE), F.map_values(AFTER), F.expr(text_of_words(BECAUSE))]
    goes_on = reduce(Column.__and__, (each.eqNullSafe(F.lag(each).over(in_time)) for each in content), F.row_number().over(in_time) > 1)
    opening = told.withColumn("__karat_goes_on", goes_on).where("NOT __karat_goes_on")
    stretches = opening.withColumns({VALID_FROM: F.col(AT), VALID_TO: F.lead(AT).over(in_time)}).where(F.size(CHANGED) > 0)
    columns = (*subject.key, BK, SK, VALID_FROM, VALID_TO, CHANGED, BEFORE, AFTER, BECAUSE, CAUSE)
    return stretches.select(*map(col, columns))


def _texts(side: str, subject: Subject) -> Sql:
    values = {name: text_of(f"{side}.{quoted(name)}", kind) for name, kind in subject.attributes.items()}
    entries = {**values, IS_DELETED: f"CAST({side}.{IS_DELETED} AS STRING)"}
    pairs = ", ".join(f"{literal(name)}, {value}" for name, value in entries.items())
    return f"map_filter(map({pairs}), (name, value) -> array_contains({CHANGED}, name))"


def _causes(subject: Subject, rule: Rule) -> Sql:
    """Attribute to the statement that moved it: the word that won if it is new, else the last new one that may have."""
    moved = {name: (winning(name), last_new(name)) for name in spoken_of(subject, rule)}
    if heard(subject, rule.delete):
        moved[IS_DELETED] = (END_WORD, last_new(IS_DELETED))
        moved[ENTERED] = (END_WORD, last_new(ENTERED))
    else:
        moved[ENTERED] = (last_new(ENTERED), last_new(ENTERED))
    return _map_of((name, f"if(coalesce({word}.is_new, false), {whose(word)}, {whose(new)})") for name, (word, new) in moved.items())


def _fitting_causes() -> Sql:
    """An entity that nobody believed in was not "there" either: who brings it into the belief brings that too, with or without a say."""
    appears = f"({BEFORE} IS NULL OR {AFTER} IS NULL) AND {CAUSES}['{ENTERED}'] IS NOT NULL"
    others = f"map_filter({CAUSES}, (name, cause) -> name NOT IN ('{IS_DELETED}', '{ENTERED}'))"
    entering = f"map_concat({others}, map('{IS_DELETED}', {CAUSES}['{ENTERED}']))"
    return f"if({appears}, {entering}, map_filter({CAUSES}, (name, cause) -> name <> '{ENTERED}'))"


def _map_of(entries: Iterable[tuple[str, Sql]]) -> Sql:
    pairs = ", ".join(f"{literal(name)}, {value}" for name, value in entries)
    return f"CAST(map_filter(map({pairs}), (name, cause) -> cause IS NOT NULL) AS {BECAUSE_TYPE})"
