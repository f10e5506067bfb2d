"""One silver table brought up to date: measure the batch, set it against the target, commit the difference with its watermark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable
from karat.curation.batch import admitted, all_of_these_entities, batch_rows, check_source, transformed, with_refusals
from karat.curation.changes import INSERT, REFUSE, state_changes, version_changes
from karat.curation.consumed import CONSUMED, consumption, is_consumed, noted
from karat.curation.placing import placed_changes
from karat.curation.quarantine import quarantine
from karat.curation.shape import business_columns
from karat.curation.target import curated_merge, held_rows, missing_in_target, prepare_target
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.outcome import Outcome
from karat.plan.stages import Curate
from karat.sources.lake import Bounds, Measure, measure, rows_between
from karat.state.commits import Checkpoint, Commit, Written
from karat.telemetry.events import Rows, Status
from karat.temporal.columns import ACTION, PK_HASH, REASON, col
from karat.temporal.hashing import hash_of
from karat.temporal.sketch import FEW_KEYS, may_be_among

SMALL_BATCH = 500_000
"""Up to here a batch is measured well enough to plan for: keys are broadcast and nothing is planned anew at run time."""
ROWS_PER_PARTITION = 100_000


def curate(stage: Curate, world: RunContext) -> Outcome:
    """Read above the watermark, commit what differs. Reading the same rows again commits nothing."""
    table, tables = stage.table, world.tables()
    previous = tables.checkpoint(table.target, stage.name)
    recorded = world.recorded_for(stage.name)
    before = watermark_of(previous, recorded.watermark)
    consuming = consumption(table, tables)
    note = noted(consuming, previous)
    if is_consumed(consuming, previous, recorded.consumed):
        return Outcome("unchanged", Rows(), before, before, previous, note)
    source = tables.read(table.source)
    check_source(source, table)
    bounds = Bounds(table.watermark, table.lookback, before)
    tables.session.conf.set("spark.sql.adaptive.enabled", "false")  # one row comes back: nothing to plan anew
    # A first load may be the whole source: too much to keep, and read only once more.
    with _kept(with_refusals(rows_between(source, bounds), table), wanted=before is not None) as incoming:
        size = measure(incoming, table.watermark, None if before is None else _known_key(source, table))
        after = max((mark for mark in (before, size.highest) if mark is not None), default=None)
        if size.rows == 0 and tables.exists(table.target):
            return Outcome("unchanged", Rows(), before, after, previous, note)
        batch = Batch(source, incoming.transform(rows_between, bounds.up_to(size.highest)), size, is_everything=before is None)
        commit = _commit(stage, world, previous, (before, after, size.rows), consuming)
        rows = _land(batch, table, tables, commit)
    committed = rows.inserted or rows.updated or rows.deleted
    status: Status = "succeeded" if committed or rows.quarantined else "unchanged"
    return Outcome(status, rows, before, after, previous, None if committed else note)


@dataclass(frozen=True)
class Batch:
    """What is to be brought in: the source it comes from, its rows above the watermark, and their measure."""

    source: DataFrame
    incoming: DataFrame
    size: Measure
    is_everything: bool
    """Whether nothing of the source lies below the watermark."""


def watermark_of(checkpoint: Checkpoint, recorded: datetime | None) -> datetime | None:
    """The watermark: what the target's own commits say, or the control table where that is further.

    The control table is further after batches that changed nothing. It counts only beside a target whose log speaks of
    a watermark, or is silent because it was cleaned up; a target made anew or set back starts from its own log alone.
    """
    said = checkpoint.position.get("watermark")
    committed = datetime.fromisoformat(str(said)) if said else None
    if checkpoint.set_back or (checkpoint.trusted and committed is None):
        return committed
    return max((mark for mark in (committed, recorded) if mark is not None), default=None)


def _land(batch: Batch, table: CuratedTable, tables: DeltaTables, commit: Commit) -> Rows:
    """Refused rows to quarantine, the others against the target; what differs in one commit."""
    _plan_for(batch.size, tables)
    refused = batch.incoming.where(F.col(REASON).isNotNull())
    quarantined = quarantine(refused, table, tables, commit) if batch.size.refused else 0
    rows = _comparable(batch, table, tables)
    missing = missing_in_target(rows.schema, table, tables)
    held = held_rows(rows.schema, table, tables)
    with _kept(_changes(rows, _near(rows, held, batch.size, table), table, batch.size)) as changes:
        acts = {row[ACTION]: row["count"] for row in changes.groupBy(ACTION).count().collect()}
        if acts.pop(REFUSE, 0):
            columns = (*business_columns(rows.columns, table), REASON)
            late = changes.where(F.col(ACTION) == REFUSE).select(*(col(name) for name in columns))
            quarantined += quarantine(late, table, tables, commit)
        written = Written()
        if acts or not tables.exists(table.target):  # a table that is declared is there, even while it is empty
            prepare_target(missing, table, tables, commit)
        if acts:
            merge = curated_merge(changes.where(F.col(ACTION) != REFUSE), rows.columns, table)
            # Where nothing is to be found again there is nothing to search for: an append is two jobs, a MERGE a dozen.
            write = tables.insert if acts.keys() == {INSERT} else tables.merge
            written = write(merge, table.target, commit)
    return Rows(batch.size.rows, 0, 0, quarantined, 0, written.inserted, written.updated, written.deleted)


def _comparable(batch: Batch, table: CuratedTable, tables: DeltaTables) -> DataFrame:
    """The rows to set against the target. Grain: see `batch_rows`."""
    incoming = batch.incoming
    if table.place_late and not batch.is_everything:
        everything = rows_between(batch.source, Bounds(table.watermark, table.lookback, None, batch.size.highest))
        few = batch.size.rows <= SMALL_BATCH
        incoming = with_refusals(all_of_these_entities(everything, admitted(incoming, table), table, few=few), table)
    view = admitted(incoming, table)
    return batch_rows(transformed(tables.session, view, table), view, table)


def _known_key(source: DataFrame, table: CuratedTable) -> Column | None:
    """The hash of a row's key where it is known before any query; late rows are placed among exactly their own entities."""
    return None if table.sql_file is not None or table.place_late else hash_of(table.entity_key, source.schema, table.hash)


