"""The printed objects load as printed; whatever else is written is answered with its place, its value and a way out."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from karat.config.load import load
from karat.config.problems import ConfigProblems, Problem
from karat.config.resolved import CuratedTable, OrderBy
from karat.errors import ConfigError
from tests.support.projects import curated, project_folder

PRINTED_TABLE = r"""
{
  "table_name": "silver_customers",
  "source_table": "bronze.customers_streaming",
  "target_table": "silver.customers",
  "scd_type": 2,
  "business_key_columns": ["customer_id"],
  "source_system_column": "source_system",
  "watermark_column": "ingestion_ts",
  "lookback_interval": "2 HOURS",
  "dedup_order_columns": ["ingestion_ts DESC", "_kafka_offset DESC"],
  "scd2_columns": {
    "effective_start_date": "effective_start_date",
    "effective_end_date": "effective_end_date",
    "is_current": "is_current"
  },
  "track_columns": ["name", "email", "address"],
  "transformation_sql_path": "${workspace.file_path}/conf/sql/customers_transform.sql",
  "enabled": true
}
"""
PRINTED_SETTINGS = r"""
{
  "catalog": "main",
  "schema_bronze": "bronze",
  "schema_silver": "silver",
  "control_table": "silver.curation_control",
  "audit_table": "silver.curation_audit_log",
  "default_watermark_column": "ingestion_ts",
  "default_lookback_interval": "2 HOURS",
  "default_dedup_order_columns": ["ingestion_ts DESC"],
  "scd2_end_date_value": "9999-12-31 23:59:59",
  "workspace_file_path": "${workspace.root_path}/files",
  "log_level": "INFO"
}
"""
PRINTED = f'{{"kind": "curation", "settings": {PRINTED_SETTINGS}, "tables": [{PRINTED_TABLE}]}}'


def project(folder: Path, text: str, file: str = "silver.json", karat: str = "project: test\n") -> Path:
    (folder / "karat.yml").write_text(karat, encoding="utf-8")
    (folder / file).write_text(text, encoding="utf-8")
    return folder


def problems(folder: Path) -> list[Problem]:
    with pytest.raises(ConfigProblems) as caught:
        load(folder)
    return list(caught.value.problems)


def only(folder: Path, **declared: object) -> CuratedTable:
    """The one table of a project that declares it so."""
    (table,) = load(project_folder(folder, [curated("silver.people", "bronze.people", **declared)])).curated
    return table


def refused(folder: Path, **declared: object) -> Problem:
    """The one problem of a project whose only table is declared so."""
    (problem,) = problems(project_folder(folder, [curated("silver.people", "bronze.people", **declared)]))
    return problem


@pytest.mark.parametrize("file", ["silver.json", "silver.yml", "silver.yaml", "deep/er/silver.yml", "minified.json", "flow.yml"])
def test_the_printed_objects_load_as_printed(tmp_path: Path, file: str) -> None:
    text = {
        "silver.json": PRINTED,
        "flow.yml": PRINTED,
        "minified.json": json.dumps(json.loads(PRINTED), separators=(",", ":")),
    }.get(file, yaml.safe_dump(json.loads(PRINTED)))
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (table,) = load(project(tmp_path, text, file)).curated
    assert (str(table.source), str(table.target), table.scd_type) == ("bronze.customers_streaming", "silver.customers", 2)
    assert table.entity_key == ("customer_id", "source_system")
    assert (table.watermark, table.lookback, table.effective_from) == ("ingestion_ts", "2 HOURS", "ingestion_ts")
    assert table.order == (OrderBy("ingestion_ts", descending=True), OrderBy("_kafka_offset", descending=True))
    assert (table.start, table.end, table.current) == ("effective_start_date", "effective_end_date", "is_current")
    assert table.tracked == ("name", "email", "address")
    assert table.sql_file == tmp_path / "conf/sql/customers_transform.sql"
    assert table.open_end == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert (str(table.audit_tables.control), str(table.audit_tables.audit)) == ("silver.curation_control", "silver.curation_audit_log")
    assert table.target.catalog is None  # karat.yml names none
    assert (table.hash, table.place_late, table.add_columns) == ("md5", False, False)


def test_the_catalog_of_the_settings_counts_where_the_project_names_one(tmp_path: Path) -> None:
    (table,) = load(project(tmp_path, PRINTED, karat="project: test\ncatalog: hive\n")).curated
    assert (table.target.catalog, table.source.catalog, table.audit_tables.audit.catalog) == ("main", "main", "main")


def test_short_names_are_the_long_ones(tmp_path: Path) -> None:
    declaration: dict[str, Any] = json.loads(PRINTED)
    long_names = load(project(tmp_path, PRINTED)).curated
    printed = declaration["tables"][0]
    printed["source_system_col"] = printed.pop("source_system_column")
    printed["scd2_columns"] = {"start": "effective_start_date", "end": "effective_end_date", "curr": "is_current"}
    assert load(project(tmp_path, json.dumps(declaration))).curated == long_names


def test_what_is_left_out_comes_from_the_settings_and_then_from_the_defaults(tmp_path: Path) -> None:
    bare = {"source_table": "people", "target_table": "people", "scd_type": 1, "business_key_columns": ["id"]}
    (table,) = load(project_folder(tmp_path, [bare])).curated
    assert (str(table.source), str(table.target)) == ("bronze.people", "silver.people")
    assert (table.watermark, table.lookback) == ("ingestion_ts", "2 HOURS")
    assert table.order == (OrderBy("ingestion_ts", descending=True),)
    settings = {"default_watermark_column": "seen", "default_lookback_interval": "1 DAY", "schema_bronze": "raw", "schema_silver": "ods"}
    (table,) = load(project_folder(tmp_path, [bare], settings=settings)).curated
    assert (str(table.source), str(table.target), table.watermark, table.lookback) == ("raw.people", "ods.people", "seen", "1 DAY")
    assert table.order == (OrderBy("seen", descending=True),)


def test_order_columns_have_their_real_directions(tmp_path: Path) -> None:
    order = ["a", "b asc", "c DESC", "d desc nulls last", "`e desc` ASC NULLS FIRST", "two words DESC"]
    assert only(tmp_path, dedup_order_columns=order).order == (
        OrderBy("a", descending=False),
        OrderBy("b", descending=False),
        OrderBy("c", descending=True),
        OrderBy("d", descending=True, nulls_first=False),
        OrderBy("e desc", descending=False, nulls_first=True),
        OrderBy("two words", descending=True),
    )


def test_a_table_that_is_not_enabled_is_left_alone_but_still_checked(tmp_path: Path) -> None:
    tables = [curated("silver.a", "bronze.a", enabled=False), curated("silver.b", "bronze.b")]
    assert [str(table.target) for table in load(project_folder(tmp_path, tables)).curated] == ["silver.b"]
    tables[0]["scd_type"] = 3
    assert [problem.path for problem in problems(project_folder(tmp_path, tables))] == ["tables[0].scd_type"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("watermark_colum", "watermark_column"), ("lookback", "lookback_interval"), ("Enabled", "enabled"), ("trackcolumns", "track_columns")],
)
def test_an_unknown_key_is_answered_with_the_nearest_one(tmp_path: Path, wrong: str, right: str) -> None:
    problem = refused(tmp_path, **{wrong: "x"})
    assert (problem.path, problem.message, problem.remedy) == (f"tables[0].{wrong}", "not a setting here", f"did you mean `{right}`?")


def test_an_unknown_key_that_is_near_nothing_is_answered_with_all_that_exist(tmp_path: Path) -> None:
    assert "business_key_columns" in refused(tmp_path, zzz=1).remedy
    nested = refused(tmp_path, scd2_columns={"begin": "x", "effective_start_date": "a"})
    assert nested.path == "tables[0].scd2_columns.begin"
    assert "effective_start_date" in nested.remedy


@pytest.mark.parametrize(
    ("declared", "message", "found"),
    [
        ({"scd_type": "2"}, "not one of the choices", "'2'"),
        ({"scd_type": 3}, "not one of the choices", "3"),
        ({"enabled": "yes"}, "this must be true or false", "'yes'"),
        ({"enabled": 1}, "this must be true or false", "1"),
        ({"business_key_columns": "id"}, "this must be a list", "'id'"),
        ({"business_key_columns": []}, "this must not be empty", ""),
        ({"business_key_columns": [1]}, "this must be text", "1"),
        ({"business_key_columns": [""]}, "this must not be empty", "''"),
        ({"track_columns": {"a": 1}}, "this must be a list", ""),
        ({"scd2_columns": "start"}, "this must be a mapping", "'start'"),
        ({"scd2_columns": {"start": "a", "end": "A", "curr": "b"}}, "the three columns need three names", ""),
        ({"hash": "crc32"}, "not one of the choices", "'crc32'"),
        ({"out_of_order": "place", "scd_type": 1}, "out_of_order: place needs a table with history", ""),
        ({"target_table": None}, "this must be text", ""),
    ],
)
def test_a_wrong_value_is_answered_with_itself_and_a_way_out(tmp_path: Path, declared: dict[str, object], message: str, found: str) -> None:
    problem = refused(tmp_path, **declared)
    assert (problem.message, problem.value) == (message, found)
    assert problem.remedy
    assert problem.file == "curation.json"
    assert problem.line > 1


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    table = curated("silver.people", "bronze.people")
    del table["business_key_columns"]
    (problem,) = problems(project_folder(tmp_path, [table]))
    assert (problem.path, problem.message) == ("tables[0].business_key_columns", "this setting is required")


def test_all_problems_are_said_at_once_with_file_and_line(tmp_path: Path) -> None:
    folder = project(
        tmp_path,
        "kind: curation\n"
        "tables:\n"
        "  - source_table: bronze.a\n"
        "    target_table: silver.a\n"
        "    scd_type: two\n"
        "    business_key_columns: [id]\n"
        "    lookback_interval: soon\n"
        "  - source_table: bronze.b\n"
        "    target_table: silver.b; DROP TABLE x\n"
        "    scd_type: 1\n",
        "silver.yml",
        karat="project: test\nruntime:\n  max_parallel_tables: 0\nsparc: {}\n",
    )
    (folder / "gold.yml").write_text("kind: dimensoin\nname: x\n", encoding="utf-8")
    found = [(problem.file, problem.line, problem.path) for problem in problems(folder)]
    assert found == [
        ("gold.yml", 1, "kind"),
        ("karat.yml", 3, "runtime.max_parallel_tables"),
        ("karat.yml", 4, "sparc"),
        ("silver.yml", 5, "tables[0].scd_type"),
        ("silver.yml", 7, "tables[0].lookback_interval"),
        ("silver.yml", 8, "tables[1].business_key_columns"),
    ]


def test_an_unknown_kind_says_which_exist(tmp_path: Path) -> None:
    folder = project(tmp_path, '{"kind": "curaton", "tables": []}')
    (problem,) = problems(folder)
    assert (problem.message, problem.value) == ("there is no such kind", "'curaton'")
    assert "curation" in problem.remedy
    (missing,) = problems(project(tmp_path, '{"tables": []}'))
    assert missing.message == "`kind` is missing"


def test_a_file_that_is_not_about_karat_is_left_alone(tmp_path: Path) -> None:
    folder = project_folder(tmp_path, [curated("silver.a", "bronze.a")])
    (folder / "databricks.yml").write_text("bundle: {name: x}\n", encoding="utf-8")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "bad.yml").write_text("kind: [", encoding="utf-8")
    assert len(load(folder).curated) == 1


@pytest.mark.parametrize("end", ["never", "9999-13-01", "31.12.9999", ""])
def test_the_open_end_is_a_timestamp(tmp_path: Path, end: str) -> None:
    (problem,) = problems(project_folder(tmp_path, [curated("silver.a", "bronze.a")], settings={"scd2_end_date_value": end}))
    assert problem.path == "settings.scd2_end_date_value"


def test_a_folder_without_a_project_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no karat\.yml") as caught:
        load(tmp_path)
    assert "karat init" in caught.value.remedy


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n"])
def test_an_empty_project_file_says_what_it_needs(tmp_path: Path, text: str) -> None:
    (tmp_path / "karat.yml").write_text(text, encoding="utf-8")
    (problem,) = problems(tmp_path)
    assert "project" in problem.remedy
