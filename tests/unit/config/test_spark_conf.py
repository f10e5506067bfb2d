"""Keys of cloud storage are secrets wherever they stand in `spark.conf`; what hashes depend on is not the user's to change."""

import re
from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.problems import ConfigProblems, Problem
from karat.config.settings import SparkSettings
from karat.config.spark_conf import REDACTION, redaction
from karat.lake import session
from tests.support.projects import curated, project_folder

ACCOUNT = "fs.azure.account.key.bank.dfs.core.windows.net"
KEYS = {
    f"spark.hadoop.{ACCOUNT}": "bGl0ZXJhbA==",
    "spark.hadoop.fs.azure.sas.land.bank.blob.core.windows.net": "sv=2024&sp=rl",
    "spark.hadoop.fs.s3a.access.key": "literal",
    "spark.hadoop.fs.s3a.encryption.key": "literal",
    "spark.hadoop.google.cloud.auth.service.account.private.key": "literal",
    "spark.some.setting": '{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----"}',
    "spark.other.setting": "AKIAIOSFODNN7EXAMPLE",
}


def project(folder: Path, conf: dict[str, object]) -> Path:
    return project_folder(folder, [curated("silver.a", "bronze.a")], karat={"spark": {"master": "local[1]", "conf": conf}})


def problems(folder: Path, conf: dict[str, object]) -> list[Problem]:
    with pytest.raises(ConfigProblems) as caught:
        load(project(folder, conf))
    return list(caught.value.problems)


@pytest.mark.parametrize(("name", "key"), KEYS.items(), ids=KEYS)
def test_a_key_that_is_written_out_is_refused_and_never_repeated(tmp_path: Path, name: str, key: str) -> None:
    (problem,) = problems(tmp_path, {name: key})
    assert problem.path == f"spark.conf.{name}"
    assert "{env: NAME}" in problem.remedy
    assert key not in str(problem)


def test_a_key_may_be_a_reference_and_what_only_speaks_of_keys_may_stand_there(tmp_path: Path) -> None:
    conf = {
        **{key: {"env": "KARAT_TEST_SECRET"} for key in KEYS},
        "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "spark.hadoop.google.cloud.auth.service.account.json.keyfile": "/etc/google.json",
        "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
    }
    assert set(load(project(tmp_path, conf)).settings.spark.conf) == set(conf)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.ansi.enabled", False),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.sql.parser.escapedStringLiterals", "true"),
    ],
)
def test_a_setting_on_which_hashes_depend_is_refused_with_the_value_it_must_have(tmp_path: Path, name: str, value: object) -> None:
    (problem,) = problems(tmp_path, {name: value})
    assert (problem.path, problem.remedy) == (f"spark.conf.{name}", "leave it out")
    assert "hashes" in problem.message


def test_the_value_that_is_needed_may_be_written(tmp_path: Path) -> None:
    assert load(project(tmp_path, {"spark.sql.ansi.enabled": True, "spark.sql.session.timeZone": "UTC"})).curated


def test_spark_redacts_keys_secrets_by_reference_and_what_the_user_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ensure_jars", list)
    settings = SparkSettings(master="local[1]", conf={REDACTION: "(?i)tenant", "spark.odd": "value"})
    conf = session.session_conf(settings, ["spark.odd"])
    pattern = re.compile(re.sub(r"\\Q(.*?)\\E", lambda name: re.escape(name[1]), conf[REDACTION].replace("|(?i)tenant", "|(?i:tenant)")))
    hidden = [*list(KEYS)[:5], "spark.hadoop.fs.s3a.secret.key", "spark.odd", "my.Tenant.id"]
    assert [name for name in hidden if not pattern.search(name)] == []
    assert not [name for name in ("spark.master", "spark.sql.shuffle.partitions", "spark.oddly") if pattern.fullmatch(name)]
    assert redaction(None, []) in conf[REDACTION]
