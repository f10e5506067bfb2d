"""New projects and bundles: what is created, what is refused, and that a bundle holds together."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from karat import scaffold
from karat.config.load import load
from karat.errors import ConfigError
from karat.scaffold import add_bundle, create_project, examples

BUNDLE_VARIABLE = re.compile(r"\$\{var\.(\w+)\}")
BUNDLE_REFERENCE = re.compile(r"\$\{(?:bundle\.(?:name|target)|workspace\.(?:file_path|root_path|current_user\.(?:userName|short_name)))\}")
JOBS = ("curation_framework_job", "single_table_job")


def relative(paths: list[Path], folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in paths}


def parsed(file: Path) -> dict[str, Any]:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "claims"
    create_project(folder, "claims")
    add_bundle(folder)
    return folder


def job(bundle: Path, name: str) -> dict[str, Any]:
    found = parsed(bundle / "resources" / f"{name}.yml")["resources"]["jobs"][name]
    assert isinstance(found, dict)
    return found


def test_the_claims_example_becomes_a_project_without_its_demo(tmp_path: Path) -> None:
    created = relative(create_project(tmp_path / "new" / "claims", "claims"), tmp_path / "new" / "claims")
    assert {
        "karat.yml",
        "land.py",
        "README.md",
        ".gitignore",
        "silver/curation.json",
        "sql/claims.sql",
        "data/day1/claims.ndjson",
    } <= created
    assert not [path for path in created if path == "demo.py" or path.startswith(("lake/", ".karat/", "__pycache__/"))]
    assert len(load(tmp_path / "new" / "claims").curated) == 5


def test_what_runs_leave_behind_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for left in ("karat.yml", "demo.py", "lake/bronze/t/part.parquet", ".karat/state.db", "sql/__pycache__/x.pyc", "sql/t.sql"):
        file = tmp_path / "_examples" / "used" / left
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("project: used\n", encoding="utf-8")
    monkeypatch.setattr(scaffold, "_PACKAGE", tmp_path)
    assert examples() == ["empty", "used"]
    assert relative(create_project(tmp_path / "copy", "used"), tmp_path / "copy") == {"karat.yml", "sql/t.sql", ".gitignore"}


def test_an_empty_project_is_valid_and_named_after_its_folder(tmp_path: Path) -> None:
    created = relative(create_project(tmp_path / "my lake 2026", "empty"), tmp_path / "my lake 2026")
    assert created == {"karat.yml", "silver/README.md", ".gitignore"}
    config = load(tmp_path / "my lake 2026")
    assert (config.settings.project, config.settings.spark.master, config.curated) == ("my_lake_2026", "local[*]", ())


def test_a_folder_named_like_a_number_still_gives_a_name(tmp_path: Path) -> None:
    create_project(tmp_path / "2026", "empty")
    assert load(tmp_path / "2026").settings.project == "2026"


def test_the_template_of_the_empty_project_works_when_copied(tmp_path: Path) -> None:
    create_project(tmp_path / "p", "empty")
    fenced = re.search(r"```yaml\n(.*?)```", (tmp_path / "p" / "silver" / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert fenced is not None
    (tmp_path / "p" / "silver" / "curation.yml").write_text(fenced[1], encoding="utf-8")
    assert [str(table.target) for table in load(tmp_path / "p").curated] == ["silver.customers"]


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="not an empty folder") as refused:
        create_project(tmp_path)
    assert refused.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["nowhere", "../claims", "", "claims/sql"])
def test_an_unknown_example_names_those_that_exist(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="there is no example") as refused:
        create_project(tmp_path / "p", name)
    assert "claims, empty" in refused.value.remedy
    assert not (tmp_path / "p").exists()


def test_a_bundle_needs_a_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("there is no karat.yml")):
        add_bundle(tmp_path)


def test_a_bundle_never_overwrites_and_writes_nothing_when_it_would(tmp_path: Path) -> None:
    create_project(tmp_path / "p", "empty")
    (tmp_path / "p" / "databricks.yml").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape("databricks.yml already there")):
        add_bundle(tmp_path / "p")
    assert (tmp_path / "p" / "databricks.yml").read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "p" / "resources").exists()


def test_a_bundle_stands_beside_the_declarations_without_disturbing_them(bundle: Path) -> None:
    assert len(load(bundle).curated) == 5


def test_the_bundle_has_a_name_two_targets_and_includes_its_jobs(bundle: Path) -> None:
    top = parsed(bundle / "databricks.yml")
    assert set(top) == {"bundle", "include", "variables", "artifacts", "targets"}
    assert top["bundle"] == {"name": "claims"}
    assert all(any(fnmatch(f"resources/{name}.yml", pattern) for pattern in top["include"]) for name in JOBS)
    dev, prod = top["targets"]["dev"], top["targets"]["prod"]
    assert (dev["mode"], dev["default"], dev["presets"]) == ("development", True, {"trigger_pause_status": "PAUSED"})
    assert prod["mode"] == "production"
    assert prod["workspace"]["root_path"].endswith("/${bundle.name}/${bundle.target}")
    assert [name for name, target in top["targets"].items() if target.get("default")] == ["dev"]


def test_the_framework_job_runs_every_hour_and_leaves_pausing_to_the_target(bundle: Path) -> None:
    curation = job(bundle, "curation_framework_job")
    assert curation["schedule"] == {"quartz_cron_expression": "0 0 * * * ?", "timezone_id": "UTC"}
    assert curation["max_concurrent_runs"] == 1
    assert curation["email_notifications"] == {"on_failure": ["${var.failure_email}"]}


def test_the_single_table_job_runs_on_demand_for_one_table(bundle: Path) -> None:
    single = job(bundle, "single_table_job")
    assert "schedule" not in single
    assert [parameter["name"] for parameter in single["parameters"]] == ["table"]
    given = single["tasks"][0]["python_wheel_task"]["parameters"]
    assert given[given.index("--select") + 1] == "{{job.parameters.table}}"


@pytest.mark.parametrize("name", JOBS)
def test_a_job_runs_karat_from_the_wheel_the_bundle_builds(bundle: Path, name: str) -> None:
    artifact = parsed(bundle / "databricks.yml")["artifacts"]["default"]
    built = {(bundle / artifact["path"] / file["source"]).resolve() for file in artifact["files"]}
    declared = job(bundle, name)
    (task,) = declared["tasks"]
    wheel = task["python_wheel_task"]
    assert artifact["type"] == "whl"
    assert "dist" in artifact["build"]
    assert {(bundle / "resources" / library["whl"]).resolve() for library in task["libraries"]} == built
    assert (wheel["package_name"], wheel["entry_point"]) == ("karat", "karat")
    assert wheel["parameters"][:5] == ["run", "--project", "${workspace.file_path}", "--var", "master=provided"]
    assert task["job_cluster_key"] in {cluster["job_cluster_key"] for cluster in declared["job_clusters"]}


def test_every_reference_is_a_declared_variable_or_the_bundles_own(bundle: Path) -> None:
    declared = set(parsed(bundle / "databricks.yml")["variables"])
    for file in (bundle / "databricks.yml", *(bundle / "resources").glob("*.yml")):
        text = file.read_text(encoding="utf-8")
        used = re.findall(r"\$\{[^}]*\}", text)
        assert used, file
        assert set(BUNDLE_VARIABLE.findall(text)) <= declared
        assert all(BUNDLE_VARIABLE.fullmatch(name) or BUNDLE_REFERENCE.fullmatch(name) for name in used)
        assert "[[" not in text
