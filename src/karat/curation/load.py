"""One silver table brought up to date: read its state, measure the batch, compare it with the target, commit the difference.

The target's state is read once, when the stage begins. Every later read of the target is pinned to that version, and the
commit carries the number that follows it: where another run was faster, Delta refuses or skips the write, and the stage
starts again from what is there then.
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable
from karat.curation.batch import admitted, all_rows_of_these_keys, batch_rows, check_source, transformed, with_refusals
from karat.curation.changes import INSERT, REFUSE, state_changes, version_changes
from karat.curation.hash_columns import business_columns
from karat.curation.late_arriving import changes_with_late_rows
from karat.curation.quarantine import quarantine
from karat.curation.source_version import CONSUMED, SourceVersion, control_note, is_up_to_date, source_version
from karat.curation.target import curated_merge, held_rows, missing_in_target, prepare_target
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.materialized import materialized
from karat.lake.outcome import Outcome
from karat.lake.tables import TableState
from karat.plan.stages import Curate
from karat.sources.lake import Bounds, Measure, measure, rows_between
from karat.state.commits import Checkpoint, Commit, Written
from karat.telemetry.events import Rows, Status
from karat.temporal.columns import ACTION, PK_HASH, REASON, col

SCD2 = 2


def curate(stage: Curate, context: RunContext) -> Outcome:
    """Read above the watermark, commit what differs. Reading the same rows again commits nothing."""
    table, tables = stage.table, context.tables()
    target = tables.state(table.target, stage.name)
    previous, recorded = target.checkpoint, context.control_entry(stage.name)
    before = watermark_of(previous, recorded.watermark)
    version = source_version(table, tables)
    note = control_note(version, previous)
    if is_up_to_date(version, previous, recorded.consumed):
        return Outcome("unchanged", Rows(), before, before, previous, note)
    source = tables.read(table.source, None if version is None else version.number)
    check_source(source, table)
    bounds = Bounds(table.watermark, table.lookback, before)
    with materialized(with_refusals(rows_between(source, bounds), table)) as incoming:
        size = measure(incoming, table.watermark)
        after = max((mark for mark in (before, size.highest) if mark is not None), default=None)
        if size.rows == 0 and target.exists:
            return Outcome("unchanged", Rows(), before, after, previous, note)
        batch = Batch(source, incoming, size, is_everything=before is None)
        commit = _commit(stage, context, target, Progress(before, after, size.rows, version))
        rows = _load(batch, table, target, tables, commit)
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


@dataclass(frozen=True)
class Progress:
    """How far a batch brings its table."""

    before: datetime | None
    after: datetime | None
    read: int
    version: SourceVersion | None


def watermark_of(checkpoint: Checkpoint, recorded: datetime | None) -> datetime | None:
    """The watermark: what the target's own commits say, or the control table where that is further.

    The control table is further after batches that changed nothing. It counts only for a target whose log tells of
    a watermark, or is silent because it was cleaned up; a target made anew or set back starts from its own log alone.
    """
    said = checkpoint.position.get("watermark")
    committed = datetime.fromisoformat(str(said)) if said else None
    if checkpoint.set_back or (checkpoint.trusted and committed is None):
        return committed
    return max((mark for mark in (committed, recorded) if mark is not None), default=None)


def _load(batch: Batch, table: CuratedTable, target: TableState, tables: DeltaTables, commit: Commit) -> Rows:
    """Refused rows to quarantine, the others compared with the target; what differs in one commit."""
    refused = batch.incoming.where(F.col(REASON).isNotNull())
    quarantined = quarantine(refused, table, tables, commit) if batch.size.refused else 0
    rows = _comparable(batch, table, tables)
    missing = missing_in_target(rows.schema, table, target, tables)
    held = held_rows(rows.schema, table, target, tables)
    with materialized(_changes(rows, held, table)) as changes:
        counts = {row[ACTION]: row["count"] for row in changes.groupBy(ACTION).count().collect()}
        if counts.pop(REFUSE, 0):
            columns = (*business_columns(rows.columns, table), REASON)
            late = changes.where(F.col(ACTION) == REFUSE).select(*(col(name) for name in columns))
            quarantined += quarantine(late, table, tables, commit)
        written = Written()
        if counts or not target.exists:  # a table that is declared is there, even while it is empty
            prepare_target(missing, table, tables, commit)
        if counts:
            merge = curated_merge(changes.where(F.col(ACTION) != REFUSE), rows.columns, table)
            # Where nothing is to be found again there is nothing to search for: an append is two jobs, a MERGE a dozen.
            write = tables.insert if counts.keys() == {INSERT} else tables.merge
            written = write(merge, table.target, commit)
    return Rows(batch.size.rows, 0, 0, quarantined, 0, written.inserted, written.updated, written.deleted)


def _comparable(batch: Batch, table: CuratedTable, tables: DeltaTables) -> DataFrame:
    """The rows to compare with the target. Grain: see `batch_rows`."""
    incoming = batch.incoming
    if table.place_late and not batch.is_everything:
        everything = rows_between(batch.source, Bounds(table.watermark, table.lookback, None, batch.size.highest))
        incoming = with_refusals(all_rows_of_these_keys(everything, admitted(incoming, table), table), table)
    view = admitted(incoming, table)
    return batch_rows(transformed(tables.session, view, table), view, table)


def _changes(rows: DataFrame, held: DataFrame, table: CuratedTable) -> DataFrame:
    """The batch against what the target holds of its keys. Grain: one row per row to write, close, remove or refuse."""
    if table.scd_type == SCD2 and not table.place_late:
        held = held.where(col(table.current) == F.lit(True))
    # The few rows of these keys first: a state hash is computed for them alone. The batch is materialized, so its size is
    # known when this is planned, and Spark broadcasts the keys where that is cheaper.
    held = held.join(rows.select(PK_HASH), PK_HASH, "left_semi")
    if table.place_late:
        return changes_with_late_rows(rows, held, table)
    return version_changes(rows, held, table) if table.scd_type == SCD2 else state_changes(rows, held, table)


def _commit(stage: Curate, context: RunContext, target: TableState, progress: Progress) -> Commit:
    """The commit as it will stand in the target's log, with all that the control and audit tables need to know."""
    before, after, version = progress.before, progress.after, progress.version
    return context.commit(
        stage.name,
        target.next_number,
        source=str(stage.table.source),
        **{CONSUMED: None if version is None else version.content},
        watermark=after.isoformat() if after else None,
        watermark_before=before.isoformat() if before else None,
        read=progress.read,
        started_at=context.stamp.started_at.isoformat(),
        books_before=context.control_entry(stage.name).run_id,
    )
