"""A plan: which stages, in which order, since when and why; the same stages a run walks."""

from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.resolved import Config
from karat.errors import ConfigError
from karat.plan.build import Plan, build_plan
from karat.plan.explain import as_records
from tests.support.projects import curated, project_folder

READS = {
    "silver.last": "silver.middle",
    "silver.alone": "bronze.alone",
    "silver.middle": "silver.first",
    "silver.first": "bronze.first",
    "silver.beside": "silver.first",
    "ods.other": "bronze.first",
}
"""Targets in the order of their declaration, and what each reads."""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load(project_folder(tmp_path, [curated(target, source) for target, source in READS.items()]))


def names(plan: Plan) -> list[str]:
    return [stage.name for stage in plan.stages]


def test_sources_come_before_what_reads_them_and_otherwise_the_declared_order_holds(config: Config) -> None:
    plan = build_plan(config, {})
    assert names(plan) == ["silver.alone", "silver.first", "ods.other", "silver.middle", "silver.beside", "silver.last"]
    assert plan.waits_for["silver.last"] == {"silver.middle"}
    assert plan.waits_for["silver.middle"] == plan.waits_for["silver.beside"] == {"silver.first"}
    assert plan.waits_for["silver.alone"] == plan.waits_for["ods.other"] == frozenset()


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ([], [*READS]),
        (["silver.first"], ["silver.first"]),
        (["silver.*"], ["silver.last", "silver.alone", "silver.middle", "silver.first", "silver.beside"]),
        (["*.other"], ["ods.other"]),
        (["+silver.last"], ["silver.first", "silver.middle", "silver.last"]),
        (["silver.first+"], ["silver.first", "silver.middle", "silver.beside", "silver.last"]),
        (["+silver.middle+"], ["silver.first", "silver.middle", "silver.last"]),
        (["+silver.alone"], ["silver.alone"]),
        (["silver.alone", "ods.*"], ["silver.alone", "ods.other"]),
        (["silver.alone,ods.other"], ["silver.alone", "ods.other"]),
        (["silver.[ab]*"], ["silver.alone", "silver.beside"]),
        (["silver.last", "silver.last"], ["silver.last"]),
    ],
    ids=repr,
)
def test_a_selection_names_tables_patterns_and_their_neighbours(config: Config, select: list[str], expected: list[str]) -> None:
    assert sorted(names(build_plan(config, {}, select))) == sorted(expected)


def test_a_selection_waits_only_for_what_is_selected(config: Config) -> None:
    plan = build_plan(config, {}, ["silver.first", "silver.last"])
    assert names(plan) == ["silver.first", "silver.last"]
    assert plan.waits_for == {"silver.first": frozenset(), "silver.last": frozenset()}


@pytest.mark.parametrize(
    ("select", "remedy"),
    [
        (["silver.frist"], "did you mean silver.first?"),
        (["gold.*"], "choose from: silver.last, silver.alone"),
        (["silver.first", "+silver.midle"], "did you mean silver.middle?"),
        (["+"], "choose from"),
        (["SILVER.FIRST"], ""),
    ],
    ids=repr,
)
def test_a_selection_of_nothing_is_a_mistake_that_says_what_there_is(config: Config, select: list[str], remedy: str) -> None:
    with pytest.raises(ConfigError, match="nothing is called") as caught:
        build_plan(config, {}, select)
    assert remedy in caught.value.remedy


def test_every_stage_says_why_and_since_when(config: Config) -> None:
    since = "2026-01-01T10:00:00+00:00"
    records = {record["name"]: record for record in as_records(build_plan(config, {"silver.first": since, "silver.gone": since}))}
    assert records["silver.first"] == {
        "name": "silver.first",
        "kind": "curate",
        "reads": ["bronze.first"],
        "writes": ["silver.first", "silver.first_quarantine", "silver.curation_control", "silver.curation_audit_log"],
        "since": since,
        "why": f"reads bronze.first where ingestion_ts is above {since} less 2 HOURS",
        "waits_for": [],
    }
    assert records["silver.alone"]["since"] is None
    assert str(records["silver.alone"]["why"]).startswith("first load")
    assert records["silver.last"]["waits_for"] == ["silver.middle"]


def test_a_source_given_by_path_is_waited_for_as_well(tmp_path: Path) -> None:
    tables = [curated("silver.second", "silver/first"), curated("silver.first", "bronze.first")]
    plan = build_plan(load(project_folder(tmp_path, tables)), {})
    assert names(plan) == ["silver.first", "silver.second"]


def test_a_project_without_tables_has_an_empty_plan(tmp_path: Path) -> None:
    (tmp_path / "karat.yml").write_text("project: empty\n", encoding="utf-8")
    assert build_plan(load(tmp_path), {}).stages == ()
