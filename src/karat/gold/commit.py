"""The target's table made ready, written in one commit, and what a stage says of it."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.star import Dimension
from karat.errors import ConfigError
from karat.gold.context import Account, StarContext
from karat.lake.changes import change_set, write
from karat.lake.outcome import Outcome
from karat.lake.preparation import DELETION_VECTORS, ensure
from karat.lake.tables import Layout
from karat.state.commits import Written
from karat.telemetry.events import Rows, Status
from karat.temporal.changes import TableSpec


def prepare(schema: T.StructType, context: StarContext) -> None:
    """The table is there afterwards with every column. Raises `ConfigError` for a column that has another type than the table's."""
    star, tables = context.star, context.tables
    if context.state.exists:
        held = {field.name.lower(): field.dataType for field in tables.schema(star.table)}
        for field in schema:
            known = held.get(field.name.lower(), field.dataType)
            if known != field.dataType:
                message = (
                    f"column {field.name} of {star.table} is {known.simpleString()}, the query returns {field.dataType.simpleString()}"
                )
                raise ConfigError(message, remedy=f"cast it to {known.simpleString()} in the query")
    identity = star.surrogate if isinstance(star, Dimension) and star.strategy == "identity" else None
    layout = Layout(star.layout.partition_by, (), DELETION_VECTORS, star.layout.cluster_by, identity)
    ensure(star.table, schema, layout, tables, context.run.commit(str(star.table), 0))


def write_target(rows: DataFrame, spec: TableSpec, context: StarContext, **more: Any) -> Written:  # noqa: ANN401  (whatever JSON holds)
    """The difference in one commit with the versions that were read; where nothing differs, a commit of the versions alone."""
    star, tables = context.star, context.tables
    changes = change_set(rows, spec)
    if changes.is_empty:
        nothing = tables.read(star.table).where(F.lit(False))
        if spec.generated:
            nothing = nothing.drop(*spec.generated)
        tables.append(nothing, star.table, context.commit(**more))
        return Written()
    return write(changes, star.table, tables, context.commit(**more))


def concluded(context: StarContext, account: Account, written: Written) -> Outcome:
    """How the stage ended."""
    moved = written != Written() or account.quarantined or account.skeletons
    status: Status = "succeeded" if moved or context.is_first else "unchanged"
    rows = Rows(
        read=account.read,
        quarantined=account.quarantined,
        inserted=written.inserted,
        updated=written.updated,
        deleted=written.deleted,
        closed=account.closed,
        skeletons=account.skeletons,
        bytes=_bytes_added(context),
    )
    notes = [*account.notes]
    if account.skeletons:
        notes.append(f"{account.skeletons} members were made, or reach further back, because facts came before them")
    return Outcome(status, rows, position=position_text(context), versions=versions_read(context), notes=tuple(notes))


def _bytes_added(context: StarContext) -> int:
    """What the stage's commit added to its table, by the commit's own metrics."""
    metrics = context.tables.state(context.star.table, str(context.star.table)).checkpoint.metrics
    return metrics.get("numOutputBytes", metrics.get("numTargetBytesAdded", 0))


def unchanged(context: StarContext) -> Outcome:
    """The outcome where nothing of the sources is new."""
    return Outcome("unchanged", position=position_text(context), versions=versions_read(context))


def position_text(context: StarContext) -> str:
    """The version of every source that is in the table, for people."""
    return ", ".join(f"{each.source.table} version {each.version}" for each in context.sources) or "generated"


def versions_read(context: StarContext) -> tuple[tuple[str, int], ...]:
    """Each source with the version that is in the table."""
    return tuple((str(each.source.table), each.version) for each in context.sources)
