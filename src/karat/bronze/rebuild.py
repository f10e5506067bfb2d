"""A timeline made from its evidence again: compared with the held one, row for row, and written where it differs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from karat.bronze.advance import consumed_by
from karat.bronze.context import StageContext, prepared, remembered, stage_context
from karat.bronze.schema import SIGHTINGS, timeline_spec
from karat.bronze.timeline import timeline
from karat.config.resolved import Entity
from karat.lake.changes import replacing_keys
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.verification import MEANING, MOST_SHOWN, Verified, compared, readable
from karat.state.commits import Written
from karat.temporal.columns import ACTION, BATCH_SEQ, BK, EFFECTIVE_FROM, SK, SOURCE_SYSTEM, STATEMENT_HASH


@dataclass(frozen=True)
class Rebuilt:
    """A timeline as its evidence has it, and as it is held."""

    fresh: DataFrame
    held: DataFrame


def rebuilt(context: StageContext, batch: int | None = None) -> Rebuilt:
    """The timeline from all evidence up to a batch, beside the held one, both as they were when the stage began."""
    evidence = context.assertions()
    told = evidence if batch is None else evidence.where(F.col(BATCH_SEQ) <= batch)
    return Rebuilt(timeline(told, context.schema), context.versions())


def rebuild_timeline(entity: Entity, run: RunContext) -> Written:
    """The timeline as all evidence says, sightings included, in one commit: rows held twice, missing rows and rows too many are mended."""
    context = stage_context(entity, run)
    if not context.evidence.exists:
        return Written()
    context = prepared(context)
    found, spec = rebuilt(context), timeline_spec(context.schema)
    with materialized(compared(found.fresh, found.held, spec).select(SK).distinct()) as keys:
        if not keys.take(1):
            return Written()
        commit = context.run.commit(context.stage, context.timeline.next_number, batch=context.batch, **remembered(context.before))
        with materialized(found.fresh.join(keys, SK, "left_semi").select(*spec.columns)) as fresh:
            return context.tables.merge(replacing_keys(fresh, keys, spec), entity.timeline, commit)


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
