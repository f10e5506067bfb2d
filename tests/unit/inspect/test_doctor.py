"""The doctor: finds what is missing, says what to do, shows no secret, changes nothing."""

import socket
from pathlib import Path

import pytest

from karat.config.settings import ProjectSettings
from karat.errors import SetupError
from karat.inspect import doctor
from karat.inspect.doctor import Finding, examine

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "java_version", lambda: "17.0.15")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))


def about(subject: str, findings: list[Finding]) -> Finding:
    (found,) = [finding for finding in findings if finding.subject == subject]
    return found


def jdbc(port: int) -> dict[str, object]:
    place = {"kind": "jdbc", "dialect": "postgresql", "host": "127.0.0.1", "port": port, "database": "db", "user": "me"}
    return {**place, "password": {"env": "DOCTOR_SECRET"}}


def project(**settings: object) -> ProjectSettings:
    return ProjectSettings.model_validate({"project": "p", **settings})


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_without_a_project_only_the_machine_is_examined() -> None:
    subjects = [finding.subject for finding in examine(None, None)]
    assert subjects == ["python", "pyspark", "delta-spark", "deltalake", "pydantic", "java", "jars"]


def test_missing_jars_are_named_with_the_command_that_fetches_them() -> None:
    jars = about("jars", examine(None, None))
    assert not jars.ok
    assert "io.delta:delta-storage:4.4.0" in jars.detail
    assert "karat setup" in jars.remedy


def test_a_missing_java_is_a_finding_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> str:
        message = "there is no java on the path"
        raise SetupError(message, remedy="install one")

    monkeypatch.setattr(doctor, "java_version", absent)
    assert about("java", examine(None, None)) == Finding("java", ok=False, detail="there is no java on the path", remedy="install one")


def test_a_provided_session_needs_neither_java_nor_jars(tmp_path: Path) -> None:
    subjects = [finding.subject for finding in examine(project(spark={"master": "provided"}), tmp_path)]
    assert "java" not in subjects
    assert "jars" not in subjects


def test_a_package_that_does_not_fit_its_jars_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "version", {"pyspark": "4.10.0", "delta-spark": "4.4.0", "deltalake": "1.6.6", "pydantic": "2.9"}.get)
    findings = examine(None, None)
    assert not about("pyspark", findings).ok
    assert about("delta-spark", findings).ok


def test_lake_and_state_that_do_not_exist_yet_are_fine_and_are_not_made(tmp_path: Path) -> None:
    findings = examine(project(), tmp_path)
    assert about("lake", findings).ok
    assert about("state", findings).ok
    assert list(tmp_path.iterdir()) == []


def test_a_lake_below_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    assert not about("lake", examine(project(lake="./taken/lake"), tmp_path)).ok


def test_a_remote_lake_is_not_tried(tmp_path: Path) -> None:
    assert "not tried" in about("lake", examine(project(lake="s3a://bucket/lake"), tmp_path)).detail


def test_an_open_port_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert about("connection crm", examine(project(connections={"crm": jdbc(port)}), tmp_path)).ok


def test_a_closed_port_is_named(tmp_path: Path, closed_port: int) -> None:
    found = about("connection crm", examine(project(connections={"crm": jdbc(closed_port)}), tmp_path))
    assert not found.ok
    assert f"127.0.0.1:{closed_port}" in found.detail
    assert "connections.crm" in found.remedy


def test_one_living_bootstrap_server_is_enough(tmp_path: Path, closed_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        servers = f"127.0.0.1:{closed_port}, 127.0.0.1:{server.getsockname()[1]}"
        assert about("connection bus", examine(project(connections={"bus": {"kind": "kafka", "bootstrap_servers": servers}}), tmp_path)).ok


def test_a_secret_is_found_by_name_and_never_shown(tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = project(
        connections={"crm": jdbc(closed_port)},
        state={"url": f"postgresql://me@127.0.0.1:{closed_port}/db", "password": {"env": "DOCTOR_SECRET"}},
    )
    monkeypatch.delenv("DOCTOR_SECRET", raising=False)
    missing = examine(settings, tmp_path)
    assert not about("secret connections.crm.password", missing).ok
    assert not about("secret state.password", missing).ok

    monkeypatch.setenv("DOCTOR_SECRET", SECRET)
    present = examine(settings, tmp_path)
    assert about("secret connections.crm.password", present) == Finding(
        "secret connections.crm.password", ok=True, detail="{env: DOCTOR_SECRET} is set"
    )
    assert not about("state", present).ok
    assert SECRET not in repr(present)
