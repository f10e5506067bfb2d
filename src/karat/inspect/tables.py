"""Every table of the lake, described by its own log. No JVM."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from karat.config.names import local_path
from karat.config.resolved import Config
from karat.errors import ConfigError, KaratError
from karat.inspect.progress import read_run
from karat.state.address import state_url
from karat.state.reader import StateReader
from karat.state.records import StageRecord


@dataclass(frozen=True)
class LakeTable:
    """A table: its layer, rows and version, when it last changed and how its last run ended."""

    name: str
    layer: str
    rows: int | None
    version: int | None
    changed_at: str | None
    last_run: str | None
    status: str | None


def lake_tables(config: Config) -> list[LakeTable]:
    """All Delta tables under the lake's root, by name."""
    lake = local_path(config.lake)
    if lake is None or config.settings.catalog is not None:
        message = f"the tables of {config.settings.catalog or config.lake} cannot be listed without Spark yet"
        raise ConfigError(message, remedy="ask the catalog itself: SHOW TABLES")
    try:
        reader = StateReader.open(state_url(config.settings.state, config.folder))
        stages = reader.last_stages()
        reader.close()
    except KaratError:
        stages = {}
    found = []
    for path in _delta_folders(Path(lake)):
        name = path.relative_to(lake).as_posix().replace("/", ".", 1)
        last = stages.get(name)
        found.append(_described(name, path, last.run_id if last else None, _status(last, config)))
    return found


def _status(last: StageRecord | None, config: Config) -> str | None:
    """How the last run of a table ended. A run that was killed has not said so itself, but its log tells."""
    if last is None or last.status != "running":
        return last.status if last else None
    try:
        run = read_run(config.folder / ".karat" / "logs", last.run_id)
    except KaratError:
        return last.status
    return next((stage.state for stage in run.stages if stage.stage == last.stage), last.status)


def _delta_folders(lake: Path) -> Iterator[Path]:
    for where, folders, _ in os.walk(lake):
        if "_delta_log" in folders:
            folders.clear()
            yield Path(where)
        folders.sort()


def _described(name: str, path: Path, run_id: str | None, status: str | None) -> LakeTable:
    layer = name.partition(".")[0]
    try:
        table = DeltaTable(path)
        changed = table.history(1)[0].get("timestamp")
        return LakeTable(name, layer, _live_rows(table), table.version(), _iso(changed), run_id, status)
    except DeltaError:
        return LakeTable(name, layer, None, None, None, run_id, status)


def _live_rows(table: DeltaTable) -> int:
    """The number of rows, by query: the library's own count includes rows that deletion vectors have removed."""
    answer = QueryBuilder().register("this", table).execute("SELECT count(*) AS rows FROM this").read_all()
    return int(answer["rows"][0].as_py())


def _iso(milliseconds: object) -> str | None:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds") if isinstance(milliseconds, int) else None
