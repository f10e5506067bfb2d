"""How far each stage has read: from the mirror, and where that is silent from the lake's own commits."""

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
    """The watermark in the target's own log; None where there is none, or none to read without Spark."""
    from karat.state.commits import checkpoint_in, local_history  # noqa: PLC0415  (a moment that a kept mirror saves)

    checkpoint = checkpoint_in(local_history(f"{lake}/{name.replace('.', '/')}", None) or [], name)
    mark = checkpoint.position.get("watermark") if checkpoint else None
    return None if mark is None else str(mark)
