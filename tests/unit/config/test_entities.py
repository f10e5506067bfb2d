"""What an entity's declaration may say, and how it is told what it may not."""

from pathlib import Path
from typing import Any

import pytest

from karat.config.declared.entity import Feed
from karat.config.declared.grading import graded
from karat.config.load import load
from karat.config.problems import ConfigProblems
from karat.plan.build import build_plan
from tests.support.entities import CRM, CUSTOMER, drop, entity_project


def _problems(folder: Path, **changed: Any) -> str:  # noqa: ANN401
    with pytest.raises(ConfigProblems) as raised:
        load(entity_project(folder, {**CUSTOMER, **changed}))
    return str(raised.value)


def _feed(**changed: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    return [{name: value for name, value in {**CRM, **changed}.items() if value is not None}]


def test_an_entity_becomes_a_stage_with_its_tables(tmp_path: Path) -> None:
    stage = build_plan(load(entity_project(tmp_path, CUSTOMER)), {}).stages[0]
    assert stage.name == "bronze.customer"
    assert stage.writes == ("bronze.customer", "bronze.customer_assertions", "bronze.customer_quarantine")
    assert stage.reads == ("data/crm/*.ndjson", "data/core/*.ndjson")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"attributes": {"name": "strng"}}, "not a type"),
        ({"attributes": {"amount": "decimal(39,2)"}}, "not a type"),
        ({"attributes": {"op": "string"}}, "op is a reserved column name"),
        ({"attributes": {"Customer_ID": "string"}}, "two columns have the same name"),
        ({"key": ["customer_id", "customer_id"]}, "a key column is named twice"),
        ({"attributes": {"a`b": "string"}}, "may not hold a backtick"),
        ({"untracked": ["nickname"]}, "untracked names nickname"),
        ({"time_bases": "source"}, "did you mean `time_basis`"),
        ({"feeds": [CRM, CRM]}, "two feeds have the same name"),
        ({"feeds": _feed(map={"nickname": "nick"})}, "maps nickname"),
        ({"feeds": _feed(absence_means="deleted")}, "only full snapshots can say that something is absent"),
        ({"feeds": _feed(snapshot_of="data_date")}, "`snapshot_of` belongs to full snapshots"),
        ({"feeds": _feed(event_time=None)}, "no reliable source time"),
        ({"feeds": _feed(load_type=None)}, "no explicit load type"),
        ({"feeds": _feed(contract={"has_delete_semantics": False})}, "the two never mix"),
        ({"feeds": _feed(envelope="debezium", load_type="FULL")}, "a change stream's load_type is PARTIAL"),
        ({"feeds": _feed(envelope="payload")}, "extraction_version"),
        ({"feeds": _feed(**{"from": {"kind": "ftp", "path": "x"}})}, "files"),
        ({"feeds": _feed(**{"from": {"kind": "table", "table": "../x/y"}})}, "not a path inside the lake"),
        ({"type": "transaction", "feeds": _feed(load_type="FULL", op=None, absence_means="deleted")}, "facts are not deleted"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_told_with_its_remedy(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    said = _problems(tmp_path, **changed)
    assert told in said
    assert "remedy:" in said


@pytest.mark.parametrize(
    ("contract", "grade"),
    [
        ({}, "DEFENSIBLE"),
        ({"has_source_time": False}, "LIMITED_FALLBACK_ONLY"),
        ({"has_explicit_load_type": False}, "LIMITED_FALLBACK_ONLY"),
        ({"has_delete_semantics": False}, "LIMITED_FALLBACK_ONLY"),
        ({"has_stable_bk": False}, "REJECT_FOR_AUTHORITATIVE_BRONZE"),
        ({"has_stable_bk": False, "has_source_time": False}, "REJECT_FOR_AUTHORITATIVE_BRONZE"),
    ],
)
def test_a_feed_is_graded_by_what_it_can_substantiate(contract: dict[str, bool], grade: str) -> None:
    assert graded(Feed.model_validate({**CRM, "contract": contract})).grade == grade


def test_a_limited_feed_may_speak_in_platform_time(tmp_path: Path) -> None:
    feeds = _feed(event_time=None, contract={"has_source_time": False})
    config = load(entity_project(tmp_path, {**CUSTOMER, "time_basis": "platform", "feeds": feeds}))
    assert config.entities[0].feeds[0].grading.reason == "no reliable source time"


def test_data_of_a_feed_is_no_declaration(tmp_path: Path) -> None:
    feeds = _feed(**{"from": {"kind": "files", "path": "data/crm/*.json", "format": "json"}})
    folder = entity_project(tmp_path, {**CUSTOMER, "feeds": feeds})
    drop(folder, "crm/1.json", ['{"kind": "payment"}', '{"kind": "payment"}', "{broken"])
    assert load(folder).entities[0].name == "customer"


def test_two_entities_of_one_name_are_told_where(tmp_path: Path) -> None:
    folder = entity_project(tmp_path, CUSTOMER)
    (folder / "again.yml").write_text((folder / "customer.yml").read_text())
    with pytest.raises(ConfigProblems, match=r"writes this table already"):
        load(folder)
