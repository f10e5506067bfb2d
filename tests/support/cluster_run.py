"""A project run several times by one process, on a cluster with executors of their own.

    python -m tests.support.cluster_run FOLDER MASTER

Before each run the files of the next folder under `deliveries` arrive; after the last it says `all is well`.
"""

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from karat import Project


def deliver(folder: Path, delivery: Path) -> None:
    """The delivery's files put where the feeds look for them."""
    shutil.copytree(delivery, folder / "data", dirs_exist_ok=True)


def deliveries(folder: Path) -> list[Path]:
    return sorted((folder / "deliveries").iterdir())


def evening(number: int) -> datetime:
    """When the delivery of that number is read."""
    return datetime(2026, 3, 2 + number, 22, tzinfo=UTC)


def main() -> None:
    folder, master = Path(sys.argv[1]), sys.argv[2]
    project = Project.open(folder, variables={"master": master})
    for number, delivery in enumerate(deliveries(folder)):
        deliver(folder, delivery)
        report = project.run(now=evening(number))
        if not report.ok:
            sys.exit("\n".join(f"{stage.name}: {stage.error}" for stage in report.stages))
    project.close()
    print("all is well")


if __name__ == "__main__":
    main()
