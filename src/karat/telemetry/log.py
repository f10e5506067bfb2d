"""The structured log: one file per run, one line per event, readable without Karat."""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

from karat.telemetry.events import Event, as_record

SUFFIX: Final = ".jsonl"
_KEPT: Final = 200
_LONGEST_NAME: Final = 120


class JsonLog:
    """Writes `<folder>/<run_id>.jsonl`, each line flushed, so that the log of a killed run is complete. Keeps the newest logs only."""

    def __init__(self, folder: Path, kept: int = _KEPT) -> None:
        self._folder = folder
        self._kept = kept
        self._run_id: str | None = None
        self._file: TextIO | None = None

    def emit(self, event: Event) -> None:
        """One line; the first event of a run opens its file."""
        file = self._file_of(event.run_id)
        file.write(json.dumps(as_record(event), ensure_ascii=False) + "\n")
        file.flush()

    def close(self) -> None:
        """Close the file, if there was an event."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _file_of(self, run_id: str) -> TextIO:
        if self._file is not None and run_id == self._run_id:
            return self._file
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        # Half a surrogate pair, which no UTF-8 can hold, becomes the JSON escape it came from.
        self._file = log_path(self._folder, run_id).open("a", encoding="utf-8", errors="backslashreplace", newline="\n")
        self._run_id = run_id
        _forget_oldest(self._folder, self._kept)
        return self._file


def log_path(folder: Path, run_id: str) -> Path:
    """The run's file: what a file name cannot safely hold becomes `_`, and no name leaves the folder or hides."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", run_id)[:_LONGEST_NAME].lstrip(".")
    return folder / f"{safe or 'run'}{SUFFIX}"


def newest_first(folder: Path) -> list[Path]:
    """The folder's logs by the time they were last written to; none where there is no folder."""
    written: list[tuple[int, Path]] = []
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(FileNotFoundError):  # another run is tidying up as well
            written.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(written, reverse=True)]


def _forget_oldest(folder: Path, kept: int) -> None:
    for path in newest_first(folder)[kept:]:
        path.unlink(missing_ok=True)
