"""Rules that have decided beliefs stay as they were: what is on record of them is held against the declaration."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karat.config.load import load
from karat.config.resolved import Belief
from karat.errors import ConfigError
from karat.state.rules_used import check_unedited
from tests.support.beliefs import RULES, declare
from tests.support.entities import CUSTOMER, entity_project

SECOND = {**RULES[0], "version": 2, "in_force_from": "2026-03-01"}
JUDGED_AT = datetime(2026, 4, 1, tzinfo=UTC)


def belief(folder: Path, *rules: dict[str, Any]) -> Belief:
    project = entity_project(folder, CUSTOMER)
    declare(project, list(rules))
    return load(project).beliefs[0]


def on_record(used: Belief) -> dict[str, Any]:
    return {"rules": {str(rule.version): rule.content_hash for rule in used.rules}, "known_at": JUDGED_AT.isoformat()}


def test_nothing_on_record_and_the_same_rules_are_fine(tmp_path: Path) -> None:
    used = belief(tmp_path, RULES[0], SECOND)
    check_unedited(used, {})
    check_unedited(used, on_record(used))


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([{**RULES[0], "delete": {"sources": ["CORE"]}}, SECOND], "rule version 1 of silver.customer .* has been edited since"),
        ([{**RULES[0], "in_force_from": "2026-01-02"}, SECOND], "rule version 1 of silver.customer .* has been edited since"),
        ([SECOND], "rule version 1 of silver.customer .* is gone since"),
    ],
    ids=["edited", "moved", "gone"],
)
def test_a_version_that_was_in_force_is_not_touched(tmp_path: Path, rules: list[dict[str, Any]], says: str) -> None:
    record = on_record(belief(tmp_path / "then", RULES[0], SECOND))
    with pytest.raises(ConfigError, match=says) as refused:
        check_unedited(belief(tmp_path / "now", *rules), record)
    assert "add a version" in str(refused.value.remedy)


def test_a_new_version_is_not_dated_back(tmp_path: Path) -> None:
    record = on_record(belief(tmp_path / "then", RULES[0]))
    with pytest.raises(ConfigError, match="begins at 2026-03-01 00:00:00, a time that has been decided without it") as refused:
        check_unedited(belief(tmp_path / "now", RULES[0], SECOND), record)
    assert "let it begin after 2026-04-01" in str(refused.value.remedy)


def test_a_new_version_may_begin_later(tmp_path: Path) -> None:
    record = on_record(belief(tmp_path / "then", RULES[0]))
    check_unedited(belief(tmp_path / "now", RULES[0], {**SECOND, "in_force_from": "2026-04-01T00:00:01"}), record)
