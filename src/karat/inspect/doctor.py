"""What a run needs and whether it is there: each finding names what was checked and, if it fails, the remedy.

Nothing is changed, no secret is shown or sent, and no JVM is started beyond `java -version`.
"""

import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from karat.config.names import local_path
from karat.config.secrets import reveal
from karat.config.setting import SecretFromEnv, SecretFromFile, Setting
from karat.config.settings import Connection, JdbcConnection, ProjectSettings
from karat.errors import KaratError
from karat.lake.jars import cache_folder, java_version, missing_jars, pinned_jars

OLDEST_PYTHON: Final = (3, 11)
PATIENCE_SECONDS: Final = 2.0
"""How long a host may take to answer."""


@dataclass(frozen=True)
class Finding:
    """One check; the remedy is empty if all is well."""

    subject: str
    ok: bool
    detail: str
    remedy: str = ""


def examine(settings: ProjectSettings | None, project: Path | None) -> list[Finding]:
    """Checks of everything a run needs on this machine and, given a project, of its lake, secrets and connections."""
    findings = [_python(), *_packages()]
    if settings is None or settings.spark.master != "provided":
        findings += [_java(), _jars()]
    if settings is not None:
        home = project or Path.cwd()
        findings += [_lake(settings.lake, home), *_secrets(settings, home), _state(settings, home)]
        findings += [_connection(name, connection) for name, connection in settings.connections.items()]
    return findings


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= OLDEST_PYTHON:
        return Finding("python", ok=True, detail=found)
    return Finding("python", ok=False, detail=f"{found} is too old", remedy="use Python 3.11 or later")


def _java() -> Finding:
    try:
        return Finding("java", ok=True, detail=java_version())
    except KaratError as failure:
        return Finding("java", ok=False, detail=failure.message, remedy=failure.remedy)


def _jars() -> Finding:
    missing = missing_jars()
    if missing:
        return Finding("jars", ok=False, detail=f"missing: {', '.join(missing)}", remedy="run `karat setup` once; it fetches them")
    return Finding("jars", ok=True, detail=f"{len(pinned_jars())} in {cache_folder()}")


def _packages() -> list[Finding]:
    """The engines by version; the two whose jars are pinned must match their jars."""
    delta = next(jar for jar in pinned_jars() if jar.artifact.startswith("delta-spark_"))
    spark = delta.artifact.split("_")[1]
    return [_package("pyspark", spark), _package("delta-spark", delta.version), _package("deltalake"), _package("pydantic")]


def _package(name: str, wanted: str = "") -> Finding:
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, ok=False, detail="not installed", remedy="reinstall karat; it names every package it needs")
    if f"{found}.".startswith(f"{wanted}." if wanted else ""):
        return Finding(name, ok=True, detail=found)
    return Finding(name, ok=False, detail=f"{found}, but the pinned jars belong to {wanted}", remedy=f"pip install '{name}=={wanted}.*'")


def _lake(lake: str, project: Path) -> Finding:
    """Whether a local lake can be written; a remote one is not tried."""
    here = local_path(lake)
    if here is None:
        return Finding("lake", ok=True, detail=f"{lake} (not local, not tried)")
    return _writable("lake", project / here)


def _writable(subject: str, folder: Path) -> Finding:
    """Whether a temporary file can be created in the folder, or in the nearest one above it that exists."""
    nearest = next((place for place in (folder, *folder.absolute().parents) if place.exists()), folder)
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return Finding(subject, ok=True, detail=f"{folder} is writable" if nearest == folder else f"{folder} can be created")
    except OSError as failure:
        detail = f"{nearest} is not writable: {failure.strerror}"
        return Finding(subject, ok=False, detail=detail, remedy="give this user the right to write there")


def _secrets(settings: ProjectSettings, project: Path) -> Iterator[Finding]:
    """Whether each secret has a value; the value is never shown."""
    for place, secret in _references(settings, ""):
        subject = f"secret {place}"
        try:
            reveal(secret, project)
        except KaratError as failure:
            yield Finding(subject, ok=False, detail=failure.message, remedy=failure.remedy)
        else:
            yield Finding(subject, ok=True, detail=f"{secret} is set")


def _references(value: object, place: str) -> Iterator[tuple[str, SecretFromEnv | SecretFromFile]]:
    """Every secret reference below a piece of configuration, with its path in the configuration."""
    if isinstance(value, SecretFromEnv | SecretFromFile):
        yield place, value
    elif isinstance(value, Setting):
        for name in type(value).model_fields:
            yield from _references(getattr(value, name), f"{place}.{name}".lstrip("."))
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _references(part, f"{place}.{name}")


def _state(settings: ProjectSettings, project: Path) -> Finding:
    """Whether the state store answers; a SQLite file that is not there yet is not made."""
    from karat.state.address import state_url  # noqa: PLC0415  (SQLAlchemy is slow to import; a doctor without a project needs none)
    from karat.state.engine import reaching, reading_engine  # noqa: PLC0415

    try:
        url = state_url(settings.state, project)
        with reaching(url):
            engine = reading_engine(url)
            if engine is None:
                return _writable("state", Path(str(url.database)).parent)
            try:
                engine.connect().close()
            finally:
                engine.dispose()
    except KaratError as failure:
        return Finding("state", ok=False, detail=failure.message, remedy=failure.remedy)
    return Finding("state", ok=True, detail=f"{url.render_as_string(hide_password=True)} answers")


def _connection(name: str, connection: Connection) -> Finding:
    """Whether anything listens there; for Kafka one of the bootstrap servers is enough, as it is for Kafka."""
    if isinstance(connection, JdbcConnection):
        servers = [(connection.host, connection.port)]
    else:
        servers = [_host_and_port(server) for server in connection.bootstrap_servers.split(",")]
    subject, refusals = f"connection {name}", list[str]()
    for host, port in servers:
        try:
            with socket.create_connection((host, port), timeout=PATIENCE_SECONDS):
                return Finding(subject, ok=True, detail=f"{host}:{port} answers")
        except OSError as failure:
            refusals.append(f"{host}:{port}: {failure.strerror or 'no answer'}")
    remedy = f"check connections.{name} in karat.yml, the network between, and that the server is up"
    return Finding(subject, ok=False, detail="; ".join(refusals), remedy=remedy)


def _host_and_port(server: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port`; Kafka's usual port where none is given."""
    parts = urlsplit(f"//{server.strip()}")
    port = 9092
    with suppress(ValueError):
        port = parts.port or port
    return parts.hostname or server, port
