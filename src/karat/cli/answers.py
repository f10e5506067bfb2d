"""What each command does and says; pictures for people go to standard output, everything else to standard error."""

import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from karat.errors import ConfigError, KaratError, SetupError

FAILED, WRONG = 1, 2
"""Exit codes: something failed or differed; the command or the configuration is wrong."""


@dataclass(frozen=True)
class Voice:
    """How an answer is given."""

    json: bool = False
    quiet: bool = False
    debug: bool = False

    def say(self, text: str = "") -> None:
        """A line for people; silent when a machine listens."""
        if not self.json:
            typer.echo(text)

    def aside(self, text: str) -> None:
        """A line about the work, not part of the answer."""
        typer.echo(text, err=True)

    def answer(self, record: object) -> None:
        """The answer for a machine; silent when a person reads."""
        if self.json:
            typer.echo(json.dumps(record, default=str, ensure_ascii=False))


@contextmanager
def answering(voice: Voice) -> Iterator[Voice]:
    """A user's mistake ends in a sentence and an exit code; a traceback shows only with --debug."""
    try:
        yield voice
    except KaratError as error:
        if voice.debug:
            traceback.print_exc()
        voice.answer({"error": _record(error)})
        voice.aside(str(error))
        raise typer.Exit(WRONG if isinstance(error, ConfigError | SetupError) else FAILED) from None
    except KeyboardInterrupt:
        voice.aside("interrupted; what was committed stays, the rest is done by the next run")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(FAILED) from None


def init(folder: Path, example: str, voice: Voice, *, bundle: bool) -> None:
    """A new project; with `bundle`, deployment files beside it or added to the one that is there."""
    from karat.scaffold import add_bundle, create_project

    made = [] if bundle and (folder / "karat.yml").is_file() else create_project(folder, example)
    made += add_bundle(folder) if bundle else []
    voice.answer({"folder": str(folder), "files": [str(path) for path in made]})
    voice.say(f"made {len(made)} files in {folder}")
    for script in (folder / name for name in ("deliver.py", "land.py") if (folder / name).is_file()):
        voice.say(f"next: python {script} 1 --project {folder}   (day 1 arrives)")
    voice.say(f"next: karat check --project {folder} && karat run --project {folder}")


def check(folder: Path, variables: Mapping[str, str], voice: Voice) -> None:
    """All problems, or that there are none."""
    from karat.config.load import load
    from karat.config.problems import ConfigProblems
    from karat.config.wiring import missing_files

    config = load(folder, variables)
    if problems := missing_files(config):
        raise ConfigProblems(problems)
    if config.beliefs:
        from karat.inspect.positions import check_rules

        check_rules(config)
    declared = (*(entity.timeline for entity in config.entities), *(table.target for table in config.curated))
    names = [str(table) for table in (*declared, *(belief.table for belief in config.beliefs))]
    grades = [
        {"entity": entity.name, "feed": feed.feed.name, "grade": feed.grading.grade, "reason": feed.grading.reason}
        for entity in config.entities
        for feed in entity.feeds
    ]
    voice.answer({"ok": True, "project": config.settings.project, "tables": names, "feeds": grades, "problems": []})
    for grade in grades:
        voice.say(f"{grade['entity']}.{grade['feed']}: {grade['grade']} ({grade['reason']})")
    voice.say(f"{config.settings.project}: {counted(len(names), 'table')} declared, no problems")


def plan(folder: Path, select: Sequence[str], variables: Mapping[str, str], voice: Voice) -> None:
    """The stages a run would walk."""
    from karat.config.load import load
    from karat.inspect.positions import check_rules, positions
    from karat.plan.build import build_plan
    from karat.plan.explain import as_records

    config = load(folder, variables)
    check_rules(config)
    records = as_records(build_plan(config, positions(config), select, datetime.now(UTC)))
    voice.answer(records)
    for number, record in enumerate(records, start=1):
        voice.say(f"{number}. {record['kind']} {record['name']}")
        voice.say(f"     {record['why']}")
        if record["waits_for"]:
            voice.say(f"     after {', '.join(record['waits_for'])}")  # type: ignore[arg-type]
    voice.say(f"{counted(len(records), 'stage')}; nothing was written")


