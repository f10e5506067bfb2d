"""How far each stage has read: from the mirror, and where that is silent from the lake's own commits."""

import json
from typing import Any

from karat.config.resolved import Config
from karat.errors import KaratError
from karat.state.address import state_url
from karat.state.reader import StateReader


def positions(config: Config) -> dict[str, str]:
    """Stage to watermark, as text. An unreachable mirror is no obstacle: a run asks the lake again anyway."""
    try:
        reader = StateReader.open(state_url(config.settings.state, config.folder))
        found = {stage: mark.position for stage, mark in reader.watermarks().items()}
        reader.close()
    except KaratError:
        found = {}
    known = {str(table.target) for table in config.curated}
    silent = known - found.keys()
    return {**{name: mark for name in silent if (mark := committed_position(config.lake, name))}, **found}


def committed_position(lake: str, name: str) -> str | None:
    """The watermark in the newest commit of ours, read from a Delta log without a JVM; None where there is none to read."""
    from deltalake import DeltaTable  # noqa: PLC0415  (a quarter of a second that most commands need not spend)
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    path = f"{lake}/{name.replace('.', '/')}"
    try:
        if not DeltaTable.is_deltatable(path):
            return None
        history = DeltaTable(path).history()
    except (DeltaError, OSError, ValueError):
        return None
    return next((mark for commit in history if (mark := _watermark(commit, name))), None)


def _watermark(commit: dict[str, Any], stage: str) -> str | None:
    try:
        record = json.loads(commit.get("userMetadata") or "")
    except ValueError:
        return None
    ours = isinstance(record, dict) and record.get("karat") == 1 and record.get("stage") == stage
    return record["position"].get("watermark") if ours else None
