"""Simulates the source systems: copies one day's files to where the feeds look for them.

    python deliver.py DAY [--project DIR]

A file that is there already is left alone, so delivering a day again changes nothing. A file appears whole: it is
copied under a hidden name, which no feed reads, and then renamed.
"""

import argparse
import shutil
from pathlib import Path

DAYS = (1, 2, 3)


def deliver(project: Path, day: int) -> list[Path]:
    """The files that arrived, relative to the project; none when the day had been delivered before."""
    outside = project / "deliveries" / f"day{day}"
    arrived = []
    for file in sorted(path for path in outside.rglob("*") if path.is_file()):
        target = Path("data") / file.relative_to(outside)
        if not (project / target).exists():
            appear(file, project / target)
            arrived.append(target)
    return arrived


def appear(file: Path, target: Path) -> None:
    """Copy the file so that no reader can see half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden = target.with_name(f".{target.name}")
    shutil.copyfile(file, hidden)
    hidden.replace(target)


def main() -> None:
    """Deliver the day named on the command line and say what arrived."""
    parser = argparse.ArgumentParser(description="Put one day's files into the project's data folder.")
    parser.add_argument("day", type=int, choices=DAYS)
    parser.add_argument("--project", type=Path, default=Path(__file__).parent, help="the project's folder (default: this one)")
    arguments = parser.parse_args()
    arrived = deliver(arguments.project, arguments.day)
    for file in arrived:
        print(file)
    if not arrived:
        print(f"day {arguments.day} is there already")


if __name__ == "__main__":
    main()
