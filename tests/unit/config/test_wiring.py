"""What only shows when all declarations are seen together: two writers of one table, tables that wait for each other."""

from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.problems import ConfigProblems, Problem
from tests.support.projects import curated, project_folder


def problems(folder: Path) -> list[Problem]:
    with pytest.raises(ConfigProblems) as caught:
        load(folder)
    return list(caught.value.problems)


def test_one_target_has_one_declaration(tmp_path: Path) -> None:
    tables = [curated("silver.a", "bronze.a"), curated("silver.A", "bronze.b")]
    assert {problem.value for problem in problems(project_folder(tmp_path, tables))} >= {"silver.a"}
    tables = [curated("silver.a", "bronze.a"), curated("silver.a_quarantine", "bronze.b")]
    (problem,) = problems(project_folder(tmp_path, tables))
    assert (problem.value, problem.message) == ("silver.a_quarantine", "curation.json:5 writes this table already")
    (problem,) = problems(project_folder(tmp_path, [curated("silver.curation_control", "bronze.a")]))
    assert "control or audit table" in problem.message


def test_control_and_audit_tables_are_two_tables(tmp_path: Path) -> None:
    settings = {"control_table": "silver.books", "audit_table": "silver.books"}
    (problem,) = problems(project_folder(tmp_path, [curated("silver.a", "bronze.a")], settings=settings))
    assert problem.path in {"settings.audit_table", "settings.control_table"}


@pytest.mark.parametrize(
    "circle",
    [
        [("silver.a", "silver.a")],
        [("silver.a", "silver.b"), ("silver.b", "silver.a")],
        [("silver.a", "silver.c"), ("silver.b", "silver.a"), ("silver.c", "silver.b"), ("silver.d", "bronze.d")],
        [("silver.a", "silver/b"), ("silver.b", "silver/a")],
    ],
)
def test_tables_that_wait_for_each_other_are_refused(tmp_path: Path, circle: list[tuple[str, str]]) -> None:
    (problem,) = problems(project_folder(tmp_path, [curated(target, source) for target, source in circle]))
    assert "wait for each other" in problem.message
