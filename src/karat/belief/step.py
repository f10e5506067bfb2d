"""One step of a belief: from the evidence of one batch to that of a later one, for whom it concerns."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.belief.candidates import Subject, spoken
from karat.belief.concerned import Concerned, Ground, Step, concerned_by, said_about
from karat.belief.conflicts import conflicts
from karat.belief.resolution import believed_moments, periods
from karat.belief.restatements import FRONTIER, frontiers, receipts_of_rule, receipts_of_statements, with_causes
from karat.belief.schema import belief_form, conflicts_form, history_form, receipts_form
from karat.bronze.timeline import statements
from karat.config.names import TableName
from karat.execute.acts import Acts, all_settled
from karat.execute.beside import beside
from karat.execute.evidence import about
from karat.execute.kept import kept, write_as_kept
from karat.execute.pace import interpreted
from karat.lake.context import RunStamp
from karat.lake.delta import DeltaTables
from karat.lake.tables import SOURCE, TARGET, Merge, Replacement
from karat.temporal.columns import (
    ACTION,
    AT,
    BATCH_SEQ,
    EVENT_TS,
    IS_CURRENT,
    RULE_VERSION,
    SK,
    SNAPSHOT_TS,
    VALID_FROM,
    col,
)
from karat.temporal.difference import WAS_LIVE, Form, only_inserts
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment

ROWS_PER_PARTITION = 20_000


@dataclass(frozen=True)
class Judged:
    """What a step comes to: the rows of each table that differ, and receipts for the past."""

    read: int
    step: Step
    history: Acts
    conflicts: Acts
    present: Acts | None
    """What differs of what is believed now, where that was compared; otherwise it follows from the history's acts."""
    receipts: Acts | None
    """What the step changed about the past; None where nothing could."""

    def receipts_of(self, stamp: RunStamp) -> DataFrame | None:
        """The receipts with the run that writes them; None when there are none."""
        if self.receipts is None or not self.receipts.kinds:
            return None
        before = None if self.step.former is None else self.step.former.version
        stamped = {
            RULE_VERSION: F.lit(self.step.rule.version),
            "rule_version_before": F.lit(before).cast("int"),
            "run_id": F.lit(stamp.run_id),
            "restated_at": moment(stamp.started_at),
        }
        return self.receipts.rows.drop(ACTION, WAS_LIVE).withColumns(stamped)

    def puts(self, subject: Subject) -> Merge | Replacement | None:
        """What is believed now of those whose last period differs; None when nobody's does. Who has none any more is deleted."""
        if not any(row[WAS_LIVE] for row in self.history.kinds):
            return None
        form = belief_form(subject)
        last = self.history.rows.where(F.col(IS_CURRENT))
        fresh = last.where(F.col(ACTION) != "delete").select(F.lit("put").alias(ACTION), *map(col, form.columns))
        gone = last.where(F.col(ACTION) == "delete").select(F.lit("delete").alias(ACTION), *map(col, form.columns))
        near = self.history.near(self.history.kinds)
        same = " AND ".join([*near, f"{TARGET}.{SK} = {SOURCE}.{SK}"])
        if near and not self.step.of_all:
            return Replacement(fresh.drop(ACTION), same)
        rows = fresh.unionByName(gone.join(fresh.select(SK), SK, "left_anti")) if self.step.of_all else fresh
        updated = [name for name in form.columns if name != SK]
        return Merge(rows, same, ACTION, updated, form.columns, deletes=self.step.of_all)


