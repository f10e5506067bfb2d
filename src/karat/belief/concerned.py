"""Whom a step of a belief concerns: those somebody newly speaks of; what was ever said about them, and what is held of them."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.belief.candidates import Subject
from karat.bronze.overtaken import heard_since
from karat.bronze.shape import assertions_schema
from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.config.rules import Rule
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.picked import not_before, of_keys, picked
from karat.execute.spoken import Spoken
from karat.lake.delta import DeltaTables
from karat.temporal.columns import (
    ATTR_HASH,
    BATCH_SEQ,
    BK,
    ENTITY_TYPE,
    EVENT_TS,
    EXTRA,
    EXTRACTION_VERSION,
    HASH_VERSION,
    INHERITED,
    PAYLOAD,
    SK,
    SNAPSHOT_TS,
    SOURCE_PATH,
    SOURCE_SYSTEM,
    SOURCE_TYPE,
    TIME_BASIS,
    VALID_TO,
    col,
)
from karat.temporal.difference import Form, acts_between, only_inserts
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, moment, roughly
from karat.temporal.sketch import FEW_KEYS, Bitmaps, bitmaps, may_be_among, sketched
from karat.temporal.sql import every

FEW = 500_000
"""Statements whose keys can be broadcast."""
FEW_TO_INTERPRET = 20_000
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
    spoken: Spoken | None = None
    """What the step is about, where the same run has just landed it."""

    @property
    def of_all(self) -> bool:
        """Whether everybody is judged anew."""
        return self.since is None or self.former != self.rule

    @property
    def may_restate(self) -> bool:
        """Whether it may change what was believed of the past: by a new rule, or because something new may speak of it."""
        if self.since is None or self.former is None:
            return False
        return self.former != self.rule or self.spoken is None or self.spoken.looks_back


@dataclass(frozen=True)
class Ground:
    """What a step is made on: the belief, how its evidence is read, and the tables."""

    belief: Belief
    terms: EntitySchema
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
class Concerned:
    """Whom a step concerns, and how much about them is new."""

    keys: DataFrame | None
    """None: everybody."""
    read: int
    since: datetime | None
    """Nothing new speaks of a time before this: what is believed of it stays. None: everything is judged anew."""
    near: Bitmaps | None = None
    """A sketch of the keys, where they are few."""
    heard_from: datetime | None = None
    """Nothing said of a time before this can be heard about them any more; None: everything may be."""
    named: tuple[bytes, ...] | None = None
    """The keys themselves, where they are few and were named."""
    reached: datetime | None = None
    """The latest time anybody has spoken of: searches by Spark are bounded as seen from there."""

    @property
    def are_few(self) -> bool:
        """Whether compiling would take longer than it saves."""
        return self.keys is not None and self.read <= FEW_TO_INTERPRET

    def held(self, form: Form, table: TableName, tables: DeltaTables) -> DataFrame | None:
        """The held rows that may differ; None where the table has just been made."""
        if tables.version(table) == 0:
            return None
        found = self._picked(form, table, tables)
        if found is not None:
            return found
        since = self.since and roughly(self.since, self.reached)
        everything = tables.read(table)
        rows = _as_compared(_recent(everything, form, since), form, everything.schema)
        # little of much: the search is one thing, what is made of its finds another
        return rows if self.keys is None else _recent(kept(_about(rows, self.keys, self.near), now=True), form, self.since)

    def _picked(self, form: Form, table: TableName, tables: DeltaTables) -> DataFrame | None:
        """The same without a search by Spark, where that is possible."""
        if not self.named:
            return None
        ends = [] if self.since is None or form.start is None else [f"{VALID_TO} IS NULL OR {not_before(VALID_TO, self.since)}"]
        schema = tables.schema(table)
        read = T.StructType([schema[name] for name in form.columns if name not in form.told])
        found = picked(tables, table, every([of_keys(self.named), *ends]), read)
        return None if found is None else _as_compared(found, form, schema)

    def differing(self, fresh: DataFrame, held: DataFrame | None, form: Form) -> tuple[DataFrame, Form]:
        """What is to be done to the held rows."""
        if held is None:
            return only_inserts(fresh, form), form
        recent = _recent(fresh, form, self.since).select(*(col(name) for name in form.columns))
        return acts_between(recent, held, form, form.told, self.since), form


def subject_of(terms: EntitySchema) -> Subject:
    """What a belief can be about, given its evidence."""
    return Subject(tuple(terms.key), terms.attributes, terms.sources)


def concerned_by(step: Step, ground: Ground) -> Concerned:
    """Those somebody newly speaks of, all of a source that newly spoke of everything, or everybody."""
    if step.spoken is not None and not step.of_all:
        told = step.spoken
        return Concerned(told.keys, told.count, told.since, told.near, told.heard_from(), told.named, told.reached)
    evidence = ground.evidence
    new = evidence.where(_in_time(step) if step.since is None else _in_time(step) & (F.col(BATCH_SEQ) > step.since))
    new = new.select(BK, SK, SOURCE_SYSTEM, EVENT_TS, SNAPSHOT_TS)
    new = new if step.of_all else kept(new)  # counted and searched for, both from here
    found = new.agg(
        F.count(F.lit(1)).alias("read"),
        F.collect_set(F.when(F.col(BK).isNull(), F.col(SOURCE_SYSTEM))).alias("sweeping"),
        F.min(F.unix_micros(F.least(EVENT_TS, SNAPSHOT_TS))).alias("first"),
        F.max(F.unix_micros(EVENT_TS)).alias("last"),
        sketched(F.col(SK)).alias("keys"),
    ).collect()[0]
    if step.of_all or found["read"] > FEW:
        return Concerned(None, found["read"], None)
    spoken_of, near = new.where(F.col(BK).isNotNull()).select(SK), None
    if found["sweeping"]:
        of_theirs = _in_time(step) & F.col(BK).isNotNull() & F.col(SOURCE_SYSTEM).isin(*found["sweeping"])
        spoken_of = spoken_of.unionByName(evidence.where(of_theirs).select(SK))
    elif found["read"] <= FEW_KEYS:
        near = bitmaps(found["keys"])
    first, last = (from_micros(found[name]) if found["read"] else None for name in ("first", "last"))
    return Concerned(kept(spoken_of.distinct()), found["read"], first, near, reached=last)


def said_about(concerned: Concerned, step: Step, ground: Ground) -> DataFrame:
    """What of the evidence about them can matter from the first new statement on. Grain: as the evidence."""
    if concerned.keys is None:
        return ground.evidence.where(_in_time(step))
    rows = _evidence_picked(concerned, ground)
    if rows is None:
        evidence = ground.evidence
        # the search names no batch and times only roughly, so that Spark has compiled it before; its few finds are sorted out by numbers
        bound = concerned.heard_from and roughly(concerned.heard_from, concerned.reached)
        searched = evidence.where(F.col(EVENT_TS) >= moment(bound)) if bound else evidence
        rows = kept(_about(searched, concerned.keys, concerned.near))
    rows = rows.unionByName(of_sources(ground.evidence)) if ground.terms.swept else rows
    with interpreted(ground.tables.session, few=concerned.are_few):
        rows = rows.where(_in_time(step))
        if concerned.since is not None and not ground.terms.is_transaction:
            rows = heard_since(rows, ground.terms, concerned.since)
        return kept(rows)


def _evidence_picked(concerned: Concerned, ground: Ground) -> DataFrame | None:
    """What was ever said about them that can be heard, where it can be picked out."""
    if not concerned.named:
        return None
    bounds = [of_keys(concerned.named), f"{TIME_BASIS} IS NOT NULL"]
    bounds += [] if concerned.heard_from is None else [not_before(EVENT_TS, concerned.heard_from)]
    columns = [field for field in assertions_schema(ground.terms) if field.name not in BESIDE_THE_POINT]
    return picked(ground.tables, ground.belief.entity.assertions, every(bounds), T.StructType(columns))


def _as_compared(held: DataFrame, form: Form, schema: T.StructType) -> DataFrame:
    """Held rows without what another column tells; that stays empty, and so does what the table was made without. Grain: unchanged."""
    types = {field.name: field.dataType for field in schema}
    read = types.keys() - set(form.told)
    return held.select(*(col(name) if name in read else F.lit(None).cast(types.get(name, "void")).alias(name) for name in form.columns))


def _recent(rows: DataFrame, form: Form, since: datetime | None) -> DataFrame:
    """The rows whose period ends no earlier than anything new; the literal keeps files of older ones unopened."""
    if since is None or form.start is None:
        return rows
    return rows.where(F.col(VALID_TO).isNull() | (F.col(VALID_TO) >= moment(since)))


def _in_time(step: Step) -> Column:
    return F.col(BATCH_SEQ) <= step.until


def _about(rows: DataFrame, keys: DataFrame, near: Bitmaps | None) -> DataFrame:
    """The rows about these keys; where a sketch of them leaves few others, both sides are few and no broadcast is worth its job."""
    return about(rows, keys) if near is None else about(rows.where(may_be_among(SK, near)), keys, few=False)
