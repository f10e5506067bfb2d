"""Curation's transforms on literal tables: a table's rules, its batch, what it holds, and what it holds once the acts are done."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.config.names import TableName
from karat.config.resolved import AuditTables, CuratedTable, OrderBy
from karat.curation.hash_columns import with_key_hash, with_state_hash
from karat.temporal.columns import ACTION, DIFF_HASH, MATCH_KEY, MATCH_START, MATCH_STATE, PK_HASH, REASON, START, col
from karat.temporal.hashing import hash_of

_PLAIN = CuratedTable(
    source=TableName("bronze", "said"),
    target=TableName("silver", "held"),
    scd_type=2,
    keys=("id",),
    source_system="system",
    watermark="ts",
    lookback="2 HOURS",
    order=(OrderBy("ts", descending=True), OrderBy("seq", descending=True)),
    start="start",
    end="end",
    current="current",
    tracked=("name",),
    sql_file=None,
    place_late=False,
    hash="md5",
    effective_from="ts",
    add_columns=False,
    open_end=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    audit_tables=AuditTables(TableName("silver", "control"), TableName("silver", "audit")),
)


def curated_table(**changes: Any) -> CuratedTable:  # noqa: ANN401 - whatever the rules hold
    """Rules for `id, system, name, ts, seq`, versions of `name` by `ts`, except as said."""
    return replace(_PLAIN, **changes)


def batch_of(rows: DataFrame, table: CuratedTable) -> DataFrame:
    """Rows ready to be set against the target; a column `reason` refuses its row."""
    reason = col("reason") if "reason" in rows.columns else F.lit(None)
    timed = rows.withColumns({START: col(table.effective_from).cast("timestamp"), REASON: reason.cast("string")})
    return timed.drop("reason").transform(with_key_hash, table).transform(with_state_hash, table)


def held_of(rows: DataFrame, table: CuratedTable) -> DataFrame:
    """Rows as the target holds them, with their hashes; a version's own time is its start where the table does not say."""
    timed = rows if table.effective_from in rows.columns else rows.withColumn(table.effective_from, col(table.start))
    state = hash_of(table.tracked or (), timed.schema, table.hash)
    return timed.transform(with_key_hash, table).withColumn(DIFF_HASH, state)


def after(changes: DataFrame, held: DataFrame, table: CuratedTable, *columns: str) -> list[tuple[object, ...]]:
    """What the target holds once every act is done, sorted. An act about a row that is not held, or held twice, is an error."""
    rows: dict[tuple[object, ...], dict[str, Any]] = {}
    _add((row.asDict() for row in held.collect()), rows, table)
    acts = [row.asDict() for row in changes.collect()]
    for act in acts:
        if act[ACTION] == "delete":
            del rows[_matched(act, table)]
        elif act[ACTION] == "update":
            kept = act if table.scd_type == 1 else rows[_matched(act, table)] | {name: act[name] for name in (table.end, table.current)}
            assert rows.pop(_matched(act, table)) is not None
            _add([kept], rows, table)
    _add((act for act in acts if act[ACTION] == "insert"), rows, table)
    chosen = (tuple(row[name] for name in columns) for row in rows.values())
    return sorted(chosen, key=lambda row: tuple((cell is not None, str(cell)) for cell in row))


def _add(new: Iterable[dict[str, Any]], rows: dict[tuple[object, ...], dict[str, Any]], table: CuratedTable) -> None:
    for row in new:
        place = (row[PK_HASH],) if table.scd_type == 1 else (row[PK_HASH], row[table.start], row[DIFF_HASH])
        assert place not in rows, f"two rows at one place: {row} and {rows[place]}"
        rows[place] = row


def _matched(act: dict[str, Any], table: CuratedTable) -> tuple[object, ...]:
    return (act[MATCH_KEY],) if table.scd_type == 1 else (act[MATCH_KEY], act[MATCH_START], act[MATCH_STATE])
