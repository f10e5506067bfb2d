"""Reading the store without ever changing it: what is not there reads as empty."""

import json
from typing import Any

from sqlalchemy import URL, Column, Row, Select, Table, func, inspect, select

from karat.state.address import driver_url
from karat.state.engine import reaching, reading_engine
from karat.state.records import RunRecord, StageRecord, Watermark
from karat.state.schema import ROW_COUNTS, RUNS, STAGES, WATERMARKS
from karat.state.upgrade import version_of
from karat.telemetry.events import Rows


class StateReader:
    """Answers about past runs; each answer looks again, so a reader may live long."""

    def __init__(self, url: URL) -> None:
        self._url = url
        self._engine = reading_engine(url)

    @classmethod
    def open(cls, url: str | URL) -> "StateReader":
        """A reader of the store at this address; nothing is made or upgraded there."""
        return cls(driver_url(url))

    def watermarks(self) -> dict[str, Watermark]:
        """How far each stage has consumed its source, by stage."""
        rows = self._rows(WATERMARKS, select(WATERMARKS).order_by(WATERMARKS.c.stage))
        return {row.stage: Watermark(row.stage, row.position, row.run_id, row.updated_at) for row in rows}

    def runs(self, limit: int = 20) -> list[RunRecord]:
        """The latest runs, newest first."""
        latest = select(RUNS).order_by(RUNS.c.started_at.desc(), RUNS.c.run_id.desc()).limit(limit)
        return [_run(row) for row in self._rows(RUNS, latest)]

    def last_stages(self) -> dict[str, StageRecord]:
        """What became of each stage when it was last planned, by stage."""
        last = select(STAGES.c.stage, func.max(STAGES.c.started_at).label("started_at")).group_by(STAGES.c.stage).subquery()
        same = (STAGES.c.stage == last.c.stage) & (STAGES.c.started_at == last.c.started_at)
        rows = self._rows(
            STAGES, select(*self._columns(STAGES)).select_from(STAGES).join(last, same).order_by(STAGES.c.stage, STAGES.c.run_id)
        )
        return {row.stage: _stage(row) for row in rows}

    def close(self) -> None:
        """Let go of the database."""
        if self._engine is not None:
            self._engine.dispose()

    def _columns(self, table: Table) -> list[Column[Any]]:
        """The columns that the store has: one that no run has upgraded yet lacks the newest."""
        if self._engine is None:
            self._engine = reading_engine(self._url)
        if self._engine is None:
            return list(table.columns)
        with reaching(self._url), self._engine.connect() as connection:
            store = inspect(connection)
            there = (
                {column["name"] for column in store.get_columns(table.name)} if store.has_table(table.name) else set(table.columns.keys())
            )
        return [column for column in table.columns if column.name in there]

    def _rows(self, table: Table, query: Select[Any]) -> list[Row[Any]]:
        if self._engine is None:
            self._engine = reading_engine(self._url)
        if self._engine is None:
            return []
        with reaching(self._url), self._engine.connect() as connection:
            if version_of(connection) == 0 or not inspect(connection).has_table(table.name):
                return []
            return list(connection.execute(query).all())


def _run(row: Row[Any]) -> RunRecord:
    counts = json.loads(row.counts)
    return RunRecord(row.run_id, row.project, row.started_at, row.config_hash, row.finished_at, row.ok, row.seconds, counts)


def _stage(row: Row[Any]) -> StageRecord:
    return StageRecord(
        run_id=row.run_id,
        stage=row.stage,
        status=row.status,
        started_at=row.started_at,
        finished_at=row.finished_at,
        seconds=row.seconds,
        rows=Rows(**{count: row._mapping.get(f"rows_{count}", 0) for count in ROW_COUNTS}),  # noqa: SLF001 - public in SQLAlchemy, despite its name
        error=row.error,
        notes=tuple(json.loads(row.notes)),
    )
