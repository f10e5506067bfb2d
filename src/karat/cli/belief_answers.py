"""The commands about beliefs; each loads only what it needs, and only a whole table needs Spark."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from karat.cli.answers import Output, fetch_jars
from karat.cli.plain import plain
from karat.errors import ConfigError

if TYPE_CHECKING:
    from karat.inspect.belief import Question

Variables = Mapping[str, str]
SHOWN = 20
"""Rows of a whole table that are shown."""


class Times(NamedTuple):
    """When it was true, and when it was known."""

    valid_at: datetime | None
    known_at: datetime | None


def why(folder: Path, asked: tuple[str, str, str | None], times: Times, variables: Variables, output: Output) -> None:
    """Winner, losers and rule, of one attribute or of each."""
    from karat.config.load import load
    from karat.inspect.belief import ask, believed_row, reason, reasons

    belief, key, attribute = asked
    question = ask(load(folder, variables), belief, key, **times._asdict())
    found = reasons(question) if attribute is None else {attribute: reason(question, attribute)}
    if output.json:
        records = {name: asdict(each) for name, each in found.items()}
        output.record(plain({**_asked(question), **({"attributes": records} if attribute is None else records[attribute])}))
        return
    from karat.cli.belief_pictures import why_picture

    why_picture(question, found, believed_row(question))


def as_of_key(folder: Path, asked: tuple[str, str, str | None], times: Times, variables: Variables, output: Output) -> None:
    """The belief about one entity, from its evidence."""
    from karat.config.load import load
    from karat.inspect.belief import ask, believed_row, check_answerable

    belief, key, out = asked
    if out is not None:
        message = "--out writes the whole table, and --key asks for one row of it"
        raise ConfigError(message, remedy="leave one of them out; `--json > FILE` keeps the answer about one key")
    question = ask(load(folder, variables), belief, key, **times._asdict())
    check_answerable(question)
    row = believed_row(question)
    output.record(plain({**_asked(question), "row": row}))
    if not output.json:
        from karat.cli.belief_pictures import row_picture

        row_picture(question, row)


def as_of_table(folder: Path, asked: tuple[str, str | None], times: Times, variables: Variables, output: Output) -> None:
    """The belief about everybody: the first rows, how many there are, and all of them in a file."""
    from karat.config.load import load
    from karat.config.moments import in_utc
    from karat.inspect.history import belief_named

    belief, out = asked
    config = load(folder, variables)
    found = belief_named(config, belief)
    file = None if out is None else _free_file(out)
    from karat.belief.export import written  # what is wrong with the command is said before Spark is loaded
    from karat.project import Project

    project = Project(config)
    fetch_jars(output)
    known_at = in_utc(times.known_at)
    try:
        table = written(project.as_of(belief, times.valid_at, known_at), file, SHOWN)
    finally:
        project.close()
    record = {"belief": found.name, "valid_at": times.valid_at, "known_at": known_at}
    output.record(plain({**record, "count": table.count, "rows": table.first, "out": out}))
    if not output.json:
        from karat.cli.belief_pictures import rows_picture

        rows_picture(table.first, [name for name in table.columns if name not in {"because", "bk", "sk"}], table.count)
        if out is not None:
            output.line(f"written to {out}")


def conflicts(folder: Path, belief: str, attribute: str | None, limit: int, variables: Variables, output: Output) -> None:  # noqa: PLR0913, PLR0917
    """How often sources differ, and examples."""
    from karat.config.load import load
    from karat.inspect.belief import conflicts as differing

    found = differing(load(folder, variables), belief, attribute, limit=limit)
    total = sum(found.counts.values())
    output.record(plain({"belief": found.belief, "total": total, "counts": found.counts, "conflicts": found.rows}))
    if not output.json:
        from karat.cli.belief_pictures import conflicts_picture

        conflicts_picture(found)


def restatements(folder: Path, belief: str, key: str | None, limit: int, variables: Variables, output: Output) -> None:  # noqa: PLR0913, PLR0917
    """The receipts, the latest first."""
    from karat.config.load import load
    from karat.inspect.belief import restatements as restated

    found = restated(load(folder, variables), belief, key, limit=limit)
    output.record(plain({"belief": belief, "restatements": found}))
    if not output.json:
        from karat.cli.belief_pictures import receipts_picture

        receipts_picture(found)


def _asked(question: "Question") -> dict[str, object]:
    return {"belief": question.belief.name, "key": question.key, "valid_at": question.valid_at, "known_at": question.known_at}


def _free_file(out: str) -> Path:
    """Where to write: a kind of file we know, and nothing there yet, because an answer once given is not written over."""
    file = Path(out)
    if file.suffix.lower() not in {".csv", ".parquet"}:
        message = f"--out {out} is neither CSV nor Parquet"
        raise ConfigError(message, remedy="let the name end in .csv or .parquet")
    if file.exists() or not file.absolute().parent.is_dir():
        message = f"--out {out} " + ("is there already" if file.exists() else "is in a folder that is not there")
        raise ConfigError(message, remedy="choose another name, or remove it first" if file.exists() else "make the folder first")
    return file
