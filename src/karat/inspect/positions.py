"""How far each stage has read: from the mirror, and where that is silent from the lake's own commits."""

from collections.abc import Mapping
from typing import Any

from karat.config.names import TableName, local_path
from karat.config.resolved import Belief, Config
from karat.errors import KaratError
from karat.state.commits import Checkpoint, checkpoint_in
from karat.state.rules_used import check_unedited


def positions(config: Config) -> dict[str, str]:
    """Stage to watermark, as text. An unreachable mirror is no obstacle: a run asks the lake again anyway."""
    from karat.state.address import state_url  # noqa: PLC0415  (a quarter of a second that looking at rules saves)
    from karat.state.reader import StateReader  # noqa: PLC0415

    try:
        reader = StateReader.open(state_url(config.settings.state, config.folder))
        found = {stage: mark.position for stage, mark in reader.watermarks().items()}
        reader.close()
    except KaratError:
        found = {}
    for table in config.curated:
        if str(table.target) not in found and (mark := _position(config, table.target, str(table.target)).get("watermark")) is not None:
            found[str(table.target)] = str(mark)
    for belief in config.beliefs:
        if str(belief.table) not in found and "batch" in (position := _belief_position(config, belief)):
            found[str(belief.table)] = f"batch {position['batch']}, rule version {position['rule']}"
    for star in config.star:
        if str(star.table) not in found and (sources := _position(config, star.table, str(star.table)).get("sources")):
            found[str(star.table)] = ", ".join(f"{each['table']} version {each['version']}" for each in sources.values())
    return found


def check_rules(config: Config, *only: Belief) -> None:
    """Raises `ConfigError` when a rule that has decided beliefs was edited since, as far as that can be seen without Spark."""
    for belief in only or config.beliefs:
        check_unedited(belief, _belief_position(config, belief))


def _belief_position(config: Config, belief: Belief) -> Mapping[str, Any]:
    """What the last commit of a belief's history says; nothing where it cannot be read without Spark."""
    return _position(config, belief.history, str(belief.table))


def _position(config: Config, table: TableName, stage: str) -> Mapping[str, Any]:
    lake = local_path(config.lake)
    if config.settings.catalog is not None or lake is None:
        return {}
    found = _last_commit(f"{lake}/{table.path or f'{table.schema}/{table.table}'}", stage)
    return found.position if found else {}


def _last_commit(path: str, stage: str) -> Checkpoint | None:
    """The stage's last commit in the log of a table on this machine; None where there is no table that delta-rs can read."""
    from deltalake import DeltaTable  # noqa: PLC0415  (a moment that a project without beliefs saves)
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        return checkpoint_in(DeltaTable(path).history(), stage)
    except (DeltaError, OSError, ValueError):
        return None
