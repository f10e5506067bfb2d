"""A run that waits just before its first commit to a table, until it is told to go on.

    python -m tests.support.paused_run FOLDER TABLE

It says by a file `paused` in the project that it waits, and goes on when there is a file `go`.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from karat import Project
from karat.lake.delta import DeltaTables

WRITES = ("merge", "replace", "append", "overwrite")


def pausing(write: Callable[..., Any], folder: Path, table: str) -> Callable[..., Any]:
    """The write, preceded by a pause the first time it is for the table."""

    def paused(tables: DeltaTables, rows: Any, *where: Any) -> Any:  # noqa: ANN401  (whatever a write takes and gives)
        marker = folder / "paused"
        if table in map(str, where) and not marker.exists():
            marker.touch()
            while not (folder / "go").exists():
                time.sleep(0.05)
        return write(tables, rows, *where)

    return paused


def main() -> None:
    folder, table = Path(sys.argv[1]), sys.argv[2]
    for name in WRITES:
        setattr(DeltaTables, name, pausing(getattr(DeltaTables, name), folder, table))
    report = Project.open(folder).run()
    for stage in report.stages:
        print(stage.name, stage.status, stage.rows, stage.error)
    sys.exit(0 if report.ok else 1)


if __name__ == "__main__":
    main()
