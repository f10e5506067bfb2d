"""One step of a belief: from the evidence of one batch to that of a later one, for whom it concerns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.overtaken import heard_since
from karat.bronze.terms import Terms
from karat.bronze.timeline import statements
from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.config.rules import Rule
from karat.execute.acts import Acts, all_settled
from karat.execute.beside import beside
from karat.execute.delta import DeltaTables
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.tables import SOURCE, TARGET, Merge
from karat.execute.world import RunStamp
from karat.silver.belief import believed_moments, periods
from karat.silver.belief_shape import belief_form, conflicts_form, history_form
from karat.silver.conflicts import conflicts
from karat.silver.restatement import frontiers, receipts_of_rule, receipts_of_statements
from karat.silver.words import Subject
from karat.temporal.columns import (
    ACT,
    ATTR_HASH,
    BATCH_SEQ,
    BK,
    ENTITY_TYPE,
    EVENT_TS,
    EXTRA,
    EXTRACTION_VERSION,
    HASH_VERSION,
    INGEST_TS,
    INHERITED,
    IS_CURRENT,
    PAYLOAD,
    RULE_VERSION,
    SK,
    SNAPSHOT_TS,
    SOURCE_PATH,
    SOURCE_SYSTEM,
    SOURCE_TYPE,
    TIME_BASIS,
    VALID_TO,
    col,
)
from karat.temporal.difference import WAS_LIVE, Form, acts_between, only_inserts
from karat.temporal.moments import from_micros, moment, roughly
from karat.temporal.sketch import FEW_KEYS, Bitmaps, bitmaps, may_be_among, sketched

FEW = 500_000
"""Statements whose keys can be broadcast."""
FEW_TO_INTERPRET = 20_000
ROWS_PER_PARTITION = 20_000
BESIDE_THE_POINT = frozenset(
    {ATTR_HASH, ENTITY_TYPE, EXTRA, EXTRACTION_VERSION, HASH_VERSION, INHERITED, PAYLOAD, SOURCE_PATH, SOURCE_TYPE}
)
"""Columns of the evidence that no belief depends on."""


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

    def puts(self, subject: Subject) -> Merge | None:
        """What is believed now of those whose last period differs; None when nobody's does. Who has none any more is deleted."""
        if not any(row[WAS_LIVE] for row in self.history.kinds):
            return None
        form = belief_form(subject)
        last = self.history.rows.where(F.col(IS_CURRENT))
        fresh = last.where(F.col(ACT) != "delete").select(F.lit("put").alias(ACT), *map(col, form.columns))
        gone = last.where(F.col(ACT) == "delete").select(F.lit("delete").alias(ACT), *map(col, form.columns))
        rows = fresh.unionByName(gone.join(fresh.select(SK), SK, "left_anti")) if self.step.of_all else fresh
        updated = [name for name in form.columns if name != SK]
        on = [*self.history.near(self.history.kinds), f"{TARGET}.{SK} = {SOURCE}.{SK}"]
        return Merge(rows, " AND ".join(on), ACT, updated, form.columns, deletes=self.step.of_all)


@dataclass(frozen=True)
class Ground:
    """What a step is made on: the belief, how its evidence is read, and the tables."""

    belief: Belief
    terms: Terms
    tables: DeltaTables

    @property
    def subject(self) -> Subject:
        """Whom and what it is about."""
        return subject_of(self.terms)

    @property
    def evidence(self) -> DataFrame:
        """The assertions that count; of their columns those that a belief can depend on."""
        rows = self.tables.read(self.belief.entity.assertions)
        told = [col(name) for name in rows.columns if name not in BESIDE_THE_POINT]
        return rows.where(F.col(TIME_BASIS).isNotNull()).select(*told)


@dataclass(frozen=True)
class _Concerned:
    """The evidence about whom a step concerns, and how much of it is new."""

    rows: DataFrame
    """What can matter from `since` on."""
    keys: DataFrame | None
    """None: everybody."""
    read: int
    since: datetime | None
    """Nothing new speaks of a time before this: what is believed of it stays. None: everything is judged anew."""
    near: Bitmaps | None = None
    """A sketch of the keys, where they are few."""

    @property
    def are_few(self) -> bool:
        """Whether compiling would take longer than it saves."""
        return self.keys is not None and self.read <= FEW_TO_INTERPRET

    def held(self, form: Form, table: TableName, tables: DeltaTables) -> DataFrame | None:
        """The held rows that may differ; None where the table has just been made."""
        if tables.version(table) == 0:
            return None
        rows = self.recent(tables.read(table), form).select(*(col(name) for name in form.columns))
        # little of much: the search is one thing, what is made of its finds another
        return rows if self.keys is None else kept(_about(rows, self.keys, self.near))

    def recent(self, rows: DataFrame, form: Form) -> DataFrame:
        """The rows whose period ends no earlier than anything new; the literal keeps files of older ones unopened."""
        if self.since is None or form.start is None:
            return rows
        return rows.where(F.col(VALID_TO).isNull() | (F.col(VALID_TO) >= moment(self.since)))

    def differing(self, fresh: DataFrame, held: DataFrame | None, form: Form) -> tuple[DataFrame, Form]:
        """What is to be done to the held rows."""
        if held is None:
            return only_inserts(fresh, form), form
        recent = self.recent(fresh, form).select(*(col(name) for name in form.columns))
        return acts_between(recent, held, form, since=self.since), form


