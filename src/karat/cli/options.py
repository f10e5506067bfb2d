"""Options that many commands take."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from karat.config.moments import moment_of
from karat.errors import ConfigError

ProjectFolder = Annotated[Path, typer.Option("--project", "-p", help="The project's folder.")]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say only how it ended.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of a failure.")]
Select = Annotated[list[str] | None, typer.Option("--select", "-s", help="schema.table, silver.*, +with_upstream, with_downstream+.")]
Var = Annotated[list[str] | None, typer.Option("--var", help="name=value, over the vars of karat.yml.")]
HERE = Path()


def variables(given: list[str] | None) -> dict[str, str]:
    """`["a=1"]` as `{"a": "1"}`."""
    pairs = [text.partition("=") for text in given or []]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        message = f"--var {wrong[0]} has no value"
        raise ConfigError(message, remedy="write --var name=value")
    return {name: value for name, _, value in pairs}


def moment(text: str | None, option: str) -> datetime | None:
    """The time that an option names, in UTC; none where it was not given."""
    if text is None:
        return None
    try:
        return moment_of(text)
    except ValueError:
        message = f"{option} {text!r} is not a day or a time"
        raise ConfigError(
            message, remedy="write 2026-03-02, '2026-03-02 12:00' or 2026-03-02T12:00:00+01:00; UTC unless it says otherwise"
        ) from None