def run(folder: Path, select: Sequence[str], variables: Mapping[str, str], voice: Voice, heartbeat: int | None = None) -> None:
    """One pass; exit 1 when anything failed."""
    from rich.console import Console

    from karat.project import Project
    from karat.telemetry.terminal import Terminal

    project = Project.open(folder, variables=variables, heartbeat_seconds=heartbeat)
    fetch_jars(voice)
    manner: Any = "silent" if voice.json else "quiet" if voice.quiet else "normal"
    try:
        report = project.run(select, sinks=[Terminal(Console(), Console(stderr=True), manner)])
    finally:
        project.close()
    stages = [asdict(replace(stage, failure=None)) for stage in report.stages]
    shown = [{name: value for name, value in stage.items() if name != "failure"} for stage in stages]
    voice.answer({"ok": report.ok, "run_id": report.run_id, "stages": shown})
    for each in report.stages:
        if voice.debug and each.failure is not None:
            traceback.print_exception(each.failure)
    if not report.ok:
        raise typer.Exit(FAILED)


def tables(folder: Path, variables: Mapping[str, str], voice: Voice) -> None:
    """Every table of the lake."""
    from karat.cli.pictures import tables_picture
    from karat.config.load import load
    from karat.inspect.tables import lake_tables

    found = lake_tables(load(folder, variables))
    voice.answer([asdict(table) for table in found])
    if not voice.json:
        tables_picture(found)


def progress(folder: Path, run_id: str | None, voice: Voice, *, follow: bool, failures: bool) -> None:
    """A run from its log."""
    from karat.cli.pictures import failures_picture, record_line, run_picture
    from karat.inspect import progress as log

    logs = folder / ".karat" / "logs"
    if follow:
        for record in log.follow(logs):
            voice.answer(record)
            voice.say(record_line(record))
    elif failures:
        found = log.failures(logs)
        voice.answer([asdict(failure) for failure in found])
        if not voice.json:
            failures_picture(found)
    else:
        summary = log.read_run(logs, run_id)
        voice.answer(asdict(summary))
        if not voice.json:
            run_picture(summary)


def doctor(folder: Path, variables: Mapping[str, str], voice: Voice) -> None:
    """What is there and what is missing; exit 1 when something is."""
    from karat.config.load import PROJECT_FILE, load
    from karat.inspect.doctor import examine

    config = load(folder, variables) if (folder / PROJECT_FILE).is_file() else None
    findings = examine(config.settings if config else None, config.folder if config else None)
    voice.answer([asdict(finding) for finding in findings])
    for finding in findings:
        voice.say(f"{'ok     ' if finding.ok else 'MISSING'} {finding.subject}: {finding.detail}")
        if not finding.ok:
            voice.say(f"        remedy: {finding.remedy}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(FAILED)


def setup(voice: Voice) -> None:
    """The jars, in the cache."""
    jars = fetch_jars(voice)
    voice.answer({"jars": [str(jar) for jar in jars]})
    voice.say(f"{counted(len(jars), 'jar')} in {jars[0].parent}" if jars else "no jars are needed")


def fetch_jars(voice: Voice) -> list[Path]:
    """The jars a session needs, fetched with a line each if they are missing."""
    from karat.lake.jars import ensure_jars

    return ensure_jars(lambda coordinate, done, total: voice.aside(f"jar {done}/{total}: {coordinate}"))


def _record(error: KaratError) -> dict[str, object]:
    problems = [problem.as_record() for problem in getattr(error, "problems", ())]
    return {"code": error.code, "message": error.message, "remedy": error.remedy, "problems": problems}


def counted(number: int, noun: str, many: str | None = None) -> str:
    """`1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"
