"""What was believed of a whole table at a pair of times: when it was true, and when it was known."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.overtaken import not_overtaken
from karat.bronze.timeline import statements
from karat.config.resolved import Belief
from karat.config.rules import in_force
from karat.errors import SourceUnavailable
from karat.execute.believe import evidence_terms
from karat.execute.delta import DeltaTables
from karat.silver.belief import as_of
from karat.silver.belief_shape import belief_schema
from karat.silver.words import Subject
from karat.state.rules_used import check_unedited
from karat.temporal.columns import BK, INGEST_TS, TIME_BASIS
from karat.temporal.moments import moment


def believed_as_of(belief: Belief, tables: DeltaTables, known_at: datetime, valid_at: datetime | None) -> DataFrame:
    """The belief at the two times, from the evidence; by default at the end of all time. Grain: one row per entity in the belief."""
    entity = belief.entity
    if not tables.exists(entity.assertions):
        message = f"there is no evidence about {entity.name} yet"
        raise SourceUnavailable(message, remedy="run the project first")
    check_unedited(belief, tables.checkpoint(belief.history, str(belief.table)).position)
    terms = evidence_terms(entity, tables, tables.checkpoint(entity.assertions, str(entity.timeline)).position)
    subject = Subject(tuple(terms.key), terms.attributes, terms.sources)
    rule = in_force(belief.rules, known_at)
    if rule is None:  # before the first rule nothing was believed
        return tables.session.createDataFrame([], belief_schema(dict(terms.key), subject))
    known = tables.read(entity.assertions).where(F.col(TIME_BASIS).isNotNull() & (F.col(INGEST_TS) <= moment(known_at)))
    # brought together by key once, for all that follows; else copies are looked for under another partitioning, and all is moved twice
    together = known.repartition(F.col(BK)).transform(not_overtaken, terms, valid_at)
    return as_of(statements(together, terms), subject, rule, valid_at)