def _near(rows: DataFrame, held: DataFrame, size: Measure, table: CuratedTable) -> DataFrame:
    """What the target holds about the entities of the batch; about few others where the batch was sketched."""
    if table.scd_type == 2 and not table.place_late:  # noqa: PLR2004  (SCD type 2)
        held = held.where(col(table.current) == F.lit(True))
    if size.keys and size.rows <= FEW_KEYS:
        return held.where(may_be_among(PK_HASH, size.keys))
    wanted = rows.select(PK_HASH)
    return held.join(F.broadcast(wanted) if size.rows <= SMALL_BATCH else wanted, PK_HASH, "left_semi")


def _changes(rows: DataFrame, near: DataFrame, table: CuratedTable, size: Measure) -> DataFrame:
    """The batch against what the target holds about its entities."""
    if table.place_late:
        return placed_changes(rows, near, table)
    # Few on both sides by now: a merge join in one partition is a stage, a second broadcast would be a job.
    near = near.hint("merge") if size.rows <= SMALL_BATCH else near
    return state_changes(rows, near, table) if table.scd_type == 1 else version_changes(rows, near, table)


def _plan_for(size: Measure, tables: DeltaTables) -> None:
    """The batch has been counted, so its plan needs no guessing: few partitions when small, Spark's own adaptation when large."""
    small = size.rows <= SMALL_BATCH
    tables.session.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    if small:
        tables.session.conf.set("spark.sql.shuffle.partitions", str(1 + size.rows // ROWS_PER_PARTITION))


def _commit(
    stage: Curate, world: RunContext, previous: Checkpoint, facts: tuple[datetime | None, datetime | None, int], consuming: str | None
) -> Commit:
    before, after, read = facts
    position: dict[str, str | int | None] = {
        "source": str(stage.table.source),
        CONSUMED: consuming,
        "watermark": after.isoformat() if after else None,
        "watermark_before": before.isoformat() if before else None,
        "read": read,
        "started_at": world.stamp.started_at.isoformat(),
        "books_before": world.recorded_for(stage.name).run_id,
    }
    return Commit(stage.name, previous.sequence + 1, world.stamp.run_id, world.config.hash, position)


@contextmanager
def _kept(rows: DataFrame, *, wanted: bool = True) -> Iterator[DataFrame]:
    """The rows computed once and held while they are needed; merely handed on when they are not wanted kept."""
    if wanted:
        rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield rows
    finally:
        if wanted:
            rows.unpersist()
