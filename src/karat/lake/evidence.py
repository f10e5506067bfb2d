"""An entity's evidence as other capabilities read it: its columns, and what its last commit remembers of the sources.

The position in a commit to the evidence says how far every feed was read (`feeds`) and, among other things:

    sources   the sources with statements
    sweeps    source to the latest time at which it said something about everything it has
    apart     sources whose snapshots carry rows of another time than their own
    reached   source to the latest time and the highest sequence of its statements
    unseen    up to when versions may have absorbed statements without showing it, because sightings are lazy
    clock     the latest arrival; behind: source to the clock before the batch in which it last spoke of the past
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.declared.entity import OWNED_COLUMNS
from karat.config.resolved import Entity
from karat.errors import ConfigError
from karat.lake.delta import DeltaTables
from karat.lake.tables import TableState
from karat.temporal.columns import BK, EVENT_TS, FEED, INGEST_TS, SNAPSHOT_TS, SOURCE_SYSTEM, SOURCE_TYPE, TIME_BASIS
from karat.temporal.entity_schema import EntitySchema, types_of
from karat.temporal.moments import from_micros
from karat.temporal.statements import is_snapshot


def evidence_of(entity: Entity, tables: DeltaTables) -> TableState:
    """The evidence as it is now, with a complete position even where the log was cleaned up or is of an older version."""
    state = tables.state(entity.assertions, str(entity.timeline))
    position = state.checkpoint.position
    if not state.exists or "clock" in position:
        return state
    assertions = tables.read(entity.assertions, state.version)
    told = told_by_evidence(assertions)
    lacking = {"clock": told["clock"]} if "sources" in position else told
    if "feeds" not in position:
        lacking["feeds"] = _files_in(assertions)
    return replace(state, checkpoint=replace(state.checkpoint, position={**position, **lacking}))


def entity_schema(entity: Entity, evidence: TableState, tables: DeltaTables) -> EntitySchema:
    """How the evidence is read, with the attributes that were once declared and are on record still.

    Raises `ConfigError` when the declared key or a declared type is not the one on record.
    """
    position = evidence.checkpoint.position
    sources = {feed.feed.source_system for feed in entity.feeds} | set(position.get("sources", ()))
    declared, key = types_of(entity.declared.attributes), types_of(entity.declared.key)
    if evidence.exists:
        held = {field.name: field.dataType for field in tables.schema(entity.assertions)}
        _check_key(entity, held, position.get("key"))
        _check_types(entity, held, {**key, **declared})
        retired = {name: kind for name, kind in held.items() if name not in {*OWNED_COLUMNS, *key, *declared}}
        declared = {**declared, **retired}
    state = entity.declared
    is_transaction, propagates = state.type == "transaction", state.late_partials == "propagate"
    return EntitySchema(key, declared, tuple(sorted(sources)), frozenset(state.untracked), is_transaction, propagates)


def told_by_evidence(assertions: DataFrame) -> dict[str, Any]:
    """What the last commit would have said, by the evidence itself."""
    counts = F.col(TIME_BASIS).isNotNull()
    apart = counts & is_snapshot() & (F.col(SNAPSHOT_TS) != F.col(EVENT_TS))
    at = F.unix_micros(EVENT_TS)
    found = (
        assertions.groupBy(SOURCE_SYSTEM)
        .agg(
            F.max(F.when(counts, at)).alias("time"),
            F.max(F.when(counts & F.col(BK).isNull(), at)).alias("source_level"),
            F.max(F.coalesce(apart, F.lit(False))).alias("apart"),
            F.max(F.unix_micros(INGEST_TS)).alias("clock"),
        )
        .collect()
    )
    times = {row[SOURCE_SYSTEM]: row["time"] for row in found if row["time"] is not None}
    source_level = {row[SOURCE_SYSTEM]: row["source_level"] for row in found if row["source_level"] is not None}
    return {
        "sources": sorted(row[SOURCE_SYSTEM] for row in found),
        "reached": {source: {"time": time} for source, time in times.items()},
        "sweeps": {source: from_micros(at).isoformat() for source, at in source_level.items()},
        "apart": sorted(row[SOURCE_SYSTEM] for row in found if row["apart"]),
        "unseen": max(times.values(), default=None),
        "clock": max((row["clock"] for row in found), default=None),
    }


def _files_in(assertions: DataFrame) -> dict[str, Any]:
    """The feeds whose files are on record by their rows alone: whoever reads them must look there, see `bronze.files_read`."""
    rows = assertions.where(F.col(SOURCE_TYPE) == "file").select(FEED).distinct().collect()
    return {row[FEED]: {"in_evidence": True} for row in rows}


def _check_key(entity: Entity, held: Mapping[str, T.DataType], recorded: Sequence[str] | None) -> None:
    """The key is the one that is on record. Evidence of older versions names it by its first columns."""
    key = list(entity.key)
    on_record = list(recorded) if recorded is not None else [name for name in held if name not in OWNED_COLUMNS][: len(key)]
    if on_record != key:
        message = f"the key of {entity.name} is {', '.join(on_record)} on record, the declaration says {', '.join(key)}"
        remedy = (
            "declare the key on record, or the entity under a new name so that it reads its feeds again: "
            "hashes and histories on record depend on the key"
        )
        raise ConfigError(message, remedy=remedy)


def _check_types(entity: Entity, held: Mapping[str, T.DataType], declared: Mapping[str, T.DataType]) -> None:
    for name, kind in declared.items():
        if name in held and held[name] != kind:
            message = f"{name} of {entity.name} is {held[name].simpleString()} on record, the declaration says {kind.simpleString()}"
            raise ConfigError(message, remedy="declare the new type under a new attribute's name; what is on record is never rewritten")
