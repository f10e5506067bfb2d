"""The silver table itself: created when it is not there, checked against the batch, and changed by one MERGE."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.resolved import CuratedTable
from karat.curation.hash_columns import business_columns, target_schema
from karat.errors import ConfigError
from karat.lake.delta import DeltaTables
from karat.lake.tables import SOURCE, TARGET, Layout, Merge, TableState
from karat.state.commits import Commit
from karat.temporal.columns import ACTION, DIFF_HASH, MATCH_KEY, MATCH_START, MATCH_STATE, PK_HASH, quoted

HASH_LENGTH = {"md5": 32, "sha256": 64}
HASH_PROPERTY = "karat.hash"
_WIDENING: dict[type[T.DataType], int] = {T.ByteType: 1, T.ShortType: 2, T.IntegerType: 3, T.LongType: 4}


def missing_in_target(shape: T.StructType, table: CuratedTable, target: TableState, tables: DeltaTables) -> T.StructType:
    """The columns the target does not have: all of them before the first load. What cannot fit is an error before any write."""
    wanted = target_schema(shape, table)
    if not target.exists:
        return wanted
    held = {field.name.lower(): field for field in tables.read(table.target, target.version).schema}
    for field in wanted:
        present = held.get(field.name.lower())
        if present is not None and not _fits(field.dataType, present.dataType):
            types = f"is {present.dataType.simpleString()}, the batch has {field.dataType.simpleString()}"
            message = f"column {field.name} of {table.target} {types}"
            raise ConfigError(message, remedy=f"cast it to {present.dataType.simpleString()} in the transformation")
    _check_hash(table, tables)
    new = [field for field in wanted if field.name.lower() not in held]
    if new and not table.add_columns:
        message = f"{table.target} has no column {', '.join(field.name for field in new)}"
        raise ConfigError(message, remedy="set schema_evolution: add, or leave the columns out of the transformation")
    return T.StructType(new)


def held_rows(shape: T.StructType, table: CuratedTable, target: TableState, tables: DeltaTables) -> DataFrame:
    """What the target held when the stage began; no rows of the right columns before it exists."""
    if target.exists:
        return tables.read(table.target, target.version)
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in target_schema(shape, table)]
    return tables.session.range(0).select(*nothing)


def prepare_target(missing: T.StructType, table: CuratedTable, tables: DeltaTables, commit: Commit) -> None:
    """The target exists afterwards and has every column; done last, so that a batch that fails leaves nothing behind."""
    if not tables.exists(table.target):
        tables.create(table.target, missing, _layout(table), Commit(commit.stage, 0, commit.run_id, commit.config_hash))
    elif missing.fields:
        tables.add_columns(table.target, missing.fields)


def curated_merge(rows: DataFrame, batch_columns: Sequence[str], table: CuratedTable) -> Merge:
    """The changes as one MERGE: by `_pk_hash`, and for versions by the exact version that a change is about."""
    business = business_columns(batch_columns, table)
    if table.scd_type == 1:
        columns = (*business, PK_HASH, DIFF_HASH)
        return Merge(rows, f"{TARGET}.{PK_HASH} = {SOURCE}.{PK_HASH}", ACTION, columns, columns)
    on = [
        f"{TARGET}.{PK_HASH} = {SOURCE}.{MATCH_KEY}",
        f"{TARGET}.{quoted(table.start)} = {SOURCE}.{MATCH_START}",
        f"{TARGET}.{DIFF_HASH} = {SOURCE}.{MATCH_STATE}",
    ]
    if not table.place_late:
        on.append(f"{TARGET}.{quoted(table.current)} = true")  # a literal: whole files of closed versions are never opened
    columns = (*business, PK_HASH, DIFF_HASH, table.start, table.end, table.current)
    return Merge(rows, " AND ".join(on), ACTION, (table.end, table.current), columns, deletes=table.place_late)


def _layout(table: CuratedTable) -> Layout:
    """Current versions apart from closed ones, so that a batch meets only the former; deletion vectors, so a change rewrites no file."""
    properties = {"delta.enableDeletionVectors": "true", HASH_PROPERTY: table.hash}
    return Layout((table.current,) if table.scd_type == 2 else (), (), properties)  # noqa: PLR2004  (SCD type 2)


def _check_hash(table: CuratedTable, tables: DeltaTables) -> None:
    """Entities are found by their hash: another function would find none of them and double the table."""
    used = tables.property(table.target, HASH_PROPERTY)
    if used is not None and used != table.hash:
        message = f"{table.target} was built with hash: {used}, the declaration says {table.hash}"
        raise ConfigError(message, remedy=f"set hash: {used}, or drop the table and let it be built anew")


def _fits(new: T.DataType, held: T.DataType) -> bool:
    """Whether a value of the one type always fits the other."""
    if new == held or isinstance(new, T.NullType):
        return True
    if type(new) in _WIDENING and type(held) in _WIDENING:
        return _WIDENING[type(new)] <= _WIDENING[type(held)]
    if isinstance(new, T.DecimalType) and isinstance(held, T.DecimalType):
        return new.scale <= held.scale and new.precision - new.scale <= held.precision - held.scale
    if isinstance(new, T.StringType) and isinstance(held, T.StringType):
        return True
    if isinstance(new, T.FloatType) and isinstance(held, T.DoubleType):
        return True
    return isinstance(new, T.StructType | T.ArrayType | T.MapType) and new.simpleString() == held.simpleString()
