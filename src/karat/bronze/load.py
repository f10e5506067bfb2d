"""One entity brought up to date: what its feeds say joins the evidence in one commit, then the timeline follows in another.

state       both tables' logs are read once; everything is committed with the numbers read there
catch up    a timeline that is behind its evidence follows first
batch       feeds → gate → keys and hashes, computed once and counted
evidence    refused rows to quarantine; what is left unsaid filled in; one commit with the feeds' positions
timeline    what the batch changes, one commit
"""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.advance import catch_up
from karat.bronze.batch_stats import BatchStats, batch_stats
from karat.bronze.concerned import concerned_by
from karat.bronze.context import StageContext, position_after, prepared, stage_context
from karat.bronze.feeds import News, read_feeds
from karat.bronze.identity import HASH_FORMAT, with_identity
from karat.bronze.quarantine import keep_refused
from karat.bronze.snapshots import CompleteSnapshot, complete_snapshots, completeness_statements, without_suspicious
from karat.bronze.unsaid import with_unsaid_filled_in
from karat.contract.columns import GATE, KIND
from karat.contract.drift import drift_aggregates, drift_found
from karat.errors import InternalError
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.outcome import Outcome
from karat.plan.stages import Land
from karat.state.commits import Written
from karat.telemetry.events import Rows, Status
from karat.temporal.columns import BATCH_SEQ, ENTITY_TYPE, FEED, HASH_VERSION, INGEST_TS, RUN_ID
from karat.temporal.moments import moment


def load(stage: Land, run: RunContext) -> Outcome:
    """Let the timeline catch up, read what is new, append it to the evidence, and let the timeline follow."""
    context = stage_context(stage.entity, run)
    if context.evidence.exists:
        context = prepared(context)
    context, caught_up = catch_up(context)
    news = read_feeds(context)
    if news.rows is None:
        status: Status = "unchanged" if caught_up == Written() else "succeeded"
        return news.concluded(Outcome(status, Rows(**_changed(caught_up)), notes=news.notes))
    if not context.evidence.exists:
        context = prepared(context)
    with materialized(with_identity(news.rows, context.schema)) as batch:
        rows, notes, news = load_batch(without_suspicious(batch, context), news, context)
    return news.concluded(Outcome("succeeded", rows, notes=(*news.notes, *notes)))


def load_batch(batch: DataFrame, news: News, context: StageContext) -> tuple[Rows, tuple[str, ...], News]:
    """Refused rows to quarantine, the others to the evidence and on to the timeline.

    Returns the account, in which every row read is there; what an operator should hear although nothing failed; and the news without
    the feeds whose drift policy is to fail and whose rows drifted.
    """
    watched = {**context.progress.counted(), **drift_aggregates(context.entity)}
    stats = batch_stats(batch, context.schema, watched)
    drift = drift_found(context.entity, stats.watched)
    if drift.failures:
        news = news.without(drift.failures)
        if context.is_replay or news.rows is None:
            return Rows(), drift.notes, news
        batch = batch.where(~F.col(FEED).isin(*drift.failed_feeds))
        stats = batch_stats(batch, context.schema, watched)
    empty = [each for each in news.batches if each.may_be_empty_snapshot]
    if (stats.refused or empty) and not context.is_replay:  # what a replay refuses is on record already
        keep_refused(batch, empty, context)
    complete = complete_snapshots(batch, context.entity)
    admitted = _admitted(batch, complete, context)
    before = replace(context.before, shows_apart=context.before.shows_apart | stats.shows_apart)
    with concerned_by(admitted, before, context) as concerned:
        position = position_after(stats, concerned.new, news.entries(context.position), context)
        rows = with_unsaid_filled_in(admitted, stats, concerned, context)
        landed = context.tables.append(rows, context.entity.assertions, context.commit(**position)).inserted - len(complete)
        _check_balance(stats, landed)
        _, followed = catch_up(context.refreshed(), concerned)
    counts = Rows(stats.read, landed, stats.copies, stats.refused, stats.ignored, **_changed(followed))
    return counts, (*drift.notes, *context.progress.notes(stats.watched)), news


def _admitted(batch: DataFrame, complete: Sequence[CompleteSnapshot], context: StageContext) -> DataFrame:
    """The admitted rows, and the statements that snapshots were complete, with when they came."""
    admitted = batch.where(F.col(KIND) == "row")
    if complete:
        statements = completeness_statements(complete, batch, context.entity)
        admitted = admitted.unionByName(with_identity(statements, context.schema))
    stamp = {
        INGEST_TS: moment(context.run.stamp.started_at),
        RUN_ID: F.lit(context.run.stamp.run_id),
        BATCH_SEQ: F.lit(context.evidence.next_number),
        ENTITY_TYPE: F.lit(context.entity.declared.type),
        HASH_VERSION: F.lit(HASH_FORMAT),
    }
    return admitted.drop(*GATE).withColumns(stamp)


def _check_balance(stats: BatchStats, landed: int) -> None:
    """Every row that was read landed, was a copy, was refused or was ignored; otherwise something was lost, and that is said."""
    if landed != stats.distinct:
        counts = f"landed {landed}, counted {stats.distinct} of {stats.read} read"
        message = f"the counts of this batch do not balance: {counts}"
        raise InternalError(message, remedy="report this; `karat verify` tells whether the timeline agrees with the evidence")


def _changed(written: Written) -> dict[str, int]:
    return {"inserted": written.inserted, "updated": written.updated, "deleted": written.deleted}
