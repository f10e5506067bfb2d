"""The commands: what each does and prints. Answers go to standard output, everything else to standard error."""

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
from karat.runner.interruption import RunInterrupted

FAILED, WRONG = 1, 2
"""Exit codes: something failed or differed; the command or the configuration is wrong."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended; one that SIGTERM ended says 143."""


@dataclass(frozen=True)
class Output:
    """How a command answers: for people or for machines, in full or only the end."""

    json: bool = False
    quiet: bool = False
    debug: bool = False

    def line(self, text: str = "") -> None:
        """A line for people; silent when a machine listens."""
        if not self.json:
            typer.echo(text)

    def note(self, text: str) -> None:
        """A line about the work, on standard error."""
        typer.echo(text, err=True)

    def record(self, record: object) -> None:
        """The answer for a machine; silent when a person reads."""
        if self.json:
            typer.echo(json.dumps(record, default=str, ensure_ascii=False))


@contextmanager
def answering(output: Output) -> Iterator[Output]:
    """Whatever fails ends in a sentence and an exit code; a traceback shows only with --debug."""
    try:
        yield output
    except KeyboardInterrupt as stopped:
        output.note("interrupted; what was committed stays, the rest is done by the next run")
        raise typer.Exit(stopped.exit_code if isinstance(stopped, RunInterrupted) else INTERRUPTED) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(FAILED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as failure:  # noqa: BLE001  (an engine's failure as well: its Java is of no use to anybody here)
        if output.debug:
            traceback.print_exc()
        error = _as_ours(failure)
        output.record({"error": _record(error)})
        output.note(str(error))
        raise typer.Exit(WRONG if isinstance(error, ConfigError | SetupError) else FAILED) from None


def _as_ours(failure: Exception) -> KaratError:
    if isinstance(failure, KaratError):
        return failure
    from karat.lake.engine_errors import explained  # what knows the engines is loaded only when one has failed

    return explained(failure)


def init(folder: Path, example: str, output: Output, *, bundle: bool) -> None:
    """A new project; with `bundle`, deployment files with it, or added to the one that is there."""
    from karat.scaffold import add_bundle, create_project

    made = [] if bundle and (folder / "karat.yml").is_file() else create_project(folder, example)
    made += add_bundle(folder) if bundle else []
    output.record({"folder": str(folder), "files": [str(path) for path in made]})
    output.line(f"made {len(made)} files in {folder}")
    for script in (folder / name for name in ("deliver.py", "land.py") if (folder / name).is_file()):
        output.line(f"next: python {script} 1 --project {folder}   (day 1 arrives)")
    output.line(f"next: karat check --project {folder} && karat run --project {folder}")


def check(folder: Path, variables: Mapping[str, str], output: Output) -> None:
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
    names = [str(table) for table in (*declared, *(belief.table for belief in config.beliefs), *(star.table for star in config.star))]
    grades = [
        {"entity": entity.name, "feed": feed.feed.name, "grade": feed.grading.grade, "reason": feed.grading.reason}
        for entity in config.entities
        for feed in entity.feeds
    ]
    output.record({"ok": True, "project": config.settings.project, "tables": names, "feeds": grades, "problems": []})
    for grade in grades:
        output.line(f"{grade['entity']}.{grade['feed']}: {grade['grade']} ({grade['reason']})")
    output.line(f"{config.settings.project}: {counted(len(names), 'table')} declared, no problems")


def plan(folder: Path, select: Sequence[str], variables: Mapping[str, str], output: Output) -> None:
    """The stages a run would walk."""
    from karat.config.load import load
    from karat.inspect.positions import check_rules, positions
    from karat.plan.build import build_plan
    from karat.plan.explain import as_records

    config = load(folder, variables)
    check_rules(config)
    records = as_records(build_plan(config, positions(config), select, datetime.now(UTC)))
    output.record(records)
    for number, record in enumerate(records, start=1):
        output.line(f"{number}. {record['kind']} {record['name']}")
        output.line(f"     {record['why']}")
        if record["waits_for"]:
            output.line(f"     after {', '.join(record['waits_for'])}")  # type: ignore[arg-type]
    output.line(f"{counted(len(records), 'stage')}; nothing was written")


@dataclass(frozen=True)
class RunOptions:
    """What a user says about one run."""

    select: Sequence[str] = ()
    heartbeat_seconds: int | None = None
    reload: bool = False


def run(folder: Path, options: RunOptions, variables: Mapping[str, str], output: Output) -> None:
    """One pass; exit 1 when anything failed."""
    from rich.console import Console

    from karat.project import Project
    from karat.telemetry.terminal import Terminal

    project = Project.open(folder, variables=variables, heartbeat_seconds=options.heartbeat_seconds)
    fetch_jars(output)
    verbosity: Any = "silent" if output.json else "quiet" if output.quiet else "normal"
    try:
        terminal = Terminal(Console(), Console(stderr=True), verbosity)
        report = project.run(options.select, sinks=[terminal], reload=options.reload)
    finally:
        project.close()
    stages = [asdict(replace(stage, failure=None)) for stage in report.stages]
    shown = [{name: value for name, value in stage.items() if name != "failure"} for stage in stages]
    output.record({"ok": report.ok, "run_id": report.run_id, "stages": shown})
    for each in report.stages:
        if output.debug and each.failure is not None:
            traceback.print_exception(each.failure)
    if not report.ok:
        raise typer.Exit(FAILED)


def tables(folder: Path, variables: Mapping[str, str], output: Output) -> None:
    """Every table of the lake."""
    from karat.cli.pictures import tables_picture
    from karat.config.load import load
    from karat.inspect.tables import lake_tables

    found = lake_tables(load(folder, variables))
    output.record([asdict(table) for table in found])
    if not output.json:
        tables_picture(found)


def progress(folder: Path, run_id: str | None, output: Output, *, follow: bool, failures: bool) -> None:
    """A run from its log."""
    from karat.cli.pictures import failures_picture, record_line, run_picture
    from karat.inspect import progress as log

    logs = folder / ".karat" / "logs"
    if follow:
        for record in log.follow(logs):
            output.record(record)
            output.line(record_line(record))
    elif failures:
        found = log.failures(logs)
        output.record([asdict(failure) for failure in found])
        if not output.json:
            failures_picture(found)
    else:
        summary = log.read_run(logs, run_id)
        output.record(asdict(summary))
        if not output.json:
            run_picture(summary)


def doctor(folder: Path, variables: Mapping[str, str], output: Output) -> None:
    """What is there and what is missing; exit 1 when something is."""
    from karat.config.load import PROJECT_FILE, load
    from karat.inspect.doctor import examine

    config = load(folder, variables) if (folder / PROJECT_FILE).is_file() else None
    findings = examine(config.settings if config else None, config.folder if config else None)
    output.record([asdict(finding) for finding in findings])
    for finding in findings:
        output.line(f"{'ok     ' if finding.ok else 'MISSING'} {finding.subject}: {finding.detail}")
        if not finding.ok:
            output.line(f"        remedy: {finding.remedy}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(FAILED)


def setup(output: Output) -> None:
    """The jars, in the cache."""
    jars = fetch_jars(output)
    output.record({"jars": [str(jar) for jar in jars]})
    output.line(f"{counted(len(jars), 'jar')} in {jars[0].parent}" if jars else "no jars are needed")


def fetch_jars(output: Output) -> list[Path]:
    """The jars a session needs, fetched with a line each if they are missing."""
    from karat.lake.jars import ensure_jars

    return ensure_jars(lambda coordinate, done, total: output.note(f"jar {done}/{total}: {coordinate}"))


def _record(error: KaratError) -> dict[str, object]:
    problems = [problem.as_record() for problem in getattr(error, "problems", ())]
    return {"code": error.code, "message": error.message, "remedy": error.remedy, "problems": problems}


def counted(number: int, noun: str, many: str | None = None) -> str:
    """`1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {many or noun + 's'}"
