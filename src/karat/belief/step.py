"""One step of a belief, computed: from the evidence of one batch to that of a later one, for the entities it is about.

    new evidence          rows of later batches than the history has consumed, whoever wrote them
    affected keys         the entities these are about, each from its first new time on
    statements            what can still be their sources' last word from then on, in order
    periods               resolved by the rule in force, and set against the held ones that end at or after that time

A new rule, or a first time, is the same step without keys: everything, from the beginning.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from karat.belief.affected import NewEvidence, affected_keys, between_batches, new_evidence, relevant_evidence
from karat.belief.candidates import FIRST_NEW, believable
from karat.belief.conflicts import conflicts
from karat.belief.context import BeliefContext
from karat.belief.resolution import believed_moments, periods
from karat.belief.restatements import moments_with_causes, receipts_of_rule, receipts_of_statements, speaking_of_the_past
from karat.belief.schema import conflicts_spec, history_spec, receipts_spec
from karat.config.rules import Rule
from karat.lake.changes import ChangeSet, change_set
from karat.lake.materialized import materialized
from karat.temporal.changes import TableSpec, as_inserts, difference
from karat.temporal.columns import AT, BK, VALID_FROM, VALID_TO, col
from karat.temporal.moments import moment
from karat.temporal.statements import statements

_TABLE: Final = "__karat_table"
_HELD_FROM: Final = "__karat_held_from"
HISTORY, CONFLICTS, RESTATEMENTS = "history", "conflicts", "restatements"


@dataclass(frozen=True)
class Step:
    """From which batch to which, under which rule."""

    since: int | None
    """None: from nothing."""
    until: int
    former: Rule | None
    rule: Rule
    with_receipts: bool = True
    """Whether receipts are wanted; those of a step that was interrupted are there already."""

    @property
    def derives_all(self) -> bool:
        """Whether everything is derived anew."""
        return self.since is None or self.former != self.rule


@dataclass(frozen=True)
class StepChanges:
    """What a step comes to: the rows of each table that differ, computed and counted."""

    read: int
    history: ChangeSet
    conflicts: ChangeSet
    restatements: ChangeSet


@contextmanager
def step_changes(step: Step, context: BeliefContext) -> Iterator[StepChanges | None]:
    """Everything the step changes; nothing is written yet. None when there is no new evidence under the same rule."""
    new = between_batches(context.assertions(), step.since, step.until)
    found = new_evidence(new)
    if not found.rows and not step.derives_all:
        yield None
        return
    assertions = between_batches(context.assertions(), None, step.until)
    keys = None if step.derives_all else affected_keys(new, assertions, found.speaking_of_all)
    evidence = relevant_evidence(assertions, keys, context.schema)
    with materialized(ordered_statements(evidence, context)) as ordered:
        # every affected key has statements, and these are staged already
        affected = None if keys is None else ordered.groupBy(BK).agg(F.max(FIRST_NEW).alias(FIRST_NEW))
        parts = _differences(step, context, (ordered, evidence, affected), found)
        with materialized(_together({name: rows for name, (rows, _) in parts.items()})) as rows:
            sets = {name: change_set(_part(rows, name), spec) for name, (_, spec) in parts.items()}
            yield StepChanges(found.rows, sets[HISTORY], sets[CONFLICTS], sets[RESTATEMENTS])


def ordered_statements(evidence: DataFrame, context: BeliefContext) -> DataFrame:
    """The statements of the evidence in their order, without what no belief depends on. Grain: one row per statement and key."""
    found = statements(evidence, context.schema, source_level=context.has_source_level).transform(believable, context.schema)
    # what follows for a key from a statement about its whole source has no first new time of its own
    first = F.first(FIRST_NEW, ignorenulls=True).over(_of_key())
    return found.withColumn(FIRST_NEW, first) if context.has_source_level else found


def believed_history(ordered: DataFrame, rule: Rule, context: BeliefContext) -> DataFrame:
    """Every period of the belief that follows from ordered statements. Grain: one row per entity and period."""
    return periods(believed_moments(ordered, context.schema, rule), context.schema)


def _differences(
    step: Step, context: BeliefContext, inputs: tuple[DataFrame, DataFrame, DataFrame | None], found: NewEvidence
) -> Mapping[str, tuple[DataFrame, TableSpec]]:
    """The rows of each table that differ, and how they are written.

    `inputs` are the ordered statements, the evidence they are from, and the affected keys.
    """
    ordered, evidence, keys = inputs
    schema = context.schema
    spec = history_spec(schema) if step.since is not None else replace(history_spec(schema), unread=())
    held = _still_matters(context.held(context.history, spec, spec.unread), keys, found.earliest)
    fresh = _with_held_start(believed_history(ordered, step.rule, context), held)
    differing = conflicts(ordered, schema, step.rule)
    of_conflicts = conflicts_spec(schema)
    held_conflicts = _about(context.held(context.conflicts, of_conflicts), keys)
    receipts = _receipts(step, context, (ordered, evidence), held)
    return {
        HISTORY: (_set_against(fresh, held, spec), spec),
        CONFLICTS: (_set_against(differing, held_conflicts, of_conflicts), of_conflicts),
        RESTATEMENTS: (as_inserts(receipts, receipts_spec(schema)), receipts_spec(schema)),
    }


def _still_matters(held: DataFrame | None, keys: DataFrame | None, earliest: datetime | None) -> DataFrame | None:
    """The held periods of the affected keys that end at or after their first new time. Grain: unchanged."""
    if held is None or keys is None:
        return held
    if earliest is not None:  # the literal keeps files of periods that ended earlier closed
        held = held.where(F.col(VALID_TO).isNull() | (F.col(VALID_TO) >= moment(earliest)))
    return held.join(keys, BK, "inner").where(_ends_at_or_after(F.col(FIRST_NEW)))


def _with_held_start(fresh: DataFrame, held: DataFrame | None) -> DataFrame:
    """The periods that end at or after their entity's first new time. Grain: one row per such period.

    Of statements before that time only the last ones are there: a period that spans it begins where the held one does.
    """
    if held is None or FIRST_NEW not in held.columns:
        return fresh.drop(FIRST_NEW)
    spans = F.col(VALID_FROM) < F.col(FIRST_NEW)
    starts = held.where(spans).groupBy(BK).agg(F.max(VALID_FROM).alias(_HELD_FROM))
    with_start = fresh.where(_ends_at_or_after(F.col(FIRST_NEW))).join(starts, BK, "left")
    started = F.when(spans, F.coalesce(_HELD_FROM, VALID_FROM)).otherwise(F.col(VALID_FROM))
    return with_start.withColumn(VALID_FROM, started).drop(_HELD_FROM, FIRST_NEW)


def _receipts(step: Step, context: BeliefContext, inputs: tuple[DataFrame, DataFrame], held: DataFrame | None) -> DataFrame:
    """What the step changed about the past, given what was said and what is held. Grain: one row per receipt."""
    schema, (ordered, evidence) = context.schema, inputs
    spec = receipts_spec(schema)
    if not step.with_receipts or step.since is None or held is None:
        return context.nothing(context.restatements).select(*map(col, spec.columns))
    before, receipts = held.withColumnRenamed(VALID_FROM, AT), []
    earlier = None
    if context.has_source_level or step.former != step.rule:
        earlier = ordered_statements(between_batches(evidence, None, step.since), context)
    if earlier is not None and step.former != step.rule:
        middle = believed_moments(earlier, schema, step.rule)
        receipts.append(receipts_of_rule(before, middle, schema))
        before = middle
    late = speaking_of_the_past(ordered, step.since, earlier if context.has_source_level else None)
    after = moments_with_causes(late, schema, step.rule, step.since)
    receipts.append(receipts_of_statements(before, after, schema))
    return reduce(DataFrame.unionByName, receipts)


def _set_against(fresh: DataFrame, held: DataFrame | None, spec: TableSpec) -> DataFrame:
    """The rows that differ, with their actions. Grain: one row per row that differs."""
    if held is None:
        return as_inserts(fresh, spec)
    columns = [col(name) for name in spec.columns]
    return difference(fresh.select(*columns), held.select(*columns), spec)


def _about(held: DataFrame | None, keys: DataFrame | None) -> DataFrame | None:
    return held if held is None or keys is None else held.join(keys, BK, "left_semi")


def _ends_at_or_after(time: Column) -> Column:
    return F.col(VALID_TO).isNull() | (F.col(VALID_TO) >= time)


def _of_key() -> WindowSpec:
    return Window.partitionBy(BK)


def _together(parts: Mapping[str, DataFrame]) -> DataFrame:
    """Rows of several tables in one frame, so that one job computes them. Grain: one row per row of a part."""
    shapes = {name: rows.schema for name, rows in parts.items()}

    def shaped(part: str, rows: DataFrame) -> DataFrame:
        own = F.struct(*map(col, rows.columns))
        return rows.select(
            F.lit(part).alias(_TABLE), *((own if name == part else F.lit(None)).cast(shape).alias(name) for name, shape in shapes.items())
        )

    return reduce(DataFrame.unionByName, (shaped(name, rows) for name, rows in parts.items()))


def _part(rows: DataFrame, name: str) -> DataFrame:
    """The rows of one table. Grain: unchanged."""
    return rows.where(F.col(_TABLE) == name).select(f"{name}.*")
