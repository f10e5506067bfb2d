"""From the source's rows to one batch that can be compared with the target: read, refuse, deduplicate, transform, hash."""

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.resolved import CuratedTable
from karat.curation.deduplication import deduplicated
from karat.curation.hash_columns import with_key_hash, with_state_hash
from karat.curation.row_checks import requirements, with_reason
from karat.errors import ConfigError
from karat.temporal.columns import PK_HASH, REASON, START, col

VIEW = "source_incremental"
_END = re.compile(r";\s*(?:--[^\n]*(?:\n\s*|$)|/\*.*?\*/\s*)*$", re.DOTALL)
"""The semicolon that ends a query, and what may follow it: blanks and comments."""
START_RULE = "effective start is null"


def check_source(rows: DataFrame, table: CuratedTable) -> None:
    """The watermark must be there and be a time; without a transformation everything else must be there too."""
    types = {field.name.lower(): field.dataType for field in rows.schema}
    kind = types.get(table.watermark.lower())
    if kind is None:
        raise _missing([table.watermark], f"{table.source} (the watermark column)", rows.columns)
    if not isinstance(kind, T.TimestampType | T.TimestampNTZType | T.DateType):
        message = f"the watermark column {table.watermark} of {table.source} is {kind.simpleString()}, not a timestamp"
        raise ConfigError(message, remedy="name a timestamp column as watermark_column")
    if table.sql_file is None:
        _check_columns(rows.columns, _needed(table), str(table.source))


def with_refusals(rows: DataFrame, table: CuratedTable) -> DataFrame:
    """Source rows, each with the reason it may not go on, or none.

    Without a transformation the start is known here already: a row that lacks it must not first win over one that has it.
    """
    required = requirements(table.entity_key, table.watermark, rows.columns)
    if table.sql_file is None and table.scd_type == 2:  # noqa: PLR2004  (SCD type 2)
        required.setdefault(table.effective_from, f"{START_RULE}: {table.effective_from}")
    return with_reason(rows, required)


def admitted(rows: DataFrame, table: CuratedTable) -> DataFrame:
    """Source rows that go on to the transformation; one per key, unless late rows are to be placed.

    Without a transformation these are the batch, and they keep their `_pk_hash`.
    """
    good = rows.where(F.col(REASON).isNull())
    has_key = _has(rows, table.entity_key) and _has(rows, [order.column for order in table.order])
    if table.place_late or not has_key:
        return good.drop(REASON)
    latest = good.transform(with_key_hash, table).transform(deduplicated, table.order).drop(REASON)
    return latest if table.sql_file is None else latest.drop(PK_HASH)


def all_rows_of_these_keys(source: DataFrame, batch: DataFrame, table: CuratedTable) -> DataFrame:
    """Every row that the source has of the keys of the batch: late rows find their neighbours there."""
    if not _has(source, table.entity_key):
        message = f"out_of_order: place needs the key columns {', '.join(table.entity_key)} in {table.source} itself"
        raise ConfigError(message, remedy="make the key in the source, or use out_of_order: ignore")
    wanted = batch.transform(with_key_hash, table).select(PK_HASH).distinct()
    return source.transform(with_key_hash, table).join(wanted, PK_HASH, "left_semi").drop(PK_HASH)


def transformed(session: SparkSession, rows: DataFrame, table: CuratedTable) -> DataFrame:
    """The query's answer over the view `source_incremental`; without a query, the view as it is."""
    if table.sql_file is None:
        return rows
    try:
        sql = table.sql_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        message = f"the SQL file {table.sql_file} cannot be read as UTF-8 text"
        raise ConfigError(message, remedy="create it, save it as UTF-8, or mend transformation_sql_path") from None
    rows.createOrReplaceTempView(VIEW)
    # Inside parentheses only a query parses: a statement that would change something cannot be slipped in.
    return session.sql(f"SELECT * FROM ({_END.sub('', sql)}\n)")  # noqa: S608  (the user's own query is the point)


def batch_rows(rows: DataFrame, view: DataFrame, table: CuratedTable) -> DataFrame:
    """Transformed rows with key hash, start and state hash. Grain: one admitted row per key (with `place`: all), and the refused."""
    _check_columns(
        rows.columns, _needed(table, timed=False), f"the transformation of {table.target}" if table.sql_file else str(table.source)
    )
    _check_columns(
        [*rows.columns, *view.columns], [order.column for order in table.order], f"{table.source} or its transformation (dedup order)"
    )
    is_deduplicated = table.sql_file is None and not table.place_late
    keyed = rows if is_deduplicated else _without(rows, PK_HASH, REASON).transform(with_key_hash, table)
    timed = keyed.transform(_timed, view, table)
    required = requirements(table.entity_key, None, timed.columns)
    if table.scd_type == 2:  # noqa: PLR2004  (SCD type 2)
        required[START] = f"{START_RULE}: {table.effective_from}"
    checked = with_reason(timed, required)
    latest = checked if table.place_late or is_deduplicated else deduplicated(checked, table.order)
    return with_state_hash(latest, table)


def _timed(rows: DataFrame, view: DataFrame, table: CuratedTable) -> DataFrame:
    """Each row with its own time. A query that does not hand the time on gets it back by key from the row it read."""
    if _has(rows, [table.effective_from]):
        return rows.withColumn(START, col(table.effective_from).cast("timestamp"))
    if table.scd_type == 1:
        return rows.withColumn(START, F.lit(None).cast("timestamp"))
    if table.place_late or not _has(view, [*table.entity_key, table.effective_from]):
        message = f"the transformation of {table.target} does not hand on {table.effective_from}, where a version starts"
        raise ConfigError(message, remedy=f"add {table.effective_from} to the SELECT, or set effective_from_column")
    times = view.transform(with_key_hash, table).select(PK_HASH, col(table.effective_from).cast("timestamp").alias(START))
    return rows.join(times, PK_HASH, "left")


def _without(rows: DataFrame, *names: str) -> DataFrame:
    return rows.drop(*(name for name in rows.columns if name.lower() in names))


def _needed(table: CuratedTable, *, timed: bool = True) -> list[str]:
    time = [table.effective_from] if timed and table.scd_type == 2 else []  # noqa: PLR2004  (SCD type 2)
    return [*table.entity_key, *(table.tracked or ()), *time]


def _has(rows: DataFrame, names: Iterable[str]) -> bool:
    return {name.lower() for name in names} <= {name.lower() for name in rows.columns}


def _check_columns(columns: Sequence[str], needed: Iterable[str], where: str) -> None:
    present = {name.lower() for name in columns}
    missing = [name for name in dict.fromkeys(needed) if name.lower() not in present]
    if missing:
        raise _missing(missing, where, columns)


def _missing(names: Sequence[str], where: str, columns: Sequence[str]) -> ConfigError:
    what = f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"
    return ConfigError(f"{what} not in {where}", remedy=f"it has: {', '.join(columns)}")
