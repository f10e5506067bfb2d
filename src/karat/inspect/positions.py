"""How far each stage has read: from the mirror, and where that is silent from the lake's own commits."""

from collections.abc import Mapping
from typing import Any

from karat.config.resolved import Belief, Config
from karat.errors import KaratError
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
    known = {str(table.target) for table in config.curated}
    silent = known - found.keys()
    beliefs = {
        str(belief.table): f"batch {position['batch']}, rule version {position['rule']}"
        for belief in config.beliefs
        if str(belief.table) not in found and "batch" in (position := _belief_position(config, belief))
    }
    return {**{name: mark for name in silent if (mark := committed_position(config.lake, name))}, **beliefs, **found}


def check_rules(config: Config, *only: Belief) -> None:
    """Raises `ConfigError` when a rule that has decided beliefs was edited since, as far as that can be told without Spark."""
    for belief in only or config.beliefs:
        check_unedited(belief, _belief_position(config, belief))


def _belief_position(config: Config, belief: Belief) -> Mapping[str, Any]:
    """What the last commit of a belief's history says; nothing where it cannot be read without Spark."""
    from karat.state.commits import checkpoint_in  # noqa: PLC0415
    from karat.state.local_tables import local_history  # noqa: PLC0415  (a moment that a project without beliefs saves)

    if config.settings.catalog is not None:
        return {}
    name = belief.history
    found = checkpoint_in(local_history(f"{config.lake}/{name.schema}/{name.table}", None) or [], str(belief.table))
    return found.position if found else {}


def committed_position(lake: str, name: str) -> str | None:
    """The watermark in the target's own log; None where there is none, or none to read without Spark."""
    from karat.state.commits import checkpoint_in  # noqa: PLC0415
    from karat.state.local_tables import local_history  # noqa: PLC0415  (a moment that a kept mirror saves)

    checkpoint = checkpoint_in(local_history(f"{lake}/{name.replace('.', '/')}", None) or [], name)
    mark = checkpoint.position.get("watermark") if checkpoint else None
    return None if mark is None else str(mark)
