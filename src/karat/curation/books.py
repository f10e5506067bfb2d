"""The control and audit tables of curation: brought up to date after the data, and from the data's own commits.

They are written once a run. A process that dies before leaves them behind; the next run mends them, because the
commit that carried the data carried everything they need to say about it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.config.resolved import CurationBooks
from karat.lake.context import Recorded, RunContext
from karat.lake.delta import DeltaTables
from karat.lake.outcome import Outcome
from karat.lake.tables import Layout
from karat.state.commits import Checkpoint, Commit, written_by
from karat.temporal.moments import from_micros, moment

CONTROL = T.StructType(
    [
        T.StructField("table_name", T.StringType(), nullable=False),
        T.StructField("watermark_value", T.TimestampType()),
        T.StructField("last_run_id", T.StringType()),
        T.StructField("last_run_status", T.StringType()),
        T.StructField("records_processed", T.LongType()),
        T.StructField("updated_at", T.TimestampType()),
    ]
)
AUDIT = T.StructType(
    [
        T.StructField("run_id", T.StringType(), nullable=False),
        T.StructField("table_name", T.StringType(), nullable=False),
        T.StructField("run_start_ts", T.TimestampType()),
        T.StructField("run_end_ts", T.TimestampType()),
        T.StructField("status", T.StringType()),
        T.StructField("records_read", T.LongType()),
        T.StructField("records_inserted", T.LongType()),
        T.StructField("records_updated", T.LongType()),
        T.StructField("watermark_before", T.TimestampType()),
        T.StructField("watermark_after", T.TimestampType()),
        T.StructField("error_message", T.StringType()),
    ]
)

Value = str | int | datetime | None
Position = Mapping[str, str | int | None]
_AGE = "__karat_age"


@dataclass(frozen=True)
class Entry:
    """One table's part in a run, as the books record it."""

    table: str
    outcome: Outcome
    seconds: float
    error: str | None


def recorded(world: RunContext, books: Iterable[CurationBooks]) -> dict[str, Recorded]:
    """What the control tables say, by target; a missing control table says nothing."""
    found: dict[str, Recorded] = {}
    for control in {each.control for each in books}:
        tables = world.tables()
        if tables.exists(control):
            noted = tables.checkpoint(control, _stage(control)).position
            for name, run_id, mark in _marks(tables, control):
                found[name] = Recorded(mark, run_id, str(noted[name]) if name in noted else None)
    return found


def _marks(tables: DeltaTables, control: TableName) -> list[tuple[str, str | None, datetime | None]]:
    """Table, last run and watermark; of a local table without a Spark job, for every run begins with this question."""
    local = tables.local_rows(control, ("table_name", "last_run_id", "watermark_value"))
    if local is not None:
        return local
    rows = tables.read(control).select("table_name", "last_run_id", F.unix_micros("watermark_value")).collect()
    return [(name, run_id, None if micros is None else from_micros(micros)) for name, run_id, micros in rows]


def keep_books(world: RunContext, books: CurationBooks, entries: Sequence[Entry]) -> None:
    """One commit to the audit table, one to the control table; the watermark there never goes back."""
    if not entries:
        return
    tables = world.tables()
    audits = [_audit(entry, world) for entry in entries] + _mended_audits(tables, books, entries, world)
    commit, _ = _next_commit(tables, books.audit, AUDIT, world)
    tables.append(_rows(tables, AUDIT, audits), books.audit, commit)
    commit, noted = _next_commit(tables, books.control, CONTROL, world)
    controls = _rows(tables, CONTROL, [_control(entry, world) for entry in entries])
    # A page of a few rows is written anew in one job, where a MERGE takes a dozen; whoever else writes it meets our number.
    page = _brought_forward(tables.read(books.control), controls)
    tables.overwrite(page, books.control, replace(commit, position=_noted(noted, entries)))


def _next_commit(tables: DeltaTables, name: TableName, schema: T.StructType, world: RunContext) -> tuple[Commit, Position]:
    """The book's next commit and what its last one noted; a book that is not there yet is opened."""
    commit = Commit(_stage(name), 0, world.stamp.run_id, world.config.hash)
    tables.create(name, schema, Layout(), commit)
    last = tables.checkpoint(name, commit.stage)
    return replace(commit, sequence=last.sequence + 1), last.position


def _stage(book: TableName) -> str:
    return f"{book}/books"


