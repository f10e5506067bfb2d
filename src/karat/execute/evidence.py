"""An entity's tables: made when they are not there, widened when an attribute joins, and asked for what they hold."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.bronze.shape import assertions_schema, timeline_schema
from karat.config.entity import OWNED_COLUMNS
from karat.config.names import TableName
from karat.config.resolved import Entity
from karat.errors import ConfigError
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout
from karat.state.commits import Commit
from karat.temporal.columns import (
    BATCH_SEQ,
    BK,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    EVENT_TS,
    INGEST_TS,
    IS_SOURCE_CURRENT,
    SK,
    SNAPSHOT_TS,
    SOURCE_EFFECTIVE_TO,
    SOURCE_SYSTEM,
    TIME_BASIS,
)
from karat.temporal.entity_schema import EntitySchema, types_of
from karat.temporal.moments import from_micros
from karat.temporal.source_level import is_snapshot

APPEND_ONLY = {"delta.appendOnly": "true"}
LIVE_APART = {"delta.enableDeletionVectors": "true"}
"""A change marks a row as gone instead of rewriting its file."""


def terms_of(entity: Entity, tables: DeltaTables, sources: tuple[str, ...]) -> EntitySchema:
    """What the timeline must know, with the attributes that were once declared and are on record still."""
    declared = types_of(entity.declared.attributes)
    if tables.exists(entity.assertions):
        held = {field.name: field.dataType for field in tables.schema(entity.assertions)}
        _check_types(entity, held, {**types_of(entity.declared.key), **declared})
        retired = {
            name: kind for name, kind in held.items() if name not in OWNED_COLUMNS and name not in entity.key and name not in declared
        }
        declared = {**declared, **retired}
    state = entity.declared
    return EntitySchema(
        types_of(state.key), declared, sources, frozenset(state.untracked), state.type == "transaction", state.late_partials == "propagate"
    )


def speakers(entity: Entity, tables: DeltaTables) -> tuple[str, ...]:
    """Every source system that has ever spoken, by the evidence itself."""
    return tuple(told_by_evidence(entity, tables)["sources"])


def told_by_evidence(entity: Entity, tables: DeltaTables) -> dict[str, Any]:
    """What the last commit would have said, by the evidence itself: who has ever spoken, how far, and about everything at once."""
    if not tables.exists(entity.assertions):
        return {"sources": [], "reached": {}, "sweeps": {}, "apart": [], "unseen": None, "clock": None}
    counts = F.col(TIME_BASIS).isNotNull()
    apart = counts & is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS))
    at = F.unix_micros(EVENT_TS)
    found = (
        tables.read(entity.assertions)
        .groupBy(SOURCE_SYSTEM)
        .agg(
            F.max(F.when(counts, at)).alias("time"),
            F.max(F.when(counts & F.col(BK).isNull(), at)).alias("swept"),
            F.max(F.coalesce(apart, F.lit(False))).alias("apart"),
            F.max(F.unix_micros(INGEST_TS)).alias("clock"),
        )
        .collect()
    )
    times = {row[SOURCE_SYSTEM]: row["time"] for row in found if row["time"] is not None}
    return {
        "sources": sorted(row[SOURCE_SYSTEM] for row in found),
        "reached": {source: {"time": time} for source, time in times.items()},
        "sweeps": {row[SOURCE_SYSTEM]: from_micros(row["swept"]).isoformat() for row in found if row["swept"] is not None},
        "apart": sorted(row[SOURCE_SYSTEM] for row in found if row["apart"]),
        "unseen": max(times.values(), default=None),
        "clock": max((row["clock"] for row in found), default=None),
    }


def prepare(entity: Entity, terms: EntitySchema, tables: DeltaTables, commit: Commit) -> None:
    """Both tables exist afterwards and have every column."""
    opened = Commit(commit.stage, 0, commit.run_id, commit.config_hash)
    ensure(entity.assertions, assertions_schema(terms), Layout((), (BK, EVENT_TS, INGEST_TS, BATCH_SEQ), APPEND_ONLY), tables, opened)
    live_apart = () if terms.is_transaction else (IS_SOURCE_CURRENT,)
    layout = Layout(live_apart, (BK, EFFECTIVE_FROM, EFFECTIVE_TO, SOURCE_EFFECTIVE_TO), LIVE_APART)
    ensure(entity.timeline, timeline_schema(terms), layout, tables, opened)


def about(rows: DataFrame, keys: DataFrame, *, few: bool = True) -> DataFrame:
    """The rows about these keys, by `sk`. Grain: as the rows."""
    return rows.join(F.broadcast(keys) if few else keys, SK, "left_semi")


def of_sources(rows: DataFrame) -> DataFrame:
    """The statements of sources about everything they have."""
    return rows.where(F.col(BK).isNull())


def ensure(name: TableName, schema: T.StructType, layout: Layout, tables: DeltaTables, commit: Commit) -> None:
    """The table is there afterwards and has every column of the schema."""
    if not tables.exists(name):
        tables.create(name, schema, layout, commit)
        return
    held = set(tables.schema(name).names)
    if missing := [field for field in schema if field.name not in held]:
        tables.add_columns(name, missing)


def _check_types(entity: Entity, held: Mapping[str, T.DataType], declared: Mapping[str, T.DataType]) -> None:
    for name, kind in declared.items():
        if name in held and held[name] != kind:
            message = f"{name} of {entity.name} is {held[name].simpleString()} on record, the declaration says {kind.simpleString()}"
            raise ConfigError(message, remedy="declare the new type under a new attribute's name; what is on record is never rewritten")
