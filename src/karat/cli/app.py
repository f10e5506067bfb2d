"""The commands. Each loads only what it needs: `check` knows nothing of Spark, and answers at once."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from karat.cli import answers, belief, evidence
from karat.cli.answers import Output, answering
from karat.cli.options import HERE, Debug, Json, ProjectFolder, Quiet, Select, Var, variables

app = typer.Typer(
    name="karat",
    help="What many systems say, what an institution believes, and why.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or the project to add a bundle to.")],
    example: Annotated[str, typer.Option(help="bank, claims, or empty.")] = "bank",
    bundle: Annotated[bool, typer.Option("--bundle", help="Add a Databricks Asset Bundle.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """A project that runs."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.init(folder, example, output, bundle=bundle)


@app.command()
def check(project: ProjectFolder = HERE, var: Var = None, json: Json = False, quiet: Quiet = False, debug: Debug = False) -> None:
    """Validate everything, in under a second, without Spark."""
    with answering(Output(json, quiet, debug)) as output:
        answers.check(project, variables(var), output)


@app.command()
def plan(project: ProjectFolder = HERE, select: Select = None, var: Var = None, json: Json = False, debug: Debug = False) -> None:
    """What would run, in order, and why; writes nothing."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.plan(project, select or [], variables(var), output)


@app.command()
def run(
    project: ProjectFolder = HERE,
    select: Select = None,
    only_tables: Annotated[str | None, typer.Option("--only-tables", help="Comma-separated names; the same as --select.")] = None,
    heartbeat_seconds: Annotated[int | None, typer.Option("--heartbeat-seconds", min=1, help="Seconds between signs of life.")] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Read all sources of the star again; history and keys stay.")] = False,
    var: Var = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """One bounded pass over everything selected, then exit: 0 all well, 1 something failed."""
    with answering(Output(json, quiet, debug)) as output:
        chosen = [*(select or []), *([only_tables] if only_tables else [])]
        answers.run(project, answers.RunOptions(chosen, heartbeat_seconds, reload), variables(var), output)


@app.command()
def tables(project: ProjectFolder = HERE, var: Var = None, json: Json = False, debug: Debug = False) -> None:
    """Every table with its layer, rows, version and last run."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.tables(project, variables(var), output)


@app.command()
def progress(
    project: ProjectFolder = HERE,
    run_id: Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run; default: the latest.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Watch the running one until it ends.")] = False,
    failures: Annotated[bool, typer.Option("--failures", help="What failed, newest first.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Live or past runs, from the structured log."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.progress(project, run_id, output, follow=follow, failures=failures)


@app.command()
def doctor(project: ProjectFolder = HERE, var: Var = None, json: Json = False, debug: Debug = False) -> None:
    """Whether this machine has what a run needs: Java, jars, connections, versions."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.doctor(project, variables(var), output)


@app.command()
def setup(json: Json = False, debug: Debug = False) -> None:
    """Fetch the jars once; also done on first use."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.setup(output)


evidence.add_to(app)
belief.add_to(app)


def main() -> None:
    """The entry point; `answering` has dealt with every failure a command can have."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    app()
