"""Where the store is, with which driver, and that no message ever shows its password."""

import socket
import sys
from pathlib import Path

import pytest

from karat.config.setting import SecretFromEnv, SecretFromFile
from karat.config.settings import StateSettings
from karat.errors import ConfigError, KaratError, SetupError, SourceUnavailable
from karat.state.address import state_url
from karat.state.reader import StateReader
from karat.state.writer import StateWriter

PASSWORD = "s3cr3t/with:odd@letters"


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def test_the_default_store_lies_in_the_project(tmp_path: Path) -> None:
    url = state_url(StateSettings(), tmp_path)
    assert url.database == str(tmp_path.resolve() / ".karat" / "state.db")
    StateWriter.open(url).close()
    assert (tmp_path / ".karat" / "state.db").is_file()


def test_an_absolute_path_stays_where_it_is(tmp_path: Path) -> None:
    assert state_url(StateSettings(url="sqlite:////var/karat.db"), tmp_path).database == "/var/karat.db"


@pytest.mark.parametrize(
    ("written", "driver"),
    [
        ("postgresql", "postgresql+psycopg"),
        ("mysql", "mysql+pymysql"),
        ("mariadb", "mariadb+pymysql"),
        ("singlestore", "mysql+pymysql"),
        ("postgresql+pg8000", "postgresql+pg8000"),
    ],
)
def test_each_database_gets_its_driver_unless_one_is_named(written: str, driver: str, tmp_path: Path) -> None:
    assert state_url(StateSettings(url=f"{written}://u@h/db"), tmp_path).drivername == driver


def test_the_password_comes_from_its_secret_and_shows_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATE_PASSWORD", PASSWORD)
    (tmp_path / "password").write_text(PASSWORD + "\n", encoding="utf-8")
    for secret in (SecretFromEnv(env="STATE_PASSWORD"), SecretFromFile(file="password")):
        url = state_url(StateSettings(url="postgresql://u@h/db", password=secret), tmp_path)
        assert url.password == PASSWORD
        assert "s3cr3t" not in f"{url} {url!r}"


@pytest.mark.parametrize(
    "url", [f"postgresql://u:{'s3cr3t'}@h/db", "postgresql://u@h/db?password=s3cr3t", "postgresql://u:s3cr3t@h:port/db"]
)
def test_a_password_in_the_url_is_refused_without_repeating_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        state_url(StateSettings(url=url), tmp_path)
    assert "s3cr3t" not in str(refused.value)
    assert refused.value.remedy


@pytest.mark.parametrize("backend", ["postgresql", "mariadb", "mysql"])
def test_a_database_that_is_down_is_unavailable_and_its_password_stays_hidden(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_PASSWORD", PASSWORD)
    settings = StateSettings(url=f"{backend}://u@127.0.0.1:{closed_port()}/db", password=SecretFromEnv(env="STATE_PASSWORD"))
    url = state_url(settings, tmp_path)
    for opened in (lambda: StateWriter.open(url), lambda: StateReader.open(url).runs()):
        with pytest.raises(SourceUnavailable) as refused:
            opened()
        assert "s3cr3t" not in said(refused.value)
        assert refused.value.retryable


@pytest.mark.parametrize(("backend", "module", "extra"), [("postgresql", "psycopg", "postgresql"), ("singlestore", "pymysql", "mariadb")])
def test_a_missing_driver_names_the_extra_to_install(backend: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SetupError) as missing:
        StateWriter.open(f"{backend}://u@127.0.0.1:1/db")
    assert missing.value.remedy == f"pip install 'karat[{extra}]'"


def test_an_unknown_database_is_told(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no driver is known"):
        StateWriter.open(state_url(StateSettings(url="papyrus://u@h/db"), tmp_path))


def said(error: KaratError) -> str:
    """All that a log could show of an error."""
    return f"{error} {error!r} {error.evidence} {error.__cause__!r}"
