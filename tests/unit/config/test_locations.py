"""A location that names its filesystem is a URI, with one slash or with three; declarations are never looked for among tables."""

import json
from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.names import is_uri, lake_path, local_path
from tests.support.entities import CRM, CUSTOMER, entity_project
from tests.support.projects import curated, project_folder


@pytest.mark.parametrize(
    ("location", "names_its_filesystem", "here"),
    [
        ("lake", False, "lake"),
        ("/data/by day:/lake", False, "/data/by day:/lake"),
        ("file:lake", False, "lake"),
        ("file:/lake", True, "/lake"),
        ("file:///lake", True, "/lake"),
        ("FILE://localhost/lake", True, "/lake"),
        ("file://server/lake", True, None),
        ("dbfs:/lake", True, None),
        ("s3a://bucket/lake", True, None),
        ("abfss://lake@account.dfs.core.windows.net/", True, None),
    ],
)
def test_a_location_is_on_this_machine_or_it_is_not(location: str, here: str | None, *, names_its_filesystem: bool) -> None:
    assert (is_uri(location), local_path(location)) == (names_its_filesystem, here)


@pytest.mark.parametrize("lake", ["dbfs:/mnt/lake", "s3a://bucket/lake", "file:/lake", "file:///lake", "hdfs:/lake/"])
def test_a_lake_with_a_scheme_is_no_folder_of_the_project(tmp_path: Path, lake: str) -> None:
    folder = project_folder(tmp_path, [curated(f"{lake.rstrip('/')}/silver/a", "bronze.a")], karat={"lake": lake})
    config = load(folder)
    assert config.lake == lake.rstrip("/")
    assert str(config.curated[0].target) == "silver.a"


def test_a_path_below_a_local_lake_is_found_with_and_without_its_scheme() -> None:
    for lake in ("/lake", "file:/lake", "file:///lake"):
        assert {str(lake_path(path, lake)) for path in ("/lake/silver/a", "file:/lake/silver/a", "file:///lake/silver/a")} == {"silver/a"}


def test_a_feed_with_a_scheme_is_read_where_it_says(tmp_path: Path) -> None:
    feed = {**CRM, "from": {"kind": "files", "path": "dbfs:/land/crm/*.ndjson", "format": "json"}}
    folder = entity_project(tmp_path, {**CUSTOMER, "feeds": [feed]})
    assert load(folder).entities[0].feeds[0].path == "dbfs:/land/crm/*.ndjson"


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_tables_inside_the_project_are_not_read_as_declarations(tmp_path: Path, scheme: str) -> None:
    folder = project_folder(tmp_path, [curated("silver.a", "bronze.a")], karat={"lake": f"{scheme}{tmp_path}/lake"})
    for place in ("lake/bronze/a/_delta_log", "elsewhere/table/_delta_log", ".karat/cache"):
        (folder / place).mkdir(parents=True)
        (folder / place / "00000000000000000000.json").write_text(json.dumps({"commitInfo": {}}) + "\n" + "{}\n", encoding="utf-8")
    (folder / "lake" / "bronze" / "odd.yml").write_text("tables: [", encoding="utf-8")
    assert [str(table.target) for table in load(folder).curated] == ["silver.a"]
