"""`kind: belief`: what is refused, with the place and the remedy; what is filled in; and what a plan says about rules."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karat.belief.schema import belief_schema, conflicts_schema, history_schema, restatements_schema
from karat.config.declared.belief import BELIEF_COLUMNS, RESERVED_FOR_KEYS
from karat.config.load import load
from karat.config.problems import ConfigProblems
from karat.config.resolved import Belief
from karat.plan.build import build_plan
from karat.temporal.entity_schema import EntitySchema
from tests.support.beliefs import RULES, declare
from tests.support.entities import CUSTOMER, entity_project

STATUS, CONTACT = RULES[0]["groups"]["status"], RULES[0]["groups"]["contact"]
EVERYTHING = {"attributes": ["name", "address", "status"]}
SECOND = {**RULES[0], "version": 2, "in_force_from": "2026-06-01T12:00:00+02:00"}


def believed(folder: Path, rules: list[dict[str, Any]], entity: dict[str, Any] = CUSTOMER) -> Belief:
    project = entity_project(folder, entity)
    declare(project, rules)
    return load(project).beliefs[0]


def problem(folder: Path, rules: list[dict[str, Any]], entity: dict[str, Any] = CUSTOMER) -> str:
    with pytest.raises(ConfigProblems) as refused:
        believed(folder, rules, entity)
    assert len(refused.value.problems) == 1, refused.value.problems
    return str(refused.value.problems[0])


def with_groups(**groups: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**RULES[0], "groups": groups}]


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (
            with_groups(status=STATUS, contact=EVERYTHING),
            "status is in group status and in group contact",
        ),
        (with_groups(status=STATUS, contact={"attributes": ["name"]}), "version 1: address is in no group"),
        (with_groups(status={**STATUS, "sources": {"CORR": 1}}, contact=CONTACT), "did you mean CORE?"),
        (with_groups(status={**STATUS, "attributes": ["state"]}, all=EVERYTHING), "no such attribute"),
        ([{**RULES[0], "delete": {"sources": ["KYC"]}}], "KYC is no source of the entity"),
        ([{**RULES[0], "delete": {"sources": ["CORE", "CORE"]}}], "a source is named twice"),
        ([SECOND, RULES[0]], "version 1 comes after version 2"),
        ([RULES[0], {**RULES[0], "version": 2}], "the two overlap"),
        ([{**RULES[0], "in_force_from": "some day"}], "not a day or a time"),
        ([{**RULES[0], "groups": {}}], "must not be empty"),
        ([], "must not be empty"),
        ([{**RULES[0], "because": "so"}], "not a setting here"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, rules: list[dict[str, Any]], says: str) -> None:
    said = problem(tmp_path, rules)
    assert says in said
    assert "belief-customer.yml:" in said


def test_an_unknown_entity_is_named_with_the_nearest(tmp_path: Path) -> None:
    said = problem(tmp_path, RULES, {**CUSTOMER, "name": "customers"})
    assert "there is no such entity" in said
    assert "did you mean customers?" in said


def test_facts_are_not_believed(tmp_path: Path) -> None:
    assert "facts are not believed" in problem(tmp_path, RULES, {**CUSTOMER, "type": "transaction"})


def test_a_column_cannot_have_a_name_that_beliefs_give_their_own_meaning(tmp_path: Path) -> None:
    entity = {**CUSTOMER, "attributes": {**CUSTOMER["attributes"], "valid_from": "timestamp"}}
    rules = with_groups(status=STATUS, contact={**CONTACT, "attributes": ["name", "address", "valid_from"]})
    assert "column valid_from has a name" in problem(tmp_path, rules, entity)


def test_nor_can_a_key_have_a_name_that_receipts_and_conflicts_use(tmp_path: Path) -> None:
    assert "column Value has a name" in problem(tmp_path, RULES, {**CUSTOMER, "key": ["Value"]})


def test_a_list_of_sources_ranks_the_first_highest_and_times_are_utc(tmp_path: Path) -> None:
    belief = believed(tmp_path, [RULES[0], SECOND])
    first, second = belief.rules
    assert first.groups["contact"].sources == {"CRM": 2, "CORE": 1}
    assert first.delete.sources == {"CRM": 1}
    assert first.in_force_from == datetime(2026, 1, 1, tzinfo=UTC)
    assert second.in_force_from == datetime(2026, 6, 1, 10, tzinfo=UTC)
    assert [str(table) for table in belief.tables] == [
        "silver.customer",
        "silver.customer_history",
        "silver.customer_restatements",
        "silver.customer_conflicts",
    ]


def test_every_column_of_a_beliefs_tables_has_a_name_no_attribute_may_have() -> None:
    empty = EntitySchema(key={}, attributes={}, sources=())
    assert {*belief_schema(empty).names, *history_schema(empty).names} == BELIEF_COLUMNS
    assert {*restatements_schema(empty).names, *conflicts_schema(empty).names} <= RESERVED_FOR_KEYS


@pytest.mark.parametrize("taken", ["because_hash", "Valid_From"])
def test_an_attribute_of_such_a_name_is_refused_with_the_way_out(tmp_path: Path, taken: str) -> None:
    entity = {**CUSTOMER, "attributes": {**CUSTOMER["attributes"], taken: "string"}}
    rules = with_groups(all={"attributes": [*EVERYTHING["attributes"], taken]})
    message = problem(tmp_path, rules, entity)
    assert f"the entity's column {taken} has a name that is reserved in belief tables" in message
    assert "rename it in the entity and use `map`" in message


def test_what_is_left_out_means_everybody_at_the_rank_of_the_statement(tmp_path: Path) -> None:
    rules = [{"version": 1, "in_force_from": "2026-01-01", "groups": {"all": EVERYTHING}}]
    (rule,) = believed(tmp_path, rules).rules
    assert (rule.groups["all"].by, rule.groups["all"].sources, rule.groups["all"].nulls) == ("precedence", None, "skip")
    assert (rule.delete.by, rule.delete.sources) == ("precedence", None)


def test_earlier_versions_may_speak_of_what_is_gone_by_now(tmp_path: Path) -> None:
    retired = {**RULES[0], "groups": {"all": {"attributes": ["name", "fax"], "sources": ["OLD"]}}}
    assert [rule.version for rule in believed(tmp_path, [retired, SECOND]).rules] == [1, 2]


def test_the_content_of_a_rule_is_what_decides_not_how_it_is_written(tmp_path: Path) -> None:
    renamed = with_groups(b=CONTACT, a={**STATUS, "sources": {"CRM": 1, "CORE": 2}})
    other = with_groups(status={**STATUS, "sources": {"CORE": 3, "CRM": 1}}, contact=CONTACT)
    first, same, different = (believed(tmp_path / str(number), rules).rules[0] for number, rules in enumerate((RULES, renamed, other)))
    assert first.content_hash == same.content_hash
    assert first.content_hash != different.content_hash


@pytest.mark.parametrize(
    ("now", "since", "says"),
    [
        ("2025-12-31", None, "no rule is in force before 2026-01-01 00:00:00"),
        ("2026-02-01", None, "first time: all evidence about customer is evaluated by rule version 1"),
        ("2026-02-01", "batch 3, rule version 1", "evaluates what is new about customer by rule version 1"),
        ("2026-07-01", "batch 3, rule version 1", "rebuild: all evidence is evaluated again by rule version 2"),
    ],
)
def test_a_plan_says_which_rule_decides_and_when_all_is_evaluated_again(tmp_path: Path, now: str, since: str | None, says: str) -> None:
    project = entity_project(tmp_path, CUSTOMER)
    declare(project, [RULES[0], SECOND])
    known = {} if since is None else {"silver.customer": since}
    plan = build_plan(load(project), known, now=datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert [stage.name for stage in plan.stages] == ["bronze.customer", "silver.customer"]
    assert says in plan.stages[1].why
    assert plan.waits_for["silver.customer"] == {"bronze.customer"}
