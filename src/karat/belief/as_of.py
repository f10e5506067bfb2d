"""What was believed of a whole table at a pair of times: when it was true, and when it was known.

The history has the answer for entities that nothing was said about since then, neither after it became known nor inside the
period that is shown. All others, and all where the history was written by another rule, are resolved from the evidence.

    history    Active [1, 4)     Closed [4, on)
    evidence   CRM Active @1     CRM Active @2      CRM Closed @4
    asked of @1: something was said inside [1, 4) after that, so the history may rest on another statement
    asked of @2, @3 or @4: as it stands
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.belief.relevance import relevant_at
from karat.belief.resolution import as_of, belief_columns
from karat.belief.schema import belief_schema
from karat.config.resolved import Belief
from karat.config.rules import Rule, in_force
from karat.errors import SourceUnavailable
from karat.lake.delta import DeltaTables
from karat.lake.evidence import entity_schema, evidence_of
from karat.lake.tables import TableState
from karat.state.rules_used import check_unedited
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment
from karat.temporal.statements import statements

_NEW: Final = "__karat_new"


@dataclass(frozen=True)
class Question:
    """What is asked of which belief, under the rule that was in force, and the tables as they were then."""

    belief: Belief
    schema: EntitySchema
    rule: Rule
    known_at: datetime
    valid_at: datetime | None
    """None: the end of all time."""
    evidence: TableState
    history: TableState

    @property
    def has_source_level(self) -> bool:
        """Whether a source ever spoke of everything it has, or a snapshot showed rows of another time than its own."""
        position = self.evidence.checkpoint.position
        return bool(position.get("sweeps")) or bool(position.get("apart"))


def believed_as_of(belief: Belief, tables: DeltaTables, known_at: datetime, valid_at: datetime | None) -> DataFrame:
    """The belief at the two times; by default at the end of all time. Grain: one row per entity in the belief."""
    entity = belief.entity
    evidence = evidence_of(entity, tables)
    if not evidence.exists:
        message = f"there is no evidence about {entity.name} yet"
        raise SourceUnavailable(message, remedy="run the project first")
    history = tables.state(belief.history, str(belief.table))
    check_unedited(belief, history.checkpoint.position)
    schema = entity_schema(entity, evidence, tables)
    rule = in_force(belief.rules, known_at)
    if rule is None:  # before the first rule nothing was believed
        return tables.session.createDataFrame([], belief_schema(schema))
    return _answered(Question(belief, schema, rule, known_at, valid_at, evidence, history), tables)


def _answered(asked: Question, tables: DeltaTables) -> DataFrame:
    """From the history as far as it tells, from the evidence otherwise."""
    evidence = tables.read(asked.belief.entity.assertions, asked.evidence.version).where(F.col(c.TIME_BASIS).isNotNull())
    known = evidence.where(F.col(c.INGEST_TS) <= moment(asked.known_at))
    until = _tells_until(asked, tables)
    if until is None:
        return _resolved(known, asked)
    held = _shown(tables.read(asked.belief.history, asked.history.version), asked.valid_at)
    doubtful = _doubtful(evidence, held, until, asked)
    certain = held.join(doubtful, c.BK, "left_anti").select(*map(c.col, belief_columns(asked.schema)))
    return certain.unionByName(_resolved(known.join(doubtful, c.BK, "left_semi"), asked))


def _tells_until(asked: Question, tables: DeltaTables) -> int | None:
    """The batch of this very evidence up to which the history tells the belief under the rule; None when it does not."""
    position = asked.history.checkpoint.position
    # a statement about all keys, or about two times, is not looked for
    if asked.has_source_level or "batch" not in position or int(position["rule"]) != asked.rule.version:
        return None
    is_same = position.get("evidence") == tables.table_id(asked.belief.entity.assertions)
    has_all = {*belief_columns(asked.schema)} <= {*tables.read(asked.belief.history, asked.history.version).columns}
    return int(position["batch"]) if is_same and has_all else None


def _shown(held: DataFrame, valid_at: datetime | None) -> DataFrame:
    """The periods in which the time lies. Grain: one row per entity in the belief."""
    if valid_at is None:
        return held.where(F.col(c.VALID_TO).isNull())
    at = moment(valid_at)
    return held.where((F.col(c.VALID_FROM) <= at) & (F.col(c.VALID_TO).isNull() | (F.col(c.VALID_TO) > at)))


def _doubtful(evidence: DataFrame, held: DataFrame, until: int, asked: Question) -> DataFrame:
    """The keys with statements after all that counts, or later inside the period that is shown. Grain: one row per key."""
    is_new = (F.col(c.BATCH_SEQ) > until) | (F.col(c.INGEST_TS) > moment(asked.known_at))
    is_later = F.lit(False) if asked.valid_at is None else F.col(c.EVENT_TS) > moment(asked.valid_at)
    said = evidence.where(F.col(c.BK).isNotNull() & (is_new | is_later)).select(c.BK, c.EVENT_TS, is_new.alias(_NEW))
    inside = F.col(c.VALID_FROM).isNotNull() & (F.col(c.VALID_TO).isNull() | (F.col(c.EVENT_TS) < F.col(c.VALID_TO)))
    compared = said.join(held.select(c.BK, c.VALID_FROM, c.VALID_TO), c.BK, "left")
    return compared.where(F.col(_NEW) | inside).select(c.BK).distinct()


def _resolved(known: DataFrame, asked: Question) -> DataFrame:
    """The belief from the evidence alone. Grain: one row per entity in the belief."""
    relevant = known.transform(relevant_at, asked.schema, asked.valid_at)
    ordered = statements(relevant, asked.schema, source_level=asked.has_source_level)
    return as_of(ordered, asked.schema, asked.rule, asked.valid_at)
