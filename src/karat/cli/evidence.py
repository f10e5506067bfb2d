"""The commands about evidence and its timeline: history, verify, quarantine, maintain, stream."""

from typing import Annotated

import typer

from karat.cli import evidence_answers as answers
from karat.cli.answers import Output, answering
from karat.cli.options import HERE, Debug, Json, ProjectFolder, Quiet, Select, Var, variables

quarantine = typer.Typer(name="quarantine", help="Refused rows: list, show, replay.", no_args_is_help=True)

EntityName = Annotated[str, typer.Argument(metavar="ENTITY", help="The entity's name.")]
Entities = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Entities, and beliefs as silver.NAME; default: all.")]


def history(
    entity: EntityName,
    key: Annotated[str, typer.Option("--key", "-k", help="The key, or column=value,column=value.")],
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """The timeline of one entity and its statements, as a picture of periods."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.history(project, entity, key, variables(var), output)


def verify(
    names: Entities = None,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Rebuild timelines and beliefs from their evidence and compare, row for row; exit 1 when one differs."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.verify(project, names or [], variables(var), output)


def maintain(
    what: Annotated[str, typer.Argument(metavar="dry-run|apply|rebuild-from-raw", help="Say what would be done, do it, or rebuild.")],
    names: Entities = None,
    retention_hours: Annotated[int, typer.Option("--retention-hours", min=0, help="How far back time travel must reach.")] = 168,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compaction, layout by key and retention of the tables of entities and beliefs."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.maintain(project, what, names or [], variables(var), output, retention_hours)


def stream(
    interval: Annotated[float, typer.Option("--interval", min=0.1, help="Seconds between two looks for something new.")] = 10.0,
    project: ProjectFolder = HERE,
    select: Select = None,
    var: Var = None,
    json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run again and again, whenever something new is there, until stopped; a running batch is finished first."""
    with answering(Output(json, quiet, debug)) as output:
        answers.stream(project, select or [], interval, variables(var), output)


@quarantine.command("list")
def quarantine_list(
    entity: Annotated[str | None, typer.Argument(metavar="[ENTITY]")] = None,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Refused rows by reason, with how many wait."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.quarantine_list(project, entity, variables(var), output)


@quarantine.command("show")
def quarantine_show(
    entity: EntityName,
    identity: Annotated[str | None, typer.Argument(metavar="[ID]", help="How its quarantine_id begins; default: all that wait.")] = None,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Refused rows with their reason and the original."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.quarantine_show(project, entity, identity, variables(var), output)


@quarantine.command("replay")
def quarantine_replay(entity: EntityName, project: ProjectFolder = HERE, var: Var = None, json: Json = False, debug: Debug = False) -> None:
    """Check refused rows again by the present rules; the good ones enter at their own event time."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.quarantine_replay(project, entity, variables(var), output)


def add_to(app: typer.Typer) -> None:
    """Make the commands part of the program."""
    for command in (history, verify, maintain, stream):
        app.command()(command)
    app.add_typer(quarantine)
