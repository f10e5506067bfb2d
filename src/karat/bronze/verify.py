"""A timeline made from its evidence again and compared with the held one, row for row."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

from karat.bronze.advance import consumed_by
from karat.bronze.context import prepared, stage_context
from karat.bronze.rebuild import rebuilt
from karat.bronze.schema import SIGHTINGS, timeline_spec
from karat.config.resolved import Entity
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.verification import MEANING, MOST_SHOWN, Verified, compared, readable
from karat.temporal.columns import ACTION, BK, EFFECTIVE_FROM, SK, SOURCE_SYSTEM, STATEMENT_HASH


def verify(entity: Entity, run: RunContext) -> Verified:
    """Compare the timeline with the evidence it has consumed; reads everything, changes nothing."""
    context = stage_context(entity, run)
    if not context.evidence.exists:
        return Verified(entity.name, equal=True)
    context = prepared(context)
    # a run may be at work: what the timeline has not consumed yet is no difference
    found = rebuilt(context, consumed_by(context).batch or None)
    spec, ignored = timeline_spec(context.schema), SIGHTINGS if context.is_lazy else ()
    with materialized(compared(found.fresh, found.held, spec, ignored)) as differences:
        counts = {MEANING[row[ACTION]]: row["count"] for row in differences.groupBy(ACTION).count().collect()}
        if not counts:
            return Verified(entity.name, equal=True)
        first = readable(differences.orderBy(BK, EFFECTIVE_FROM, STATEMENT_HASH, ACTION).limit(MOST_SHOWN)).collect()
        keys = [row[SK] for row in first]
        stored = {_identity(row): row for row in readable(found.held.where(F.col(SK).isin(keys))).collect()}
        return Verified(entity.name, equal=False, differences=tuple(_explained(row, stored) for row in first), counts=counts)


def _explained(row: Row, stored: Mapping[tuple[Any, ...], Row]) -> Mapping[str, Any]:
    """One difference: which version, what kind, and for a changed one which columns."""
    what = MEANING[row[ACTION]]
    found = {"what": what, "bk": row[BK], "source_system": row[SOURCE_SYSTEM], "effective_from": row[EFFECTIVE_FROM]}
    held = stored.get(_identity(row))
    if row[ACTION] == "update" and held is not None:
        fields = held.asDict()
        found["columns"] = {name: {"held": fields[name], "evidence": row[name]} for name in fields if fields[name] != row[name]}
    return found


def _identity(row: Row) -> tuple[Any, ...]:
    return bytes(row[SK]), bytes(row[STATEMENT_HASH]), row[EFFECTIVE_FROM]
