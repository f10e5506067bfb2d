"""The jars Delta needs in addition to Spark's own: pinned by checksum, fetched once, kept in a cache folder.

The pins are in `jars.txt`. What is missing is fetched by the Ivy that pyspark ships, from wherever Ivy is set up to look;
`KARAT_IVY_SETTINGS` may name a settings file for a mirror. With every jar in the cache there is no JVM and no network.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from karat.errors import SetupError

Progress = Callable[[str, int, int], None]
"""Told the coordinate at hand, how many jars are done, and how many there are to fetch."""

OLDEST_JAVA: Final = 17
"""Spark 4 does not start on anything older."""

_PINS: Final = Path(__file__).with_name("jars.txt")
_KEPT_LINES: Final = 400


@dataclass(frozen=True)
class Jar:
    """One pinned file of the public Maven world."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        """The name Maven, Ivy and Spark know it by."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file(self) -> str:
        """Its name in the cache folder."""
        return f"{self.artifact}-{self.version}.jar"


def pinned_jars() -> tuple[Jar, ...]:
    """What `jars.txt` asks for, in its order."""
    lines = (line for line in _PINS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return tuple(Jar(*line.replace(" ", ":").split(":")) for line in lines)


def cache_folder() -> Path:
    """Where the jars are kept: below `KARAT_CACHE`, or below the user's cache."""
    return Path(os.environ.get("KARAT_CACHE") or "~/.cache/karat").expanduser().absolute() / "jars"


def missing_jars() -> list[str]:
    """Coordinates that a run would have to fetch first, because they are absent or damaged; changes nothing."""
    folder = cache_folder()
    return [jar.coordinate for jar in pinned_jars() if not (folder / jar.file).is_file() or _sha256(folder / jar.file) != jar.sha256]


def ensure_jars(on_progress: Progress | None = None) -> list[Path]:
    """Every pinned jar as a file whose checksum has just been verified; fetches what is missing."""
    folder, pins = cache_folder(), pinned_jars()
    absent = [jar for jar in pins if not (folder / jar.file).is_file()]
    for jar in pins:
        if jar not in absent:
            _verify(folder / jar.file, jar)
    if absent:
        _fetch(absent, folder, on_progress or _silent)
    return [folder / jar.file for jar in pins]


def java_version() -> str:
    """The version of the Java that Spark will use, such as 17.0.15."""
    program = _java()
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603  (a list, no shell)
    except (OSError, subprocess.TimeoutExpired) as failure:
        message = f"{program} does not run: {failure}"
        raise SetupError(message, remedy=_JAVA_REMEDY) from failure
    found = re.search(r'version "((\d+)[^"]*)"', said.stderr + said.stdout)
    if not found:
        message = f"{program} -version does not tell its version"
        raise SetupError(message, remedy=_JAVA_REMEDY)
    if int(found[2]) < OLDEST_JAVA:
        message = f"Java {found[1]} at {program} is too old: Spark needs {OLDEST_JAVA} or later"
        raise SetupError(message, remedy=_JAVA_REMEDY, version=found[1])
    return found[1]


_JAVA_REMEDY: Final = f"install a Java {OLDEST_JAVA} or 21 runtime, or point JAVA_HOME at one"


def _java() -> str:
    """The java program Spark would start: JAVA_HOME's, else the path's."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if program is None:
        message = f"there is no java below JAVA_HOME={home}" if home else "there is no java on the path"
        raise SetupError(message, remedy=_JAVA_REMEDY)
    return program


def _silent(_coordinate: str, _done: int, _total: int) -> None:
    """Nobody watches."""


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _verify(file: Path, jar: Jar) -> None:
    """Removes the file and raises when it is not the one that was pinned: a wrong jar must never be loaded, nor found again."""
    found = _sha256(file)
    if found == jar.sha256:
        return
    file.unlink(missing_ok=True)
    message = f"{jar.coordinate} is not the file that was pinned: sha-256 is {found}, expected {jar.sha256}"
    remedy = "the file was removed; run `karat setup` again, and if that repeats, distrust the repository or mirror it came from"
    raise SetupError(message, remedy=remedy, jar=jar.coordinate, found=found, expected=jar.sha256)


def _fetch(jars: Sequence[Jar], folder: Path, on_progress: Progress) -> None:
    """Fetches next to the cache and renames into it, so that another process sees a whole jar or none."""
    java_version()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            _run_ivy(jars, Path(scratch), on_progress)
            for jar in jars:
                fetched = Path(scratch) / "out" / jar.file
                _verify(fetched, jar)
                fetched.replace(folder / jar.file)
    except OSError as failure:
        message = f"the jar cache {folder} cannot be written: {failure.strerror or failure}"
        raise SetupError(message, remedy="make it writable, or name another folder in KARAT_CACHE") from failure


def _run_ivy(jars: Sequence[Jar], scratch: Path, on_progress: Progress) -> None:
    """Leaves the jars in `scratch/out`; Ivy's own cache is as short-lived as the folder."""
    description = scratch / "ivy.xml"
    description.write_text(_ivy_module(jars), encoding="utf-8")
    settings = os.environ.get("KARAT_IVY_SETTINGS")
    command = [_java(), f"-Divy.default.ivy.user.dir={scratch}", "-cp", f"{_spark_jars()}/*", "org.apache.ivy.Main"]
    command += ["-settings", settings] if settings else []
    command += ["-ivy", str(description), "-cache", str(scratch / "cache")]
    command += ["-retrieve", f"{scratch}/out/[artifact]-[revision].[ext]"]
    coordinates = {f"{jar.group}#{jar.artifact};{jar.version}!": jar.coordinate for jar in jars}
    said: deque[str] = deque(maxlen=_KEPT_LINES)
    done = 0
    on_progress(jars[0].coordinate, done, len(jars))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as ivy:  # noqa: S603
        for line in ivy.stdout or ():
            said.append(line.strip())
            arrived = next((name for mark, name in coordinates.items() if "[SUCCESSFUL" in line and mark in line), None)
            if arrived:
                done += 1
                on_progress(arrived, done, len(jars))
    absent = [jar.coordinate for jar in jars if not (scratch / "out" / jar.file).is_file()]
    if absent:
        _complain(absent, said)


def _complain(absent: Sequence[str], said: Sequence[str]) -> None:
    """Raises with the one sentence of Ivy's report that tells why."""
    reason = _reason(said)
    message = f"{', '.join(absent)} cannot be fetched: {reason}"
    remedy = "check the network, or name an Ivy settings file for your mirror in KARAT_IVY_SETTINGS"
    raise SetupError(message, remedy=f"{remedy}; jars copied into {cache_folder()} by hand are used as well", jars=list(absent))


def _reason(said: Sequence[str]) -> str:
    """Ivy's first error if it names one (no such host, refused, forbidden), else what it did not find, else its last words."""
    lines = [line for line in said if line]
    after_errors = lines[lines.index(":::: ERRORS") + 1 :] if ":::: ERRORS" in lines else []
    not_found = [line.removeprefix(":: ") for line in lines if line.startswith(":: ") and "not found" in line]
    return next(iter([*after_errors, *not_found, *reversed(lines)]), "Ivy said nothing")


def _spark_jars() -> Path:
    """Where pyspark keeps Spark's own jars, found without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        message = "pyspark is not installed"
        raise SetupError(message, remedy="pip install pyspark==4.1.3, or reinstall karat")
    return Path(spec.origin).parent / "jars"


def _ivy_module(jars: Sequence[Jar]) -> str:
    """An Ivy description of exactly these files: no dependency of theirs is followed, for Spark has them all."""
    wanted = "".join(
        f'<dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false" conf="default->master"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="karat" module="jars"/><configurations><conf name="default"/></configurations>'
        f"<dependencies>{wanted}</dependencies></ivy-module>"
    )
