"""The commands about beliefs: why, as-of, conflicts."""

from typing import Annotated

import typer

from karat.cli import belief_answers as answers
from karat.cli.answers import Output, answering
from karat.cli.options import HERE, Debug, Json, ProjectFolder, Var, moment, variables

BeliefName = Annotated[str, typer.Argument(metavar="BELIEF", help="The belief's name.")]
KeyHelp = "The key, or column=value,column=value."
ValidAt = Annotated[str | None, typer.Option("--valid-at", help="What was true then: a day or a time, UTC; default: the latest.")]
KnownAt = Annotated[str | None, typer.Option("--known-at", help="By what was known then: a day or a time, UTC; default: now.")]


def why(
    belief: BeliefName,
    key: Annotated[str, typer.Option("--key", "-k", help=KeyHelp)],
    attribute: Annotated[str | None, typer.Option("--attribute", "-a", help="One attribute, or is_deleted; default: all.")] = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Why something is believed of one entity: which source won, by which rule, and why no other."""
    with answering(Output(json=json, debug=debug)) as output:
        times = answers.Times(moment(valid_at, "--valid-at"), moment(known_at, "--known-at"))
        answers.why(project, (belief, key, attribute), times, variables(var), output)


def as_of(
    belief: BeliefName,
    key: Annotated[str | None, typer.Option("--key", "-k", help=f"{KeyHelp} Default: the whole table, with Spark.")] = None,
    valid_at: ValidAt = None,
    known_at: KnownAt = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write the whole table to FILE.csv or FILE.parquet.")] = None,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """What is believed to have been true at a time, with what was known at another."""
    with answering(Output(json=json, debug=debug)) as output:
        times = answers.Times(moment(valid_at, "--valid-at"), moment(known_at, "--known-at"))
        if key is None:
            answers.as_of_table(project, (belief, out), times, variables(var), output)
        else:
            answers.as_of_key(project, (belief, key, out), times, variables(var), output)


def conflicts(
    belief: BeliefName,
    attribute: Annotated[str | None, typer.Option("--attribute", "-a", help="Only of this attribute.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="How many to show; all are counted.")] = 20,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Where sources differ now: the attribute, the value of each source, and the winner."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.conflicts(project, belief, attribute, limit, variables(var), output)


def restatements(
    belief: BeliefName,
    key: Annotated[str | None, typer.Option("--key", "-k", help="Only of this key; default: of all.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many to show, the latest.")] = 20,
    project: ProjectFolder = HERE,
    var: Var = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Restatements: what was believed about the past before, what is now, and because of which statement or rule."""
    with answering(Output(json=json, debug=debug)) as output:
        answers.restatements(project, belief, key, limit, variables(var), output)


def add_to(app: typer.Typer) -> None:
    """Make the commands part of the program."""
    app.command()(why)
    app.command("as-of")(as_of)
    app.command()(conflicts)
    app.command()(restatements)
