"""Refused rows judged again by the present rules: the good ones join the evidence at their own source time.

The evidence's commit lists whom it admitted; the quarantine is marked from it afterwards. A crash in between is mended before
anything is judged again, so no row is admitted twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.identity import told_apart
from karat.config.entity import FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.columns import KIND
from karat.contract.statements import statements
from karat.execute.gather import Gathered
from karat.execute.kept import kept
from karat.execute.land import admissible, catch_up, land_batch
from karat.execute.site import Site, site_of
from karat.lake.context import RunContext
from karat.lake.tables import SOURCE, TARGET, Merge
from karat.sources.files import documents, json_records
from karat.sources.raw import FILE, LINE, PATH
from karat.state.commits import Commit
from karat.telemetry.events import Rows
from karat.temporal.columns import SOURCE_PATH

MARK = "\u0001"
"""Between a row's path and its number in the quarantine, while the two travel together through the gate."""


@dataclass(frozen=True)
class Replayed:
    """How many rows were admitted, and how many are refused still."""

    admitted: int
    waiting: int
    rows: Rows


def replay(entity: Entity, world: RunContext) -> Replayed:
    """Judge every waiting row anew."""
    site = site_of(entity, world)
    tables = site.tables
    if not tables.exists(entity.quarantine):
        return Replayed(0, 0, Rows())
    _mend_marks(site)
    catch_up(site, None)
    waiting = tables.read(entity.quarantine).where(F.col("replayed_by").isNull() & (F.col("original") != ""))
    judged = kept(_all([_judged(feed, waiting, site) for feed in entity.feeds]))
    # a snapshot that would still delete too much stays refused as a whole
    batch = admissible(judged, site)
    number = F.split(F.col(SOURCE_PATH), MARK)
    good = F.collect_list(F.when(F.col(KIND) == "row", number[1]))
    found = batch.agg(good.alias("admitted"), F.count(F.lit(1)).alias("judged")).collect()[0]
    admitted = sorted(found["admitted"])
    left = found["judged"] - len(admitted)
    if not admitted:
        return Replayed(0, left, Rows())
    cleaned = batch.withColumn(SOURCE_PATH, number[0])  # with those still refused: a snapshot that lacks them is not complete
    parts = Gathered((), site.previous.position)
    rows, _ = land_batch(told_apart(cleaned, site.terms), parts, replace(site, replayed=tuple(admitted)))
    _mark(admitted, site, world.stamp.run_id)
    return Replayed(len(admitted), left, rows)


def _judged(feed: FeedOf, waiting: DataFrame, site: Site) -> DataFrame:
    """One feed's waiting rows through the gate. Grain: one row per waiting row."""
    mine = waiting.where(F.col("feed") == feed.feed.name)
    travelling = F.concat_ws(MARK, F.coalesce(F.col("source_path"), F.lit("")), F.col("quarantine_id"))
    lines = mine.select(F.col("original").alias(LINE), travelling.alias(PATH), F.col("source_file").alias(FILE))
    source = feed.feed.source
    whole = isinstance(source, FilesSource) and source.format in {"text", "xml"}
    raw = documents(lines) if whole else json_records(lines)
    return statements(raw, site.entity, feed, site.world.stamp.started_at)


def _all(frames: Sequence[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _mend_marks(site: Site) -> None:
    """Rows whose admission is on record but which a crash left unmarked."""
    for commit in site.previous.recent:
        admitted = commit.position.get("replayed")
        if admitted:
            _mark(admitted, site, str(commit.run_id))


def _mark(admitted: Sequence[str], site: Site, run_id: str) -> None:
    tables = site.tables
    table = site.entity.quarantine
    rows = tables.read(table).where(F.col("quarantine_id").isin(*admitted) & F.col("replayed_by").isNull())
    if not rows.take(1):
        return
    stage = f"{site.entity.timeline}/replayed"
    last = tables.checkpoint(table, stage)
    marked = rows.withColumn("replayed_by", F.lit(run_id))
    merge = Merge(marked, f"{TARGET}.quarantine_id = {SOURCE}.quarantine_id", update=("replayed_by",), insert=marked.columns)
    sequence = max(last.sequence, 0) + 1
    tables.merge(merge, table, Commit(stage, sequence, site.world.stamp.run_id, site.world.config.hash, {}))