def subject_of(terms: Terms) -> Subject:
    """What a belief can be about, given its evidence."""
    return Subject(tuple(terms.key), terms.attributes, terms.sources)


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
    concerned = _concerned(step, ground)
    if not concerned.read and not step.of_all:
        yield None
        return
    if concerned.keys is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(1 + concerned.read // ROWS_PER_PARTITION))
    forms = [(history_form(subject), belief.history), (conflicts_form(subject), belief.conflicts)]
    forms += [(belief_form(subject), belief.table)] if compare_present else []
    held = [concerned.held(form, table, tables) for form, table in forms]
    with interpreted(session, few=concerned.are_few):
        told = statements(concerned.rows, ground.terms)
        told = told if concerned.keys is None else kept(told)
        history = periods(believed_moments(told, subject, step.rule), subject)
        fresh = [history, conflicts(told, subject, step.rule), history.where(IS_CURRENT)]
        with beside(session, lambda: _computed(_receipts(step, concerned.rows, told, ground))) as receipts:
            acts = all_settled([concerned.differing(rows, old, form) for rows, old, (form, _) in zip(fresh, held, forms, strict=False)])
            yield Judged(concerned.read, step, acts[0], acts[1], acts[2] if compare_present else None, receipts)


def _concerned(step: Step, ground: Ground) -> _Concerned:
    """Whom the step concerns: those somebody newly speaks of, all of a source that newly spoke of everything, or everybody."""
    evidence, in_time = ground.evidence, F.col(BATCH_SEQ) <= step.until
    new = evidence.where(in_time if step.since is None else in_time & (F.col(BATCH_SEQ) > step.since))
    new = new.select(BK, SK, SOURCE_SYSTEM, EVENT_TS, SNAPSHOT_TS, INGEST_TS)
    new = new if step.of_all else kept(new)  # counted and searched for, both from here
    found = new.agg(
        F.count(F.lit(1)).alias("read"),
        F.collect_set(F.when(F.col(BK).isNull(), F.col(SOURCE_SYSTEM))).alias("sweeping"),
        F.min(F.unix_micros(F.least(EVENT_TS, SNAPSHOT_TS))).alias("first"),
        F.max(F.unix_micros(INGEST_TS)).alias("heard"),
        sketched(F.col(SK)).alias("keys"),
    ).collect()[0]
    if step.of_all or found["read"] > FEW:
        return _Concerned(evidence.where(in_time), None, found["read"], None)
    spoken_of, near = new.where(F.col(BK).isNotNull()).select(SK), None
    if found["sweeping"]:
        of_theirs = in_time & F.col(BK).isNotNull() & F.col(SOURCE_SYSTEM).isin(*found["sweeping"])
        spoken_of = spoken_of.unionByName(evidence.where(of_theirs).select(SK))
    elif found["read"] <= FEW_KEYS:
        near = bitmaps(found["keys"])
    keys = kept(spoken_of.distinct())
    since = roughly(from_micros(found["first"]), from_micros(found["heard"])) if found["read"] else None
    # the search names no batch and no time, so that Spark has compiled it before; its few finds are sorted out by numbers
    rows = kept(_about(evidence, keys, near))
    rows = rows.unionByName(of_sources(evidence)) if ground.terms.swept else rows
    with interpreted(ground.tables.session, few=found["read"] <= FEW_TO_INTERPRET):
        rows = rows.where(in_time)
        if since is not None and not ground.terms.is_transaction:
            rows = heard_since(rows, ground.terms, since)
        return _Concerned(kept(rows), keys, found["read"], since, near)


def _about(rows: DataFrame, keys: DataFrame, near: Bitmaps | None) -> DataFrame:
    """The rows about these keys; where a sketch of them leaves few others, both sides are few and no broadcast is worth its job."""
    return about(rows, keys) if near is None else about(rows.where(may_be_among(SK, near)), keys, few=False)


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
