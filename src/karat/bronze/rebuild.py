"""A timeline compared with its evidence, and made from it again where it differs."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.context import StageContext, prepared, remembered, stage_context
from karat.bronze.schema import timeline_spec
from karat.bronze.timeline import timeline
from karat.config.resolved import Entity
from karat.lake.changes import replacing_keys
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.verification import compared
from karat.state.commits import Written
from karat.temporal.columns import BATCH_SEQ, SK


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
