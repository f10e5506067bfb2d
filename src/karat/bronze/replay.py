"""Refused rows checked again by the present rules: the good ones join the evidence at their own source time.

The evidence's commit names the replay that admitted rows, and the quarantine marks the rows with it afterwards. A crash in
between is mended before anything is checked again, so no row is admitted twice.
"""

from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.advance import catch_up
from karat.bronze.context import StageContext, prepared, stage_context
from karat.bronze.feeds import News
from karat.bronze.identity import with_identity
from karat.bronze.load import load_batch
from karat.bronze.snapshots import without_suspicious
from karat.config.declared.entity import FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.columns import KIND
from karat.contract.statements import statements
from karat.lake.context import RunContext
from karat.lake.materialized import materialized
from karat.lake.tables import SOURCE, TARGET, Merge
from karat.sources.files import documents, json_records
from karat.sources.raw import FILE, LINE, PATH
from karat.telemetry.events import Rows
from karat.temporal.columns import RUN_ID, SOURCE_PATH

MARK = "\u0001"
"""Between a row's path and its number in the quarantine, while the two travel together through the gate."""
PENDING = "pending:"
"""What `replayed_by` begins with between the moment a row is chosen and the moment the evidence has it."""
QUARANTINE_ID, REPLAYED_BY = "quarantine_id", "replayed_by"


@dataclass(frozen=True)
class Replayed:
    """How many rows were admitted, and how many are refused still."""

    admitted: int
    waiting: int
    rows: Rows


def replay(entity: Entity, run: RunContext) -> Replayed:
    """Check every waiting row again."""
    context = stage_context(entity, run)
    if not context.tables.exists(entity.quarantine):
        return Replayed(0, 0, Rows())
    context = prepared(context)
    _settle_marks(context)
    context, _ = catch_up(context)
    waiting = context.tables.read(entity.quarantine).where(F.col(REPLAYED_BY).isNull() & (F.col("original") != ""))
    checked = reduce(DataFrame.unionByName, [_checked(feed, waiting, context) for feed in entity.feeds])
    with materialized(with_identity(checked, context.schema)) as rows:
        # a snapshot that would still delete too much stays refused as a whole
        batch = without_suspicious(rows, context)
        number = F.split(F.col(SOURCE_PATH), MARK)
        admitted = batch.where(F.col(KIND) == "row").select(number[1].alias(QUARANTINE_ID))
        counted = batch.agg(F.count_if(F.col(KIND) == "row").alias("admitted"), F.count(F.lit(1)).alias("checked")).collect()[0]
        left = counted["checked"] - counted["admitted"]
        if not counted["admitted"]:
            return Replayed(0, left, Rows())
        _mark(admitted, PENDING + run.stamp.run_id, context)
        # the path is part of the record's hash; those still refused go along: a snapshot that lacks them is not complete
        cleaned = with_identity(batch.withColumn(SOURCE_PATH, number[0]), context.schema)
        written, _, news = load_batch(cleaned, News(), replace(context, is_replay=True))
        if news.failures:
            raise news.failures[0][1]
    _settle_marks(context.refreshed())
    return Replayed(counted["admitted"], left, written)


def _checked(feed: FeedOf, waiting: DataFrame, context: StageContext) -> DataFrame:
    """One feed's waiting rows through the gate. Grain: one row per waiting row."""
    mine = waiting.where(F.col("feed") == feed.feed.name)
    travelling = F.concat_ws(MARK, F.coalesce(F.col("source_path"), F.lit("")), F.col(QUARANTINE_ID))
    lines = mine.select(F.col("original").alias(LINE), travelling.alias(PATH), F.col("source_file").alias(FILE))
    source = feed.feed.source
    whole = isinstance(source, FilesSource) and source.format in {"text", "xml"}
    raw = documents(lines) if whole else json_records(lines)
    return statements(raw, context.entity, feed, context.run.stamp.started_at)


def _settle_marks(context: StageContext) -> None:
    """Rows chosen by a replay are marked with its run if the evidence has them, and wait again if it does not."""
    tables = context.tables
    chosen = tables.read(context.entity.quarantine).where(F.col(REPLAYED_BY).startswith(PENDING))
    for row in chosen.select(REPLAYED_BY).distinct().collect():
        run_id = row[REPLAYED_BY].removeprefix(PENDING)
        has_arrived = bool(context.assertions().where(F.col(RUN_ID) == run_id).take(1))
        _mark(chosen.where(F.col(REPLAYED_BY) == row[REPLAYED_BY]).select(QUARANTINE_ID), run_id if has_arrived else None, context)


def _mark(rows: DataFrame, mark: str | None, context: StageContext) -> None:
    """Rows of the quarantine, by their number, get the mark."""
    tables, table = context.tables, context.entity.quarantine
    stage = f"{context.stage}/replayed"
    marked = rows.withColumn(REPLAYED_BY, F.lit(mark).cast("string"))
    merge = Merge(marked, f"{TARGET}.{QUARANTINE_ID} = {SOURCE}.{QUARANTINE_ID}", update=(REPLAYED_BY,))
    tables.merge(merge, table, context.run.commit(stage, tables.state(table, stage).next_number))
