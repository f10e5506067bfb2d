"""No name or path from a declaration climbs out of the lake or the project, or carries SQL of its own."""

from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.names import lake_path, table_name
from karat.config.problems import ConfigProblems
from tests.support.projects import curated, project_folder

EVIL_NAMES = [
    "silver.x; DROP TABLE y",
    "silver.x`",
    "`silver`.`x`",
    "silver.x -- comment",
    "silver.x/*",
    "silver.'x'",
    'silver."x"',
    "silver.x y",
    "silver..x",
    ".x",
    "silver.",
    "a.b.c",
    "a.b.c.d",
    "silver.1x",
    "silver.\u0445",
    "silver.x\n",
    "silver.x\x00",
    "silver." + "x" * 300,
    "..",
    "silver.${x}",
]
EVIL_PATHS = [
    "../x",
    "silver/../../x",
    "./../x",
    "/etc/passwd",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "s3a://elsewhere/x",
    "hdfs:/x",
    "silver/x`; DROP TABLE y; --",
    "delta.`../x`",
    "delta.`/etc`",
    "delta.`silver/x`; DROP TABLE y",
    "silver//../x/..",
    "silver/.hidden",
    "silver/_delta_log/../../..",
    "silver/\x00",
    "silver/x\n",
    "/",
    "silver/*",
    "~/x",
]


@pytest.mark.parametrize("key", ["source_table", "target_table"])
@pytest.mark.parametrize("name", [*EVIL_NAMES, *EVIL_PATHS], ids=repr)
def test_a_table_that_is_none_is_refused(tmp_path: Path, key: str, name: str) -> None:
    folder = project_folder(tmp_path, [curated("silver.a", "bronze.a", **{key: name})])
    with pytest.raises(ConfigProblems) as caught:
        load(folder)
    assert {problem.path for problem in caught.value.problems} == {f"tables[0].{key}"}


@pytest.mark.parametrize("key", ["control_table", "audit_table", "schema_silver", "schema_bronze"])
@pytest.mark.parametrize("name", ["silver.x; DROP TABLE y", "../x", "`x`", "a b"])
def test_books_and_schemas_are_checked_as_well(tmp_path: Path, key: str, name: str) -> None:
    folder = project_folder(tmp_path, [curated("a", "a")], settings={key: name})
    with pytest.raises(ConfigProblems):
        load(folder)


@pytest.mark.parametrize("catalog", ["a.b", "a; DROP", "`a`", "../a", ""])
def test_a_catalog_is_a_plain_name(tmp_path: Path, catalog: str) -> None:
    with pytest.raises(ConfigProblems):
        load(project_folder(tmp_path, [curated("silver.a", "bronze.a")], karat={"catalog": catalog}))
    with pytest.raises(ConfigProblems):
        load(project_folder(tmp_path, [curated("silver.a", "bronze.a")], karat={"catalog": "main"}, settings={"catalog": catalog}))


@pytest.mark.parametrize(
    "path", ["../outside.sql", "/etc/passwd", "${workspace.file_path}/../outside.sql", "sql/../../outside.sql", "sql/link.sql"]
)
def test_a_transformation_stays_inside_the_project(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside.sql").write_text("SELECT 1", encoding="utf-8")
    folder = project_folder(tmp_path / "project", [curated("silver.a", "bronze.a", transformation_sql_path=path)])
    (folder / "sql" / "link.sql").symlink_to(tmp_path / "outside.sql")
    with pytest.raises(ConfigProblems) as caught:
        load(folder)
    assert [problem.path for problem in caught.value.problems] == ["tables[0].transformation_sql_path"]


@pytest.mark.parametrize("root", ["${workspace.file_path}", "${workspace.root_path}", "${workspace.root_path}/files", "."])
def test_a_transformation_is_found_by_every_workspace_variable(tmp_path: Path, root: str) -> None:
    table = curated("silver.a", "bronze.a", transformation_sql_path=f"{root}/sql/a.sql")
    folder = project_folder(tmp_path, [table], settings={"workspace_file_path": "${workspace.root_path}/files"}, sql={"a.sql": "SELECT 1"})
    if root.endswith("/files"):
        (folder / "files" / "sql").mkdir(parents=True)
        (folder / "files" / "sql" / "a.sql").write_text("SELECT 1", encoding="utf-8")
    found = load(folder).curated[0].sql_file
    assert found is not None
    assert found.is_file()


@pytest.mark.parametrize(
    ("text", "lake", "path"),
    [
        ("silver/x", "/data/lake", "silver/x"),
        ("/data/lake/silver/x", "/data/lake", "silver/x"),
        ("/data/lake/silver/x/", "/data/lake", "silver/x"),
        ("delta.`silver/x`", "/data/lake", "silver/x"),
        ("delta.`/data/lake/silver/x`", "/data/lake", "silver/x"),
        ("s3a://bucket/lake/silver/x", "s3a://bucket/lake", "silver/x"),
        ("landing/day=2026-01-01/x", "/data/lake", "landing/day=2026-01-01/x"),
    ],
)
def test_a_path_inside_the_lake_is_kept_below_its_root(text: str, lake: str, path: str) -> None:
    assert lake_path(text, lake).path == path


@pytest.mark.parametrize("text", ["/data/lakes/x", "/data/lake2/x", "/data/lake/../x", "s3a://bucket/lake/x", "/data/lake"])
def test_a_path_beside_the_lake_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"outside|not a path"):
        lake_path(text, "/data/lake")


def test_a_name_has_a_schema_of_its_own_or_the_default_one() -> None:
    assert str(table_name("people", "bronze")) == "bronze.people"
    assert str(table_name("raw.people", "bronze")) == "raw.people"
    assert str(table_name("main.raw.people", "bronze", "main")) == "raw.people"
    with pytest.raises(ValueError, match="not a table name"):
        table_name("other.raw.people", "bronze", "main")
