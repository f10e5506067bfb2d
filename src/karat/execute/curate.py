"""One silver table brought up to date: measure the batch, set it against the target, commit the difference with its watermark."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.resolved import CuratedTable
from karat.execute.batch import admitted, all_of_these_entities, batch_rows, check_source, transformed, with_refusals
from karat.execute.delta import DeltaTables
from karat.execute.quarantine import quarantine
from karat.execute.tables import Checkpoint, Commit, Written
from karat.execute.target import curated_merge, prepare_target
from karat.execute.world import World
from karat.plan.stages import Curate
from karat.silver.changes import REFUSE, state_changes, version_changes
from karat.silver.placing import placed_changes
from karat.silver.shape import business_columns
from karat.sources.lake import Bounds, Measure, measure, rows_between
from karat.telemetry.events import Rows, Status
from karat.temporal.columns import ACT, PK_HASH, REASON, col

SMALL_BATCH = 500_000
"""Up to here a batch is measured well enough to plan for: keys are broadcast and nothing is planned anew at run time."""
ROWS_PER_PARTITION = 100_000


@dataclass(frozen=True)
class Outcome:
    """What a stage did and how far it has got."""

    status: Status
    rows: Rows = field(default_factory=Rows)
    watermark_before: datetime | None = None
    watermark_after: datetime | None = None
    previous: Checkpoint = field(default_factory=Checkpoint)
    """The target's last commit before this one: the books are mended from it when a crash left them behind."""


def curate(stage: Curate, world: World) -> Outcome:
    """Read above the watermark, commit what differs. Reading the same rows again commits nothing."""
    table, tables = stage.table, world.tables()
    previous = tables.checkpoint(table.target, stage.name)
    before = watermark_of(previous, world.recorded_for(stage.name).watermark)
    source = tables.read(table.source)
    check_source(source, table)
    bounds = Bounds(table.watermark, table.lookback, before)
    tables.session.conf.set("spark.sql.adaptive.enabled", "false")  # one row comes back: nothing to plan anew
    incoming = with_refusals(rows_between(source, bounds), table)
    size = measure(incoming, table.watermark)
    after = max((mark for mark in (before, size.highest) if mark is not None), default=None)
    if size.rows == 0:
        return Outcome("unchanged", Rows(), before, after, previous)
    _plan_for(size, tables)
    incoming = with_refusals(rows_between(source, bounds.up_to(size.highest)), table)
    commit = _commit(stage, world, previous, (before, after, size.rows))
    refused = incoming.where(F.col(REASON).isNotNull()) if size.refused else None
    quarantined = quarantine(refused, table, tables, commit) if refused is not None else 0
    written, refused_later = _apply(_batch(source, incoming, tables, table, bounds.up_to(size.highest)), table, tables, commit)
    rows = Rows(size.rows, 0, 0, quarantined + refused_later, 0, written.inserted, written.updated, written.deleted)
    changed = written != Written() or rows.quarantined
    return Outcome("succeeded" if changed else "unchanged", rows, before, after, previous)


def watermark_of(checkpoint: Checkpoint, recorded: datetime | None) -> datetime | None:
    """The watermark: what the target's own commits say, or the control table where that is further.

    The control table is further after batches that changed nothing. It counts only beside a target whose log speaks of
    a watermark, or is silent because it was cleaned up; a target made anew or set back starts from its own log alone.
    """
    said = checkpoint.position.get("watermark")
    committed = datetime.fromisoformat(str(said)) if said else None
    if checkpoint.trusted and committed is None:
        return None
    return max((mark for mark in (committed, recorded) if mark is not None), default=None)


def _batch(source: DataFrame, incoming: DataFrame, tables: DeltaTables, table: CuratedTable, bounds: Bounds) -> DataFrame:
    """The rows to set against the target. Grain: see `batch_rows`."""
    if table.place_late:
        everything = rows_between(source, Bounds(bounds.column, bounds.lookback, None, bounds.upper))
        touched = admitted(incoming, table)
        incoming = with_refusals(all_of_these_entities(everything, touched, table), table)
    view = admitted(incoming, table)
    return batch_rows(transformed(tables.session, view, table), view, table)


def _apply(batch: DataFrame, table: CuratedTable, tables: DeltaTables, commit: Commit) -> tuple[Written, int]:
    """Commit what differs; also how many rows were newly refused after the transformation."""
    prepare_target(batch.schema, table, tables, commit)
    with _kept(batch), _kept(_changes(batch, table, tables)) as changes:
        acts = {row[ACT]: row["count"] for row in changes.groupBy(ACT).count().collect()}
        refused = acts.pop(REFUSE, 0)
        quarantined = 0
        if refused:
            rows = changes.where(F.col(ACT) == REFUSE).select(*(col(name) for name in (*business_columns(batch.columns, table), REASON)))
            quarantined = quarantine(rows, table, tables, commit)
        if not acts:
            return Written(), quarantined
        merge = curated_merge(changes.where(F.col(ACT) != REFUSE), batch.columns, table)
        return tables.merge(merge, table.target, commit), quarantined


def _changes(batch: DataFrame, table: CuratedTable, tables: DeltaTables) -> DataFrame:
    """The batch against the rows the target holds for its entities, and for no others."""
    held = tables.read(table.target)
    if table.scd_type == 2 and not table.place_late:  # noqa: PLR2004  (SCD type 2)
        held = held.where(col(table.current) == F.lit(True))
    adaptive = tables.session.conf.get("spark.sql.adaptive.enabled") == "true"
    wanted = batch.select(PK_HASH)
    of_batch = held.join(wanted if adaptive else F.broadcast(wanted), PK_HASH, "left_semi")
    near = of_batch if adaptive else F.broadcast(of_batch)
    if table.place_late:
        return placed_changes(batch, of_batch, table)
    return state_changes(batch, near, table) if table.scd_type == 1 else version_changes(batch, near, table)


def _plan_for(size: Measure, tables: DeltaTables) -> None:
    """The batch has been counted, so its plan needs no guessing: few partitions when small, Spark's own adaptation when large."""
    small = size.rows <= SMALL_BATCH
    tables.session.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    if small:
        tables.session.conf.set("spark.sql.shuffle.partitions", str(1 + size.rows // ROWS_PER_PARTITION))


def _commit(stage: Curate, world: World, previous: Checkpoint, facts: tuple[datetime | None, datetime | None, int]) -> Commit:
    before, after, read = facts
    position: dict[str, str | int | None] = {
        "source": str(stage.table.source),
        "watermark": after.isoformat() if after else None,
        "watermark_before": before.isoformat() if before else None,
        "read": read,
        "started_at": world.stamp.started_at.isoformat(),
        "books_before": world.recorded_for(stage.name).run_id,
    }
    return Commit(stage.name, previous.sequence + 1, world.stamp.run_id, world.config.hash, position)


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """The rows computed once and held while they are needed."""
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield rows
    finally:
        rows.unpersist()
