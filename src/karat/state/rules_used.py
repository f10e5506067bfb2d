"""A rule that has decided beliefs is on record with what it said: it is never edited, another version follows it."""

from collections.abc import Mapping

from karat.config.resolved import Belief
from karat.errors import ConfigError


def check_unedited(belief: Belief, used: Mapping[str, str]) -> None:
    """Raises when a version that was used says something else now, or is gone."""
    now = {str(rule.version): rule.content_hash for rule in belief.rules}
    for version, content in used.items():
        if now.get(version) == content:
            continue
        what = "is gone" if version not in now else "has been edited"
        message = f"{belief.place}: rule version {version} of {belief.table} has decided what is believed, and {what} since"
        raise ConfigError(message, remedy="put it back as it was, and add a version: what was believed under it must stay answerable")
