"""`karat check` in a process of its own: quick, without Spark, every problem at once, no secret repeated."""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import curated, project_folder

ROOT = Path(__file__).parents[3]
WITHOUT_SPARK = """
import sys
from karat.cli import main
sys.argv = ["karat", *sys.argv[1:]]
try:
    main()
finally:
    loaded = {name.partition(".")[0] for name in sys.modules} & {"pyspark", "delta", "py4j", "pandas", "numpy", "pyarrow"}
    print(sorted(loaded), file=sys.stderr)
"""


def karat(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command, which says last on standard error what it should not have loaded."""
    command = [sys.executable, "-c", WITHOUT_SPARK, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603


@pytest.fixture
def claims(tmp_path: Path) -> Path:
    """The example without anything a demo may have left in it."""
    return Path(shutil.copytree(ROOT / "examples" / "claims", tmp_path / "claims", ignore=shutil.ignore_patterns("lake", ".karat")))


def worked() -> float:
    """Seconds of work of all processes that have ended: on a machine of one's own, the time that passed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_check_answers_within_a_second(claims: Path) -> None:
    took = []
    for _ in range(3):
        begun = worked()
        ended = karat("check", "--project", claims)
        took.append(worked() - begun)
        assert ended.returncode == 0, ended.stderr
    assert min(took) < 1.0


@pytest.mark.parametrize("command", ["check", "plan", "tables"])
def test_deciding_and_looking_load_no_spark(claims: Path, command: str) -> None:
    ended = karat(command, "--project", claims, "--json")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.splitlines() == ["[]"]
    json.loads(ended.stdout)


def test_check_says_how_much_is_well(claims: Path) -> None:
    assert karat("check", "--project", claims).stdout == "claims: 5 tables declared, no problems\n"
    answer = json.loads(karat("check", "--project", claims, "--json").stdout)
    assert answer["ok"] is True
    assert answer["problems"] == []
    assert sorted(answer["tables"]) == ["silver.claimants", "silver.claims", "silver.payments", "silver.policies", "silver.providers"]


def test_check_names_every_problem_and_no_secret(tmp_path: Path) -> None:
    erp = {"kind": "jdbc", "dialect": "oracel", "host": "h", "port": 1, "database": "d", "user": "u", "password": "hunter2-s3cr3t"}
    folder = project_folder(
        tmp_path, [curated("silver.a; DROP TABLE b", "bronze.a", lookback="2 HOURS")], karat={"connections": {"erp": erp}}
    )
    for options in ([], ["--json"], ["--debug"]):
        ended = karat("check", "--project", folder, *options)
        assert ended.returncode == 2
        assert "hunter2-s3cr3t" not in ended.stdout + ended.stderr
        assert ("Traceback" in ended.stderr) == (options == ["--debug"])
        for place in ("karat.yml:4 connections.erp.dialect", "connections.erp.password", "curation.json:"):
            assert place in ended.stderr
    answer = json.loads(karat("check", "--project", folder, "--json").stdout)
    assert answer["error"]["code"] == "CONFIG"
    assert {"file", "line", "path", "message", "value", "remedy"} == set(answer["error"]["problems"][0])


def test_a_missing_transformation_is_a_problem_of_check(tmp_path: Path) -> None:
    folder = project_folder(tmp_path, [curated("silver.a", "bronze.a", transformation_sql_path="sql/absent.sql")])
    ended = karat("check", "--project", folder)
    assert ended.returncode == 2
    assert "sql/absent.sql" in ended.stderr
    assert karat("plan", "--project", folder).returncode == 0
