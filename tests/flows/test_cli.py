"""`karat` as people and machines call it: exit codes, JSON and nothing else on standard output, sentences on standard error."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from karat.cli.app import app
from tests.support.projects import curated, held, land, project_folder, versions

KARAT = Path(sys.executable).with_name("karat")
ROWS = """
    id:string | source_system:string | name:string | ingestion_ts:timestamp
    1         | CRM                  | Ann         | 2026-01-01 10:00:00
    -         | CRM                  | nobody      | 2026-01-01 10:00:00
"""


def karat(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command as it ended, with the exit code it must have."""
    ended = subprocess.run([KARAT, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)  # noqa: S603
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


def answer(*arguments: str | Path, code: int = 0) -> Any:  # noqa: ANN401  (whatever the command answers)
    """Standard output, which must be one JSON value and nothing else."""
    return json.loads(karat(*arguments, "--json", code=code).stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = project_folder(
        tmp_path / "project",
        [
            curated("silver.good", "bronze.people", scd_type=1, transformation_sql_path="sql/${var:query}.sql"),
            curated("silver.broken", "bronze.people", transformation_sql_path="sql/broken.sql"),
            curated("silver.behind", "silver.broken"),
        ],
        karat={"vars": {"query": "absent"}},
        sql={"query.sql": "SELECT *, upper(name) AS loud FROM source_incremental", "broken.sql": "SELEKT * FRM x"},
    )
    land(made, "bronze.people", ROWS)
    return made


def test_a_project_from_its_first_run_to_its_questions(folder: Path) -> None:
    at = ("--project", folder)

    # before anything ran, the plan says why and writes nothing
    planned = answer("plan", *at, "--var", "query=query")
    assert [stage["name"] for stage in planned] == ["silver.good", "silver.broken", "silver.behind"]
    assert [stage["since"] for stage in planned] == [None, None, None]
    assert "silver.behind" in karat("plan", *at, "--select", "+silver.behind").stdout
    assert not (folder / "lake" / "silver").exists()
    assert [table["name"] for table in answer("tables", *at)] == ["bronze.people"]

    # a run with a broken table ends in 1, names it without a traceback, and does the rest
    ended = karat("run", *at, "--var", "query=query", "--json", code=1)
    report = json.loads(ended.stdout)
    assert (report["ok"], {stage["name"]: stage["status"] for stage in report["stages"]}) == (
        False,
        {"silver.good": "succeeded", "silver.broken": "failed", "silver.behind": "skipped"},
    )
    assert report["stages"][0]["rows"]["quarantined"] == 1
    assert report["stages"][0]["rows"]["inserted"] == 1
    assert "does not parse" in report["stages"][1]["error"]
    assert "Traceback" not in ended.stderr
    assert held(folder, "silver.good", "id", "loud") == [("1", "ANN")]

    # a second run of the good one says that nothing changed; --debug may show a traceback and JSON stays JSON
    before = versions(folder, "silver.good")
    ended = karat("run", *at, "--select", "silver.good", "--var", "query=query")
    assert "unchanged" in ended.stdout
    assert "Traceback" not in ended.stdout + ended.stderr
    assert versions(folder, "silver.good") == before

    # what happened can be asked without a JVM
    tables = {table["name"]: table for table in answer("tables", *at)}
    assert (tables["silver.good"]["rows"], tables["silver.good"]["status"]) == (1, "unchanged")
    assert tables["silver.good_quarantine"]["rows"] == 1
    assert "silver.good" in karat("tables", *at).stdout
    latest = answer("progress", *at)
    assert [stage["status"] if "status" in stage else stage["state"] for stage in latest["stages"]] == ["unchanged"]
    assert report["run_id"] in karat("progress", *at, report["run_id"]).stdout
    assert [failure["stage"] for failure in answer("progress", *at, "--failures")][:1] == ["silver.broken"]
    since = answer("plan", *at, "--select", "silver.good")[0]["since"]
    assert since == "2026-01-01T10:00:00+00:00"
    assert all(finding["ok"] for finding in answer("doctor", *at))


@pytest.mark.usefixtures("spark")
def test_debug_shows_the_traceback_of_a_failed_table(folder: Path) -> None:
    """In this process and its session: another JVM would say the same, half a minute later."""
    karat_yml = folder / "karat.yml"
    karat_yml.write_text(karat_yml.read_text(encoding="utf-8").replace("local[2]", "provided"), encoding="utf-8")
    ended = CliRunner().invoke(app, ["run", "--project", str(folder), "--select", "silver.broken", "--debug", "--json"])
    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["ok"] is False
    assert "Traceback" in ended.stderr
    assert "ParseException" in ended.stderr


def test_what_is_wrong_with_the_command_ends_in_2(folder: Path, tmp_path: Path) -> None:
    at = ("--project", folder)
    for arguments, words in [
        (("plan", *at, "--select", "silver.goood"), "did you mean silver.good?"),
        (("run", *at, "--select", "gold.*"), "nothing is called"),
        (("run", *at, "--var", "query"), "--var query has no value"),
        (("check", "--project", tmp_path / "nowhere"), "there is no karat.yml"),
        (("run", "--project", tmp_path / "nowhere"), "there is no karat.yml"),
        (("run", *at, "--heartbeat-seconds", "0"), "heartbeat-seconds"),
        (("fly",), "fly"),
    ]:
        ended = karat(*arguments, code=2)
        assert words in ended.stderr
        assert "Traceback" not in ended.stderr
        assert ended.stdout == ""
    problem = answer("plan", *at, "--select", "silver.goood", code=2)
    assert problem["error"]["code"] == "CONFIG"


def test_a_mirror_that_cannot_be_read_is_no_obstacle(folder: Path) -> None:
    (folder / ".karat").mkdir()
    (folder / ".karat" / "state.db").write_bytes(b"this is no database" * 100)
    assert len(answer("plan", "--project", folder)) == 3
    assert len(answer("tables", "--project", folder)) == 1


def test_a_new_project_checks_and_plans(tmp_path: Path) -> None:
    made = answer("init", tmp_path / "new")
    assert any(path.endswith("karat.yml") for path in made["files"])
    assert answer("check", "--project", tmp_path / "new")["ok"] is True
    assert [stage["name"] for stage in answer("plan", "--project", tmp_path / "new")] == [
        "bronze.customer",
        "bronze.payment",
        "silver.customer",
    ]
    again = karat("init", tmp_path / "new", code=2)
    assert "Traceback" not in again.stderr
    bundled = answer("init", tmp_path / "new", "--bundle")
    assert any(path.endswith("databricks.yml") for path in bundled["files"])
    assert answer("check", "--project", tmp_path / "new")["ok"] is True
    assert "Traceback" not in karat("progress", "--project", tmp_path / "new", code=2).stderr  # no run to tell of
