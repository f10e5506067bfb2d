"""The only one who writes the store: each event of a run becomes one transaction."""

import json
from datetime import timedelta
from threading import Lock
from typing import Any, Final, assert_never

from sqlalchemy import URL, Connection, Engine, Table, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from karat.state.address import driver_url
from karat.state.engine import lost_a_race, reaching, writing_engine
from karat.state.schema import EVENTS, ROW_COUNTS, RUNS, STAGES, WATERMARKS
from karat.state.upgrade import unlock, upgrade
from karat.telemetry.events import Event, Heartbeat, Rows, RunFinished, RunStarted, StageFinished, StageStarted, as_record

_ATTEMPTS: Final = 3


class StateWriter:
    """Writes events, from any thread, one at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = Lock()

    @classmethod
    def open(cls, url: str | URL) -> "StateWriter":
        """Open the store, made or upgraded first where needed; hand in `state_url(...)` as it is, since its text hides the password."""
        address = driver_url(url)
        engine = writing_engine(address)
        try:
            with reaching(address), engine.connect() as connection:
                try:
                    with connection.begin():
                        upgrade(connection)
                finally:
                    unlock(connection)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine)

    def record(self, event: Event) -> None:
        """Keep the event, and what it says about its run, its stage and its stage's watermark, all or nothing."""
        with self._lock, reaching(self._engine.url):
            for _ in range(_ATTEMPTS - 1):
                try:
                    return self._keep(event)
                except DBAPIError as failed:
                    if not lost_a_race(failed):
                        raise
            return self._keep(event)

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._engine.dispose()

    def _keep(self, event: Event) -> None:
        with self._engine.begin() as connection:
            _tell(connection, event)
            body = json.dumps(as_record(event))
            connection.execute(insert(EVENTS).values(run_id=event.run_id, at=event.at, kind=type(event).__name__, body=body))


def _tell(connection: Connection, event: Event) -> None:
    """What the event changes besides the list of events."""
    match event:
        case RunStarted():
            run = {"project": event.project, "started_at": event.at, "config_hash": event.config_hash, "counts": "{}"}
            _put(connection, RUNS, {"run_id": event.run_id}, run)
        case StageStarted():
            _put(connection, STAGES, _stage_key(event), {"status": "running", "started_at": event.at, "notes": "[]", **_counts(Rows())})
        case StageFinished():
            _finish_stage(connection, event)
        case RunFinished():
            ended = {"finished_at": event.at, "ok": event.ok, "seconds": event.seconds, "counts": json.dumps(event.counts)}
            connection.execute(update(RUNS).where(RUNS.c.run_id == event.run_id).values(**ended))
        case Heartbeat():
            pass
        case _:
            assert_never(event)


def _finish_stage(connection: Connection, event: StageFinished) -> None:
    """A stage that was skipped never started: its row is made here. A failed stage leaves its watermark where it was."""
    ended = {
        "status": event.status,
        "finished_at": event.at,
        "seconds": event.seconds,
        "error": event.error,
        "notes": json.dumps(event.notes),
        **_counts(event.rows),
    }
    started = {"started_at": event.at - timedelta(seconds=event.seconds)}
    _put(connection, STAGES, _stage_key(event), ended, only_new=started)
    if event.watermark is not None and event.status in {"succeeded", "unchanged"}:
        position = {"position": event.watermark, "run_id": event.run_id, "updated_at": event.at}
        _put(connection, WATERMARKS, {"stage": event.stage}, position)


def _put(
    connection: Connection, table: Table, key: dict[str, str], values: dict[str, Any], *, only_new: dict[str, Any] | None = None
) -> None:
    """Change the row with this key or make it; the three databases agree on no single statement for that.

    It looks first, because an update that finds no row makes InnoDB lock the gap, and two who then insert into it block each other.
    """
    here = [table.c[name] == value for name, value in key.items()]
    if connection.scalar(select(func.count()).select_from(table).where(*here)):
        connection.execute(update(table).where(*here).values(**values))
    else:
        connection.execute(insert(table).values(**key, **values, **(only_new or {})))


def _stage_key(event: StageStarted | StageFinished) -> dict[str, str]:
    return {"run_id": event.run_id, "stage": event.stage}


def _counts(rows: Rows) -> dict[str, int]:
    return {f"rows_{count}": getattr(rows, count) for count in ROW_COUNTS}
