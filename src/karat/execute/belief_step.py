"""One step of a belief: from the evidence of one batch to that of a later one, for whom it concerns."""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.terms import Terms
from karat.bronze.timeline import statements
from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.config.rules import Rule
from karat.execute.acts import Acts, settled_acts, write
from karat.execute.delta import DeltaTables
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.world import RunStamp
from karat.silver.belief import believed_moments, periods
from karat.silver.belief_shape import belief_form, conflicts_form, history_form
from karat.silver.conflicts import differing
from karat.silver.restatement import frontiers, receipts_of_rule, receipts_of_statements
from karat.silver.words import Subject
from karat.state.commits import Commit, Written
from karat.temporal.columns import AT, BATCH_SEQ, BK, EVENT_TS, IS_CURRENT, RULE_VERSION, SK, SNAPSHOT_TS, SOURCE_SYSTEM, TIME_BASIS, col
from karat.temporal.difference import Form, acts_between
from karat.temporal.moments import moment

FEW = 500_000
"""New statements whose keys can be broadcast."""
FEW_TO_INTERPRET = 20_000
ROWS_PER_PARTITION = 20_000


@dataclass(frozen=True)
class Step:
    """From which batch to which, under which rule; no start: from nothing."""

    since: int | None
    until: int
    former: Rule | None
    rule: Rule

    @property
    def of_all(self) -> bool:
        """Whether everybody is judged anew."""
        return self.since is None or self.former != self.rule


@dataclass(frozen=True)
class Judged:
    """What a step comes to: the rows of each table that differ, and receipts for the past."""

    read: int
    tables: DeltaTables
    step: Step
    history: Acts
    current: Acts
    conflicts: Acts
    receipts: DataFrame | None

    def write(self, table: TableName, acts: Acts, commit: Commit) -> Written:
        """One table's part."""
        return write(acts, table, self.tables, commit)

    def receipts_of(self, stamp: RunStamp) -> DataFrame:
        """The receipts with the run that writes them."""
        before = None if self.step.former is None else self.step.former.version
        stamped = {
            RULE_VERSION: F.lit(self.step.rule.version),
            "rule_version_before": F.lit(before).cast("int"),
            "run_id": F.lit(stamp.run_id),
            "restated_at": moment(stamp.started_at),
        }
        if self.receipts is None:
            message = "a step without a past has no receipts"
            raise ValueError(message)
        return kept(self.receipts.withColumns(stamped))


@dataclass(frozen=True)
class _Concerned:
    """The evidence about whom a step concerns, and how much of it is new."""

    rows: DataFrame
    keys: DataFrame | None
    """None: everybody."""
    read: int

    def of(self, held: DataFrame) -> DataFrame:
        """Their rows among held ones."""
        return held if self.keys is None else about(held, self.keys)


def judge(step: Step, belief: Belief, terms: Terms, subject: Subject, tables: DeltaTables) -> Judged:
    """Everything the step changes, computed; nothing is written yet."""
    session = tables.session
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")  # what is merged is computed once already
    concerned = _concerned(step, belief, terms, tables)
    if concerned.keys is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(1 + concerned.read // ROWS_PER_PARTITION))
    with interpreted(session, few=concerned.keys is not None and concerned.read <= FEW_TO_INTERPRET):
        known_batch = step.since if step.former is not None else None
        moments = kept(believed_moments(statements(concerned.rows, terms), subject, step.rule, known_batch))
        history = kept(periods(moments, subject))
        fresh: list[tuple[Form, DataFrame, TableName]] = [
            (history_form(subject), history, belief.history),
            (belief_form(subject), history.where(IS_CURRENT), belief.table),
            (conflicts_form(subject), differing(_last_moments(moments), subject, step.rule), belief.conflicts),
        ]
        acts = []
        for form, rows, table in fresh:
            columns = [col(name) for name in form.columns]
            held = concerned.of(tables.read(table).select(*columns))
            acts.append(settled_acts(acts_between(rows.select(*columns), held, form), form))
        receipts = _receipts(step, concerned, moments, terms, subject)
    return Judged(concerned.read, tables, step, acts[0], acts[1], acts[2], receipts)


def _last_moments(moments: DataFrame) -> DataFrame:
    """What is believed now, with the words it rests on. Grain: one row per entity."""
    last = moments.groupBy(SK).agg(F.max(AT).alias(AT))
    return moments.join(last, [SK, AT], "left_semi")


def _concerned(step: Step, belief: Belief, terms: Terms, tables: DeltaTables) -> _Concerned:
    """Whom the step concerns: those somebody newly speaks of, all of a source that newly spoke of everything, or everybody."""
    evidence = tables.read(belief.entity.assertions).where(F.col(TIME_BASIS).isNotNull() & (F.col(BATCH_SEQ) <= step.until))
    new = evidence if step.since is None else evidence.where(F.col(BATCH_SEQ) > step.since)
    sweeping = F.collect_set(F.when(F.col(BK).isNull(), F.col(SOURCE_SYSTEM)))
    found = new.agg(F.count(F.lit(1)).alias("read"), sweeping.alias("sweeping")).collect()[0]
    if step.of_all or found["read"] > FEW:
        return _Concerned(evidence, None, found["read"])
    spoken_of = new.where(F.col(BK).isNotNull()).select(SK)
    if found["sweeping"]:
        spoken_of = spoken_of.unionByName(evidence.where(F.col(BK).isNotNull() & F.col(SOURCE_SYSTEM).isin(*found["sweeping"])).select(SK))
    keys = kept(spoken_of.distinct())
    rows = about(evidence, keys)
    return _Concerned(kept(rows.unionByName(of_sources(evidence)) if terms.swept else rows), keys, found["read"])


def _receipts(step: Step, concerned: _Concerned, after: DataFrame, terms: Terms, subject: Subject) -> DataFrame | None:
    """What the step changed about the past; None where there was none, or nothing new speaks of it."""
    if step.since is None or step.former is None:
        return None
    known = concerned.rows.where(F.col(BATCH_SEQ) <= step.since)
    if step.former == step.rule:
        late = _spoken_late_of(concerned.rows, step.since)
        if late is None:
            return None
        known, after = about(known, late).unionByName(of_sources(known)), about(after, late)
    earlier = statements(known, terms)
    middle = kept(believed_moments(earlier, subject, step.rule))
    found = [receipts_of_statements(middle, after, frontiers(earlier), subject, step.rule)]
    if step.former != step.rule:
        found.append(receipts_of_rule(believed_moments(earlier, subject, step.former), middle, subject))
    return reduce(DataFrame.unionByName, found)


def _spoken_late_of(rows: DataFrame, since: int) -> DataFrame | None:
    """Those of whom something new speaks of a time before the last one known; None when there is nobody. Grain: one row per entity."""
    first, last = F.least(EVENT_TS, SNAPSHOT_TS), F.greatest(EVENT_TS, SNAPSHOT_TS)
    is_new = F.col(BATCH_SEQ) > since
    about_keys = rows.where(F.col(BK).isNotNull())
    newly_swept = rows.where(F.col(BK).isNull() & is_new).agg(F.min(first)).collect()[0][0]
    spans = about_keys.groupBy(SK).agg(F.max(F.when(~is_new, last)).alias("known"), F.min(F.when(is_new, first)).alias("new"))
    earliest = F.least(F.col("new"), F.lit(newly_swept).cast("timestamp"))
    late = kept(spans.where(earliest < F.col("known")).select(SK))
    return None if late.isEmpty() else late
