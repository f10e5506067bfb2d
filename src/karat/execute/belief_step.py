"""One step of a belief: from the evidence of one batch to that of a later one, for whom it concerns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.timeline import statements
from karat.execute.acts import Acts, all_settled
from karat.execute.beside import beside
from karat.execute.concerned import Ground, Step, concerned_by, said_about
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.tables import SOURCE, TARGET, Merge, Replacement
from karat.execute.world import RunStamp
from karat.silver.belief import believed_moments, periods
from karat.silver.belief_shape import belief_form, conflicts_form, history_form
from karat.silver.conflicts import conflicts
from karat.silver.restatement import frontiers, receipts_of_rule, receipts_of_statements
from karat.silver.words import Subject
from karat.temporal.columns import (
    ACT,
    BATCH_SEQ,
    EVENT_TS,
    IS_CURRENT,
    RULE_VERSION,
    SK,
    SNAPSHOT_TS,
    col,
)
from karat.temporal.difference import WAS_LIVE
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
    receipts: Callable[[], DataFrame | None]
    """Waits for what the step changed about the past: nobody but its own table needs it."""

    def receipts_of(self, stamp: RunStamp) -> DataFrame | None:
        """The receipts with the run that writes them; None when there are none."""
        found = self.receipts()
        before = None if self.step.former is None else self.step.former.version
        stamped = {
            RULE_VERSION: F.lit(self.step.rule.version),
            "rule_version_before": F.lit(before).cast("int"),
            "run_id": F.lit(stamp.run_id),
            "restated_at": moment(stamp.started_at),
        }
        return found.withColumns(stamped) if found is not None else None

    def puts(self, subject: Subject) -> Merge | Replacement | None:
        """What is believed now of those whose last period differs; None when nobody's does. Who has none any more is deleted."""
        if not any(row[WAS_LIVE] for row in self.history.kinds):
            return None
        form = belief_form(subject)
        last = self.history.rows.where(F.col(IS_CURRENT))
        fresh = last.where(F.col(ACT) != "delete").select(F.lit("put").alias(ACT), *map(col, form.columns))
        gone = last.where(F.col(ACT) == "delete").select(F.lit("delete").alias(ACT), *map(col, form.columns))
        near = self.history.near(self.history.kinds)
        same = " AND ".join([*near, f"{TARGET}.{SK} = {SOURCE}.{SK}"])
        if near and not self.step.of_all:
            return Replacement(fresh.drop(ACT), same)
        rows = fresh.unionByName(gone.join(fresh.select(SK), SK, "left_anti")) if self.step.of_all else fresh
        updated = [name for name in form.columns if name != SK]
        return Merge(rows, same, ACT, updated, form.columns, deletes=self.step.of_all)


def judge(step: Step, ground: Ground, *, compare_present: bool = False) -> Judged | None:
    """Everything the step changes, computed; nothing is written yet. None when nothing new was said under the same rule."""
    with judging(step, ground, compare_present=compare_present) as judged:
        return judged


@contextmanager
def judging(step: Step, ground: Ground, *, compare_present: bool = False) -> Iterator[Judged | None]:
    """The same, with the receipts still under way: they are there when this ends, and till then few rows are interpreted."""
    session, tables, belief, subject = ground.tables.session, ground.tables, ground.belief, ground.subject
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")  # what is merged is computed once already
    concerned = concerned_by(step, ground)
    if not concerned.read and not step.of_all:
        yield None
        return
    if concerned.keys is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(1 + concerned.read // ROWS_PER_PARTITION))
    forms = [(history_form(subject), belief.history), (conflicts_form(subject), belief.conflicts)]
    forms += [(belief_form(subject), belief.table)] if compare_present else []
    elsewhere = tables.apart()  # what is interpreted here must not be there
    with beside(session, lambda: [concerned.held(form, table, elsewhere) for form, table in forms]) as held:
        said = said_about(concerned, step, ground)
        with interpreted(session, few=concerned.are_few):
            told = statements(said, ground.terms)
            told = told if concerned.keys is None else kept(told)
            with beside(session, lambda: None if concerned.keys is None else told.count()) as computed:  # two will ask for it at once
                history = periods(believed_moments(told, subject, step.rule), subject)
                fresh = [history, conflicts(told, subject, step.rule), history.where(IS_CURRENT)]
                computed()
            with beside(session, lambda: _computed(_receipts(step, said, told, ground))) as receipts:
                differing = [concerned.differing(rows, old, form) for rows, old, (form, _) in zip(fresh, held(), forms, strict=False)]
                acts = all_settled(differing)
                yield Judged(concerned.read, step, acts[0], acts[1], acts[2] if compare_present else None, receipts)


def _receipts(step: Step, rows: DataFrame, told: DataFrame, ground: Ground) -> DataFrame | None:
    """What the step changed about the past, given the evidence and what it tells; None where nothing new speaks of any."""
    if step.since is None or step.former is None:
        return None
    if step.former == step.rule:
        late = _spoken_late_of(rows, step.since)
        if late is None:
            return None
        rows, told = about(rows, late).unionByName(of_sources(rows)), about(told, late)
    subject = ground.subject
    after = believed_moments(told, subject, step.rule, step.since)
    earlier = kept(statements(rows.where(F.col(BATCH_SEQ) <= step.since), ground.terms))
    middle = kept(believed_moments(earlier, subject, step.rule))
    found = [receipts_of_statements(middle, after, frontiers(earlier), subject, step.rule)]
    if step.former != step.rule:
        found.append(receipts_of_rule(believed_moments(earlier, subject, step.former), middle, subject))
    return reduce(DataFrame.unionByName, found)


def _computed(rows: DataFrame | None) -> DataFrame | None:
    """The rows, computed; None when there are none."""
    found = None if rows is None else kept(rows)
    return None if found is None or found.isEmpty() else found


def _spoken_late_of(rows: DataFrame, since: int) -> DataFrame | None:
    """Those of whom something new speaks of a time before the last one known; None when there is nobody. Grain: one row per entity."""
    first, last = F.least(EVENT_TS, SNAPSHOT_TS), F.greatest(EVENT_TS, SNAPSHOT_TS)
    is_new = F.col(BATCH_SEQ) > since
    spans = rows.groupBy(SK).agg(F.max(F.when(~is_new, last)).alias("known"), F.min(F.when(is_new, first)).alias("new"))
    # statements about everything have no key; they may concern everybody
    swept = spans.where(F.col(SK).isNull()).select(F.col("known").alias("swept_before"), F.col("new").alias("swept"))
    beside = spans.where(F.col(SK).isNotNull()).join(F.broadcast(swept), how="left")
    late = kept(beside.where(F.least("new", "swept") < F.greatest("known", "swept_before")).select(SK))
    return None if late.isEmpty() else late