def _brought_forward(held: DataFrame, new: DataFrame) -> DataFrame:
    """The control rows as they shall be: new ones for old ones, the watermark at its furthest. Grain: one row per table."""
    columns = [name for name in CONTROL.names if name not in {"table_name", "watermark_value"}]
    dated = held.select(*CONTROL.names, F.lit(0).alias(_AGE)).union(new.select(*CONTROL.names, F.lit(1).alias(_AGE)))
    latest = (F.max_by(name, _AGE).alias(name) for name in columns)
    return dated.groupBy("table_name").agg(F.max("watermark_value").alias("watermark_value"), *latest).select(*CONTROL.names).coalesce(1)


def _noted(before: Position, entries: Iterable[Entry]) -> Position:
    """What each table has consumed without a commit of its own; those that did not get that far, or were not in this run, as before."""
    now = {entry.table: entry.outcome.consumed for entry in entries if entry.outcome.status not in {"failed", "skipped"}}
    return {table: consumed for table, consumed in {**before, **now}.items() if consumed is not None}


def _control(entry: Entry, world: RunContext) -> Mapping[str, Value]:
    outcome = entry.outcome
    known = world.recorded_for(entry.table).watermark
    marks = [mark for mark in (outcome.watermark_after, known) if mark is not None]
    return {
        "table_name": entry.table,
        "watermark_value": max(marks, default=None),
        "last_run_id": world.stamp.run_id,
        "last_run_status": outcome.status,
        "records_processed": outcome.rows.read,
        "updated_at": world.stamp.started_at + timedelta(seconds=entry.seconds),
    }


def _audit(entry: Entry, world: RunContext) -> Mapping[str, Value]:
    outcome = entry.outcome
    return {
        "run_id": world.stamp.run_id,
        "table_name": entry.table,
        "run_start_ts": world.stamp.started_at,
        "run_end_ts": world.stamp.started_at + timedelta(seconds=entry.seconds),
        "status": outcome.status,
        "records_read": outcome.rows.read,
        "records_inserted": outcome.rows.inserted,
        "records_updated": outcome.rows.updated,
        "watermark_before": outcome.watermark_before,
        "watermark_after": outcome.watermark_after,
        "error_message": entry.error,
    }


def _mended_audits(tables: DeltaTables, books: CurationBooks, entries: Sequence[Entry], world: RunContext) -> list[Mapping[str, Value]]:
    """Audit rows of runs that committed data and died before their books: the control row stands as their commits found it."""
    missed = [
        (entry.table, commit)
        for entry in entries
        for commit in entry.outcome.previous.recent
        if commit.position and commit.position.get("books_before") == world.recorded_for(entry.table).run_id
    ]
    if not missed:
        return []
    runs = [commit.run_id for _, commit in missed]
    known = tables.read(books.audit).where(F.col("run_id").isin(runs)).collect() if tables.exists(books.audit) else []
    written = {(row["table_name"], row["run_id"]) for row in known}
    return [_audit_of_commit(table, commit) for table, commit in missed if (table, commit.run_id) not in written]


def _audit_of_commit(table: str, commit: Checkpoint) -> Mapping[str, Value]:
    started, written = _moment(commit.position.get("started_at")), written_by(commit.metrics)
    return {
        "run_id": commit.run_id,
        "table_name": table,
        "run_start_ts": started,
        "run_end_ts": started,
        "status": "succeeded",
        "records_read": int(commit.position.get("read") or 0),
        "records_inserted": written.inserted,
        "records_updated": written.updated,
        "watermark_before": _moment(commit.position.get("watermark_before")),
        "watermark_after": _moment(commit.position.get("watermark")),
        "error_message": None,
    }


def _moment(text: str | int | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(str(text)).astimezone(UTC)


def _rows(tables: DeltaTables, schema: T.StructType, records: Sequence[Mapping[str, Value]]) -> DataFrame:
    """Records as rows of literals: no Python worker has to start for a handful of values."""
    structs = [F.struct(*(_literal(record[field.name], field) for field in schema)) for record in records]
    return tables.session.range(1).select(F.inline(F.array(*structs)))


def _literal(value: Value, field: T.StructField) -> Column:
    literal = moment(value) if isinstance(value, datetime) else F.lit(value)
    return literal.cast(field.dataType).alias(field.name)
