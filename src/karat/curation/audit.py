"""The control and audit tables of curation: written once a run, after the data.

A process that dies before that leaves them behind. The next run adds what is missing, because the commit that carried
the data carries everything that they say about it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.config.resolved import AuditTables
from karat.lake.context import ControlEntry, RunContext
from karat.lake.delta import DeltaTables
from karat.lake.outcome import Outcome
from karat.lake.tables import Layout, TableState
from karat.state.commits import Checkpoint, written_by
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
class AuditEntry:
    """How one table ended in a run, as the control and audit tables record it."""

    table: str
    outcome: Outcome
    seconds: float
    error: str | None


def read_control(context: RunContext, audit_tables: Iterable[AuditTables]) -> dict[str, ControlEntry]:
    """What the control tables say, by target; a missing control table says nothing."""
    found: dict[str, ControlEntry] = {}
    for control in {each.control for each in audit_tables}:
        tables = context.tables()
        state = tables.state(control, _stage(control))
        if not state.exists:
            continue
        notes = state.checkpoint.position
        rows = tables.read(control, state.version).select("table_name", "last_run_id", F.unix_micros("watermark_value"))
        for name, run_id, micros in rows.collect():
            watermark = None if micros is None else from_micros(micros)
            found[name] = ControlEntry(watermark, run_id, str(notes[name]) if name in notes else None)
    return found


def write_audit(context: RunContext, audit_tables: AuditTables, entries: Sequence[AuditEntry]) -> None:
    """One commit to the audit table, one to the control table; the watermark there never goes back."""
    if not entries:
        return
    tables = context.tables()
    audit = _state(tables, audit_tables.audit, AUDIT, context)
    rows = [_audit_row(entry, context) for entry in entries] + _missing_audit_rows(tables, audit, entries, context)
    tables.append(_rows(tables, AUDIT, rows), audit_tables.audit, context.commit(_stage(audit_tables.audit), audit.next_number))
    control = _state(tables, audit_tables.control, CONTROL, context)
    new = _rows(tables, CONTROL, [_control_row(entry, context) for entry in entries])
    # The few rows are written anew in one job, where a MERGE takes a dozen; a second writer uses the same number and conflicts.
    latest = _latest(tables.read(audit_tables.control, control.version), new)
    notes = _notes(control.checkpoint.position, entries)
    tables.overwrite(latest, audit_tables.control, context.commit(_stage(audit_tables.control), control.next_number, **notes))


def _state(tables: DeltaTables, name: TableName, schema: T.StructType, context: RunContext) -> TableState:
    """The state of a control or audit table, which is created when it is not there."""
    state = tables.state(name, _stage(name))
    if state.exists:
        return state
    tables.create(name, schema, Layout(), context.commit(_stage(name), 0))
    return tables.state(name, _stage(name))


def _stage(table: TableName) -> str:
    """The name under which commits to a control or audit table are numbered; on record in its log."""
    return f"{table}/books"


def _latest(held: DataFrame, new: DataFrame) -> DataFrame:
    """The new control rows, and the old ones of tables that have none; no watermark goes back. Grain: one row per table."""
    columns = [name for name in CONTROL.names if name not in {"table_name", "watermark_value"}]
    dated = held.select(*CONTROL.names, F.lit(0).alias(_AGE)).union(new.select(*CONTROL.names, F.lit(1).alias(_AGE)))
    latest = (F.max_by(name, _AGE).alias(name) for name in columns)
    return dated.groupBy("table_name").agg(F.max("watermark_value").alias("watermark_value"), *latest).select(*CONTROL.names).coalesce(1)


def _notes(before: Position, entries: Iterable[AuditEntry]) -> Position:
    """What each table has consumed without a commit of its own; those that did not get that far, or were not in this run, as before."""
    now = {entry.table: entry.outcome.consumed for entry in entries if entry.outcome.status not in {"failed", "skipped"}}
    return {table: consumed for table, consumed in {**before, **now}.items() if consumed is not None}


def _control_row(entry: AuditEntry, context: RunContext) -> Mapping[str, Value]:
    outcome = entry.outcome
    known = context.control_entry(entry.table).watermark
    marks = [mark for mark in (outcome.watermark_after, known) if mark is not None]
    return {
        "table_name": entry.table,
        "watermark_value": max(marks, default=None),
        "last_run_id": context.stamp.run_id,
        "last_run_status": outcome.status,
        "records_processed": outcome.rows.read,
        "updated_at": context.stamp.started_at + timedelta(seconds=entry.seconds),
    }


def _audit_row(entry: AuditEntry, context: RunContext) -> Mapping[str, Value]:
    outcome = entry.outcome
    return {
        "run_id": context.stamp.run_id,
        "table_name": entry.table,
        "run_start_ts": context.stamp.started_at,
        "run_end_ts": context.stamp.started_at + timedelta(seconds=entry.seconds),
        "status": outcome.status,
        "records_read": outcome.rows.read,
        "records_inserted": outcome.rows.inserted,
        "records_updated": outcome.rows.updated,
        "watermark_before": outcome.watermark_before,
        "watermark_after": outcome.watermark_after,
        "error_message": entry.error,
    }


def _missing_audit_rows(
    tables: DeltaTables, audit: TableState, entries: Sequence[AuditEntry], context: RunContext
) -> list[Mapping[str, Value]]:
    """Audit rows of runs that committed data and died before they wrote their own: the control row is still the one they found."""
    missed = [
        (entry.table, commit)
        for entry in entries
        for commit in entry.outcome.previous.recent
        if commit.position and commit.position.get("books_before") == context.control_entry(entry.table).run_id
    ]
    if not missed:
        return []
    runs = [commit.run_id for _, commit in missed]
    known = tables.read(audit.name, audit.version).where(F.col("run_id").isin(runs)).collect()
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
