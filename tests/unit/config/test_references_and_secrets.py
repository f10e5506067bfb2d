"""Values may come from the environment and from variables; a secret comes from nowhere else and is never repeated."""

import json
from pathlib import Path

import pytest
import yaml

from karat.config.load import load
from karat.config.problems import ConfigProblems, Problem
from karat.config.secrets import reveal
from karat.config.setting import SecretFromEnv, SecretFromFile
from karat.errors import ConfigError
from tests.support.projects import curated, project_folder

SECRET = "hunter2-s3cr3t"


def settings(folder: Path, karat: dict[str, object]) -> Path:
    return project_folder(folder, [curated("silver.a", "bronze.a")], karat=karat)


def problems(folder: Path, variables: dict[str, str] | None = None) -> list[Problem]:
    with pytest.raises(ConfigProblems) as caught:
        load(folder, variables)
    assert SECRET not in str(caught.value)
    assert SECRET not in json.dumps([problem.as_record() for problem in caught.value.problems])
    return list(caught.value.problems)


def test_values_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARAT_TEST_LAKE", "s3a://bucket/lake")
    monkeypatch.setenv("KARAT_TEST_TABLES", "7")
    monkeypatch.setenv("KARAT_TEST_FAST", "true")
    monkeypatch.delenv("KARAT_TEST_ABSENT", raising=False)
    runtime = {
        "max_parallel_tables": "${env:KARAT_TEST_TABLES}",
        "fail_fast": "${env:KARAT_TEST_FAST}",
        "heartbeat_seconds": "${env:KARAT_TEST_ABSENT:-5}",
    }
    config = load(settings(tmp_path, {"lake": "${env:KARAT_TEST_LAKE}/${env:KARAT_TEST_ABSENT:-dev}", "runtime": runtime}))
    assert config.lake == "s3a://bucket/lake/dev"
    assert config.settings.runtime.model_dump() == {"max_parallel_tables": 7, "heartbeat_seconds": 5, "fail_fast": True}


def test_variables_are_given_in_the_project_and_overridden_for_a_run(tmp_path: Path) -> None:
    karat = {"vars": {"size": 3, "layer": "silver"}, "runtime": {"max_parallel_tables": "${var:size}"}}
    folder = project_folder(tmp_path, [curated("${var:layer}.a", "bronze.a")], karat=karat)
    assert (load(folder).settings.runtime.max_parallel_tables, str(load(folder).curated[0].target)) == (3, "silver.a")
    given = load(folder, {"size": "9", "layer": "dev"})
    assert (given.settings.runtime.max_parallel_tables, str(given.curated[0].target)) == (9, "dev.a")


def test_text_that_looks_like_a_number_stays_text_where_text_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARAT_TEST_KEY", "007")
    table = curated("silver.a", "bronze.a", business_key_columns=["${env:KARAT_TEST_KEY}", "${var:year}"])
    folder = project_folder(tmp_path, [table], karat={"vars": {"year": "2026"}})
    assert load(folder).curated[0].keys == ("007", "2026")
    assert load(folder, {"year": "2027"}).curated[0].keys == ("007", "2027")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("${env:KARAT_TEST_ABSENT}", "KARAT_TEST_ABSENT is not set"),
        ("${var:nobody}", "nobody has no value"),
        ("${environment:X}", "not known"),
        ("${}", "not known"),
        ("${env:}", "not known"),
        ("a ${var:nobody} b", "nobody has no value"),
    ],
)
def test_a_reference_to_nothing_is_said_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, words: str) -> None:
    monkeypatch.delenv("KARAT_TEST_ABSENT", raising=False)
    found = problems(settings(tmp_path, {"lake": value}))
    assert [problem.path for problem in found] == ["lake"]
    assert words in found[0].message
    assert found[0].remedy


def test_a_number_from_the_environment_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARAT_TEST_TABLES", "many")
    (problem,) = problems(settings(tmp_path, {"runtime": {"max_parallel_tables": "${env:KARAT_TEST_TABLES}"}}))
    assert problem.path == "runtime.max_parallel_tables"


def connection(**more: object) -> dict[str, object]:
    erp = {"kind": "jdbc", "dialect": "postgresql", "host": "h", "port": 5432, "database": "d", "user": "u", **more}
    return {"connections": {"erp": erp}}


