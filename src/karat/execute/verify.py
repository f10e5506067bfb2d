"""Timelines and beliefs made anew from all their evidence and set against the held ones, row for row."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.belief.load import judged_anew
from karat.bronze.timeline import timeline
from karat.config.resolved import Belief, Entity
from karat.execute.advance import Ground
from karat.execute.evidence import speakers, terms_of
from karat.execute.kept import kept
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.temporal.columns import ACTION, BK, EFFECTIVE_FROM, SK, SOURCE_SYSTEM, STATEMENT_HASH, VALID_FROM, col

MOST_SHOWN = 20
MEANING = {"insert": "missing in the table", "delete": "in the table, but not in the evidence", "update": "differs from the evidence"}


@dataclass(frozen=True)
class Verified:
    """Whether a timeline or a belief is what its evidence says; if not, the first differences."""

    entity: str
    equal: bool
    differences: tuple[Mapping[str, Any], ...] = ()
    counts: Mapping[str, int] | None = None


def verify(entity: Entity, tables: DeltaTables) -> Verified:
    """Rebuild from evidence and compare; reads everything, writes nothing."""
    if not tables.exists(entity.assertions):
        return Verified(entity.name, equal=True)
    ground = Ground(entity, terms_of(entity, tables, speakers(entity, tables)), tables)
    held = ground.held
    found = kept(ground.differences(timeline(ground.evidence, ground.terms), held))  # counted, then shown: rebuilt once
    counts = {MEANING[row[ACTION]]: row["count"] for row in found.groupBy(ACTION).count().collect()}
    if not counts:
        return Verified(entity.name, equal=True)
    first = _readable(found.orderBy(BK, EFFECTIVE_FROM, STATEMENT_HASH, ACTION).limit(MOST_SHOWN)).collect()
    keys = [row[SK] for row in first]
    stored = {_identity(row): row for row in _readable(held.where(F.col(SK).isin(keys))).collect()}
    return Verified(entity.name, equal=False, differences=tuple(_told(row, stored) for row in first), counts=counts)


def verify_belief(belief: Belief, world: RunContext) -> Verified:
    """The belief made anew from all evidence it rests on, and set against its tables; reads everything, writes nothing."""
    tables = world.tables()
    if not tables.exists(belief.history):
        return Verified(str(belief.table), equal=True)
    judged = judged_anew(belief, tables, world)
    if judged is None:
        return Verified(str(belief.table), equal=True)
    parts = {belief.history: judged.history, belief.table: judged.present, belief.conflicts: judged.conflicts}
    counts: Counter[str] = Counter()
    first: list[Mapping[str, Any]] = []
    for table, acts in parts.items():
        if acts is None or not acts.kinds:
            continue
        for row in acts.kinds:
            counts[f"{MEANING[row[ACTION]]} ({table})"] += row["rows"]
        since = F.col(VALID_FROM) if table == belief.history else F.lit(None)
        shown = acts.rows.select(ACTION, BK, since.cast("string").alias(VALID_FROM)).orderBy(BK, VALID_FROM).limit(MOST_SHOWN)
        first += [{"table": str(table), "what": MEANING[row[ACTION]], BK: row[BK], VALID_FROM: row[VALID_FROM]} for row in shown.collect()]
    return Verified(str(belief.table), equal=not counts, differences=tuple(first[:MOST_SHOWN]), counts=counts or None)


def _readable(rows: DataFrame) -> DataFrame:
    """Times as text: the first year of the calendar is more than Python's own conversion can take."""
    is_time = {field.name for field in rows.schema if isinstance(field.dataType, T.TimestampType)}
    return rows.select(*(col(name).cast("string").alias(name) if name in is_time else col(name) for name in rows.columns))


def _told(row: Row, stored: Mapping[tuple[Any, ...], Row]) -> Mapping[str, Any]:
    """One difference: which version, what kind, and for a changed one which columns."""
    told = {"what": MEANING[row[ACTION]], "bk": row[BK], "source_system": row[SOURCE_SYSTEM], "effective_from": row[EFFECTIVE_FROM]}
    held = stored.get(_identity(row))
    if row[ACTION] == "update" and held is not None:
        fields = held.asDict()
        told["columns"] = {name: {"held": fields[name], "evidence": row[name]} for name in fields if fields[name] != row[name]}
    return told


def _identity(row: Row) -> tuple[Any, ...]:
    return bytes(row[SK]), bytes(row[STATEMENT_HASH]), row[EFFECTIVE_FROM]