def judge(step: Step, ground: Ground, *, compare_present: bool = False) -> Judged | None:
    """Everything the step changes, computed; nothing is written yet. None when nothing new was said under the same rule."""
    session, tables, belief, subject = ground.tables.session, ground.tables, ground.belief, ground.subject
    write_as_kept(session)
    concerned = concerned_by(step, ground)
    if not concerned.read and not step.of_all:
        return None
    if concerned.keys is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(1 + concerned.read // ROWS_PER_PARTITION))
    whole = history_form(subject)
    # whoever is judged anew is compared with all that is held; else what a hash tells is not read
    forms = [(replace(whole, told=()) if step.since is None else whole, belief.history), (conflicts_form(subject), belief.conflicts)]
    forms += [(belief_form(subject), belief.table)] if compare_present else []
    # what is held is needed only where what was said has been judged, and is looked up while that is looked up and planned
    look_up = partial(_held, concerned, forms, tables.apart())  # apart: what is interpreted here must not be there
    with beside(session, look_up) as held:
        said = said_about(concerned, step, ground)  # where it cannot be picked out, a search of the whole table: not interpreted
        with interpreted(session, few=concerned.are_few):
            told = statements(said, ground.terms).transform(spoken, subject)
            told = told if concerned.keys is None else kept(told)
            moments = _moments(told, step, concerned, ground)
            history = periods(moments, subject)
            fresh = [history, conflicts(told, subject, step.rule), history.where(IS_CURRENT)]
            parts = [concerned.differing(rows, old, form) for rows, old, (form, _) in zip(fresh, held(), forms, strict=False)]
            receipts = _receipts(step, held()[0], (said, moments), concerned.since, ground)
            acts = all_settled([*parts, *receipts])
    return Judged(concerned.read, step, acts[0], acts[1], acts[2] if compare_present else None, acts[-1] if receipts else None)


def _held(concerned: Concerned, forms: list[tuple[Form, TableName]], tables: DeltaTables) -> list[DataFrame | None]:
    """The held rows of each table that may differ."""
    return [concerned.held(form, table, tables) for form, table in forms]


def _moments(told: DataFrame, step: Step, concerned: Concerned, ground: Ground) -> DataFrame:
    """What is believed at every instant, and where that may be a restatement, because of which news. Grain: entity and instant."""
    if not step.may_restate:
        return believed_moments(told, ground.subject, step.rule)
    moments = with_causes(believed_moments(told, ground.subject, step.rule, step.since), ground.subject, step.rule, concerned.since)
    return moments if concerned.keys is None else kept(moments)


def _receipts(
    step: Step, held: DataFrame | None, fresh: tuple[DataFrame, DataFrame], since: datetime | None, ground: Ground
) -> list[tuple[DataFrame, Form]]:
    """What the step changed about the past, given what was said and what is believed of it now; nothing where it cannot have.

    What was believed before is what the history holds.
    """
    if not step.may_restate or step.since is None or held is None:
        return []
    subject, (said, after) = ground.subject, fresh
    before = held.withColumnRenamed(VALID_FROM, AT)
    found = []
    if step.former != step.rule:
        earlier = kept(statements(said.where(F.col(BATCH_SEQ) <= step.since), ground.terms))
        middle = kept(believed_moments(earlier, subject, step.rule))
        found.append(receipts_of_rule(before, middle, subject))
        before = middle
    found.append(receipts_of_statements(before, after, _spoken_late_of(said, step.since, ground.terms), subject, since))
    form = receipts_form(subject)
    return [(only_inserts(reduce(DataFrame.unionByName, found), form), form)]


def _spoken_late_of(said: DataFrame, since: int, terms: EntitySchema) -> DataFrame:
    """Those of whom something new speaks of a time before the last one known, and that time. Grain: one row per entity."""
    first, last = F.least(EVENT_TS, SNAPSHOT_TS), F.greatest(EVENT_TS, SNAPSHOT_TS)
    is_new = F.col(BATCH_SEQ) > since
    spans = said.groupBy(SK).agg(F.max(F.when(~is_new, last)).alias(FRONTIER), F.min(F.when(is_new, first)).alias("new"))
    if not (terms.swept or terms.shown_apart):
        return spans.where(F.col("new") < F.col(FRONTIER)).select(SK, FRONTIER)
    # statements about everything have no key; they may concern everybody, and what follows from them has a time of its own
    swept = spans.where(F.col(SK).isNull()).select(F.col(FRONTIER).alias("swept_before"), F.col("new").alias("swept"))
    beside = spans.where(F.col(SK).isNotNull()).join(F.broadcast(swept), how="left")
    late = beside.where(F.least("new", "swept") < F.greatest(FRONTIER, "swept_before")).select(SK)
    return about(frontiers(statements(said.where(~is_new), terms)), late, few=False)
