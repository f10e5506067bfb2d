"""A rule that has been in force is on record with what it said: it is never edited, another version follows it, and none is dated back."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from karat.config.resolved import Belief
from karat.errors import ConfigError


def check_unedited(belief: Belief, position: Mapping[str, Any]) -> None:
    """Raises when a version that was in force says something else now or is gone, or a new one claims a time that has been decided already.

    `position` is that of the last commit of the belief's history.
    """
    used: Mapping[str, str] = position.get("rules", {})
    now = {str(rule.version): rule.content_hash for rule in belief.rules}
    for version, content in used.items():
        if now.get(version) == content:
            continue
        what = "is gone" if version not in now else "has been edited"
        message = f"{belief.place}: rule version {version} of {belief.table} has decided what is believed, and {what} since"
        raise ConfigError(message, remedy="put it back as it was, and add a version: what was believed under it must stay answerable")
    judged_at = datetime.fromisoformat(position["known_at"]) if "known_at" in position else None
    for rule in belief.rules:
        if judged_at is not None and str(rule.version) not in used and rule.in_force_from <= judged_at:
            which = f"rule version {rule.version} of {belief.table} begins at {rule.in_force_from:%Y-%m-%d %H:%M:%S}"
            message = f"{belief.place}: {which}, a time that has been decided without it"
            raise ConfigError(message, remedy=f"let it begin after {judged_at:%Y-%m-%d %H:%M:%S}: past answers never change")
