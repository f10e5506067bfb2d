"""What was believed of a whole table at a pair of times: when it was true, and when it was known.

The history has the answer for whoever nothing was said about since then, neither after it became known nor inside the period that
is shown; everybody else, and everybody where the history was written by another rule, is judged from the evidence.

    history    Active [1, 4)     Closed [4, on)
    evidence   CRM Active @1     CRM Active @2      CRM Closed @4
    asked of @1: somebody spoke inside [1, 4) after that, so the history may rest on another word      of @2, @3 or @4: as it stands
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.belief.candidates import Subject
from karat.belief.concerned import FEW, subject_of
from karat.belief.load import evidence_terms
from karat.belief.resolution import as_of, belief_columns
from karat.belief.schema import belief_schema
from karat.bronze.overtaken import not_overtaken
from karat.bronze.timeline import statements
from karat.config.resolved import Belief
from karat.config.rules import Rule, in_force
from karat.errors import SourceUnavailable
from karat.execute.evidence import about
from karat.execute.kept import kept
from karat.execute.pace import planned_once
from karat.lake.delta import DeltaTables
from karat.state.rules_used import check_unedited
from karat.temporal.columns import BATCH_SEQ, BK, EVENT_TS, INGEST_TS, SK, TIME_BASIS, VALID_FROM, VALID_TO, col
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment

_NEW = "__karat_new"


@dataclass(frozen=True)
class Question:
    """What is asked of which belief, under the rule that was in force."""

    belief: Belief
    terms: EntitySchema
    rule: Rule
    known_at: datetime
    valid_at: datetime | None
    """None: the end of all time."""

    @property
    def subject(self) -> Subject:
        """Whom the belief is about."""
        return subject_of(self.terms)


def believed_as_of(belief: Belief, tables: DeltaTables, known_at: datetime, valid_at: datetime | None) -> DataFrame:
    """The belief at the two times; by default at the end of all time. Grain: one row per entity in the belief."""
    entity = belief.entity
    if not tables.exists(entity.assertions):
        message = f"there is no evidence about {entity.name} yet"
        raise SourceUnavailable(message, remedy="run the project first")
    check_unedited(belief, tables.checkpoint(belief.history, str(belief.table)).position)
    terms = evidence_terms(entity, tables, tables.checkpoint(entity.assertions, str(entity.timeline)).position)
    rule = in_force(belief.rules, known_at)
    if rule is None:  # before the first rule nothing was believed
        return tables.session.createDataFrame([], belief_schema(dict(terms.key), subject_of(terms)))
    return answered(Question(belief, terms, rule, known_at, valid_at), tables)


def answered(asked: Question, tables: DeltaTables) -> DataFrame:
    """From the history as far as it tells, from the evidence otherwise."""
    evidence = tables.read(asked.belief.entity.assertions).where(F.col(TIME_BASIS).isNotNull())
    known = evidence.where(F.col(INGEST_TS) <= moment(asked.known_at))
    until = _told_until(asked, tables)
    if until is None:
        return _judged(known, asked)
    told = _shown(tables.read(asked.belief.history), asked.valid_at)
    with planned_once(evidence.sparkSession):
        doubtful = kept(_doubtful(evidence, told, until, asked))
        count = doubtful.count()
    columns = [col(name) for name in belief_columns(asked.subject)]
    if not count:
        return told.select(*columns)
    certain = told.join(F.broadcast(doubtful) if count <= FEW else doubtful, SK, "left_anti")
    return certain.select(*columns).unionByName(_judged(about(known, doubtful, few=count <= FEW), asked))


def _told_until(asked: Question, tables: DeltaTables) -> int | None:
    """The batch of this very evidence up to which the history tells the belief under the rule; None when it does not."""
    belief, terms = asked.belief, asked.terms
    position = tables.checkpoint(belief.history, str(belief.table)).position
    if terms.swept or terms.shown_apart or "batch" not in position:  # a statement about all keys, or about two times, is not looked for
        return None
    is_same = position["evidence"] == tables.made_at(belief.entity.assertions) and int(position["rule"]) == asked.rule.version
    has_all = {*belief_columns(asked.subject)} <= {*tables.read(belief.history).columns}
    return int(position["batch"]) if is_same and has_all else None


def _shown(held: DataFrame, valid_at: datetime | None) -> DataFrame:
    """The periods in which the time lies. Grain: one row per entity in the belief."""
    if valid_at is None:
        return held.where(F.col(VALID_TO).isNull())
    at = moment(valid_at)
    return held.where((F.col(VALID_FROM) <= at) & (F.col(VALID_TO).isNull() | (F.col(VALID_TO) > at)))


def _doubtful(evidence: DataFrame, told: DataFrame, until: int, asked: Question) -> DataFrame:
    """Who was spoken about after all that counts, or later inside the period that is shown. Grain: one row per key."""
    is_new = (F.col(BATCH_SEQ) > until) | (F.col(INGEST_TS) > moment(asked.known_at))
    is_later = F.lit(False) if asked.valid_at is None else F.col(EVENT_TS) > moment(asked.valid_at)
    said = evidence.where(F.col(BK).isNotNull() & (is_new | is_later)).select(SK, EVENT_TS, is_new.alias(_NEW))
    inside = F.col(VALID_FROM).isNotNull() & (F.col(VALID_TO).isNull() | (F.col(EVENT_TS) < F.col(VALID_TO)))
    beside = said.join(told.select(SK, VALID_FROM, VALID_TO), SK, "left")
    return beside.where(F.col(_NEW) | inside).select(SK).distinct()


def _judged(known: DataFrame, asked: Question) -> DataFrame:
    """The belief from the evidence alone."""
    # brought together by key once, for all that follows; else copies are looked for under another partitioning, and all is moved twice
    together = known.repartition(F.col(BK)).transform(not_overtaken, asked.terms, asked.valid_at)
    return as_of(statements(together, asked.terms), asked.subject, asked.rule, asked.valid_at)
