"""Karat in processes of its own, as users start it: the command, ended or killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

KARAT = Path(sys.executable).with_name("karat")
ROOT = Path(__file__).parents[2]
LONG = 900
"""Seconds after which a process counts as stuck."""


@dataclass
class Started:
    """A process at work, in a group of its own with its JVM; none outlives the `with` block of its test."""

    process: subprocess.Popen[bytes]
    output: Path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it and its JVM without a word; nothing when it has ended by itself."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def ended(self) -> int:
        """How it ended."""
        try:
            return self.process.wait(LONG)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(self.said()) from None

    def said(self) -> str:
        """What it has printed so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")


def karat(folder: Path, *arguments: str) -> Started:
    """The command at work on a project."""
    return _started(folder, [str(KARAT), *arguments, "--project", str(folder)])


def script(folder: Path, module: str, *arguments: str) -> Started:
    """One of the tests' own scripts at work on a project."""
    return _started(folder, [sys.executable, "-m", module, str(folder), *arguments])


def _started(folder: Path, command: list[str]) -> Started:
    output = folder.with_name(f"{folder.name}-{time.monotonic_ns()}.out")
    here = {**os.environ, "KARAT_DRIVER_MEMORY": "1g"}
    with output.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603  (our own command)
            command, cwd=ROOT, env=here, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True
        )
    return Started(process, output)


def succeeds(folder: Path, *arguments: str) -> str:
    """The command to its end, which must be a good one. Returns what it said."""
    with karat(folder, *arguments) as started:
        assert started.ended() == 0, started.said()
        return started.said()


def wait_until(happened: Callable[[], bool], started: Started) -> None:
    """Until something has happened; it is an error if the process ends before."""
    end = time.monotonic() + LONG
    while not happened():
        assert started.process.poll() is None, started.said()
        assert time.monotonic() < end, started.said()
        time.sleep(0.05)
