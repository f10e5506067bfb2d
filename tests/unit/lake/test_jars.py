"""The jar cache: what is trusted, what is fetched, and what is said when neither works. No JVM is started."""

import hashlib
import subprocess
from pathlib import Path

import pytest

from karat.errors import SetupError
from karat.lake import jars

CONTENT = b"not really a jar"
PIN = jars.Jar("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())
OTHER = jars.Jar("org.example", "other", "2.0", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that asks for one jar of ours; any start of a program fails the test."""

    def refuse(*command: object, **_options: object) -> None:
        pytest.fail(f"a program was started: {command}")

    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(jars, "pinned_jars", lambda: (PIN,))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    folder = tmp_path / "jars"
    folder.mkdir()
    return folder


def java_says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(jars, "_java", lambda: "java")
    monkeypatch.setattr(subprocess, "run", lambda *_a, **_k: subprocess.CompletedProcess([], 0, "", text))


def ivy_leaves(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    def run(wanted: list[jars.Jar], scratch: Path, _progress: jars.Progress) -> None:
        (scratch / "out").mkdir()
        for jar in wanted:
            (scratch / "out" / jar.file).write_bytes(content)

    monkeypatch.setattr(jars, "_run_ivy", run)


def test_every_pin_is_whole() -> None:
    pins = jars.pinned_jars()
    assert pins
    assert all(len(pin.sha256) == 64 and pin.coordinate.count(":") == 2 for pin in pins)


def test_with_every_jar_in_the_cache_no_program_is_started(cache: Path) -> None:
    (cache / PIN.file).write_bytes(CONTENT)
    assert jars.ensure_jars() == [cache / PIN.file]
    assert jars.missing_jars() == []


def test_a_damaged_jar_is_removed_and_both_sums_are_shown(cache: Path) -> None:
    (cache / PIN.file).write_bytes(b"tampered")
    assert jars.missing_jars() == [PIN.coordinate]
    with pytest.raises(SetupError) as raised:
        jars.ensure_jars()
    assert not (cache / PIN.file).exists()
    assert PIN.sha256 in raised.value.message
    assert hashlib.sha256(b"tampered").hexdigest() in raised.value.message
    assert "karat setup" in raised.value.remedy


def test_a_wrong_jar_never_reaches_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_says(monkeypatch, 'openjdk version "21.0.2" 2024-01-16')
    ivy_leaves(monkeypatch, b"another file of that name")
    with pytest.raises(SetupError, match="not the file that was pinned"):
        jars.ensure_jars()
    assert list(cache.iterdir()) == []


def test_only_what_is_missing_is_fetched_and_nothing_else_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "pinned_jars", lambda: (PIN, OTHER))
    (cache / PIN.file).write_bytes(CONTENT)
    java_says(monkeypatch, 'openjdk version "17.0.15" 2025-04-15')
    ivy_leaves(monkeypatch, CONTENT)
    assert jars.ensure_jars() == [cache / PIN.file, cache / OTHER.file]
    assert sorted(file.name for file in cache.iterdir()) == [OTHER.file, PIN.file]


@pytest.mark.usefixtures("cache")
def test_no_java_is_said_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match="no java on the path") as raised:
        jars.ensure_jars()
    assert "JAVA_HOME" in raised.value.remedy


@pytest.mark.usefixtures("cache")
def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=f"no java below JAVA_HOME={tmp_path}"):
        jars.java_version()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("text", ['java version "1.8.0_391"', 'openjdk version "11.0.20" 2023-07-18'])
def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    java_says(monkeypatch, text)
    with pytest.raises(SetupError, match="too old"):
        jars.java_version()


@pytest.mark.usefixtures("cache")
def test_the_version_is_found_behind_what_the_jvm_prints_first(monkeypatch: pytest.MonkeyPatch) -> None:
    java_says(monkeypatch, 'Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "17.0.15" 2025-04-15\n')
    assert jars.java_version() == "17.0.15"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([":: a#b;1: not found", "", ":::: ERRORS", "nowhere: Name or service not known", "again"], "nowhere: Name or service not known"),
        (["confs: [default]", ":: a#b;1: not found", ":: USE VERBOSE"], "a#b;1: not found"),
        (["Exception in thread main"], "Exception in thread main"),
        ([], "Ivy said nothing"),
    ],
)
def test_the_sentence_that_matters_is_picked_from_ivys_report(said: list[str], reason: str) -> None:
    assert jars._reason(said) == reason