LITERALS = {
    "a password": connection(password=SECRET),
    "a password by variable": {**connection(password="${var:pw}"), "vars": {"pw": SECRET}},
    "a password by text of the environment": connection(password="${env:KARAT_TEST_SECRET}"),
    "a password in a list": connection(password=[SECRET]),
    "a password in a mapping": connection(password={"value": SECRET}),
    "a password in a mapping beside a reference": connection(password={"env": "X", "value": SECRET}),
    "a misspelt password": connection(password={"env": "X"}, passwrod=SECRET),
    "a password by another name": connection(password={"env": "X"}, pwd=SECRET),
    "a password among the options": connection(password={"env": "X"}, options={"password": SECRET}),
    "a password of the mail server": {"notify": {"email": {"host": "h", "sender": "a@b", "to": ["c@d"], "user": "u", "password": SECRET}}},
    "a password in the state's address": {"state": {"url": f"postgresql://u:{SECRET}@h/db"}},
    "a password with a slash in the state's address": {"state": {"url": f"postgresql://u:{SECRET}/x@h/db"}},
    "a password in the query of the state's address": {"state": {"url": f"postgresql://h/db?user=u&password={SECRET}"}},
    "a state's password": {"state": {"url": "postgresql://u@h/db", "password": SECRET}},
    "a key in Spark's settings": {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": SECRET}}},
    "a token in a header": {"notify": {"webhook": {"url": "https://h", "headers": {"Authorization": f"Bearer {SECRET}"}}}},
    "a password of Kafka": {
        "connections": {"k": {"kind": "kafka", "bootstrap_servers": "h:1", "options": {"kafka.ssl.keystore.password": SECRET}}}
    },
}


@pytest.mark.parametrize("karat", [pytest.param(karat, id=name) for name, karat in LITERALS.items()])
def test_a_literal_secret_is_refused_and_never_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, karat: dict[str, object]) -> None:
    monkeypatch.setenv("KARAT_TEST_SECRET", SECRET)
    found = problems(settings(tmp_path, karat))
    assert found[0].file == "karat.yml"
    assert found[0].line > 1
    assert found[0].remedy


def test_a_secret_beside_a_mistake_is_not_repeated_either(tmp_path: Path) -> None:
    karat = connection(password=SECRET, port="x", extra=1)
    assert [problem.path for problem in problems(settings(tmp_path, karat))] == [
        "connections.erp.extra",
        "connections.erp.password",
        "connections.erp.port",
    ]
    (tmp_path / "karat.yml").write_text(f"project: test\nconnections:\n  erp: {{password: {SECRET}\n", encoding="utf-8")
    (problem,) = problems(tmp_path)
    assert "not valid YAML" in problem.message


def test_a_reference_is_fetched_when_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = settings(tmp_path, connection(password={"env": "KARAT_TEST_SECRET"}))
    monkeypatch.delenv("KARAT_TEST_SECRET", raising=False)
    config = load(folder)  # the secret need not be there to check a project
    assert SECRET not in repr(config)
    with pytest.raises(ConfigError, match="KARAT_TEST_SECRET"):
        reveal(SecretFromEnv(env="KARAT_TEST_SECRET"), folder)
    monkeypatch.setenv("KARAT_TEST_SECRET", SECRET)
    assert reveal(SecretFromEnv(env="KARAT_TEST_SECRET"), folder) == SECRET
    (folder / "password.txt").write_text(SECRET + "\n", encoding="utf-8")
    assert reveal(SecretFromFile(file="password.txt"), folder) == SECRET
    with pytest.raises(ConfigError, match=r"absent\.txt"):
        reveal(SecretFromFile(file="absent.txt"), folder)


def test_the_configuration_hash_does_not_depend_on_secrets_and_follows_declarations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = settings(tmp_path, connection(password={"env": "KARAT_TEST_SECRET"}))
    before = load(folder).hash
    monkeypatch.setenv("KARAT_TEST_SECRET", SECRET)
    assert load(folder).hash == before
    declaration = yaml.safe_load((folder / "curation.json").read_text(encoding="utf-8"))
    declaration["tables"][0]["scd_type"] = 1
    (folder / "curation.json").write_text(json.dumps(declaration), encoding="utf-8")
    assert load(folder).hash != before
