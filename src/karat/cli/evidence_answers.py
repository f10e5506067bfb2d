"""The commands about evidence; each loads only what it needs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from karat.cli.answers import FAILED, Output, counted, fetch_jars
from karat.errors import ConfigError

Variables = Mapping[str, str]


def history(folder: Path, entity: str, key: str, variables: Variables, output: Output) -> None:
    """One entity's statements and versions."""
    from karat.cli.periods import history_picture
    from karat.config.load import load
    from karat.inspect.history import history as history_of

    found = history_of(load(folder, variables), entity, key)
    output.record(
        {
            "entity": found.entity,
            "key": found.key,
            "statements": list(map(_shown, found.statements)),
            "versions": list(map(_shown, found.versions)),
        }
    )
    if not output.json:
        history_picture(found)


def verify(folder: Path, names: Sequence[str], variables: Variables, output: Output) -> None:
    """Each timeline against its evidence; exit 1 when one differs."""
    from karat.project import Project

    project = Project.open(folder, variables=variables)
    fetch_jars(output)
    try:
        config = project.config
        tables = (*(belief.table for belief in config.beliefs), *(star.table for star in config.star))
        found = [project.verify(name) for name in names or [*(entity.name for entity in config.entities), *map(str, tables)]]
    finally:
        project.close()
    output.record([{**asdict(each), "differences": list(map(_shown, each.differences))} for each in found])
    for each in found:
        if each.equal:
            said = {"silver": "the belief is what its evidence says", "gold": "the table is what its sources give"}
            output.line(f"{each.entity}: {said.get(each.entity.partition('.')[0], 'the timeline is what its evidence says')}")
            continue
        output.line(f"{each.entity}: " + ", ".join(f"{count} {what}" for what, count in (each.counts or {}).items()))
        for difference in each.differences:
            since = difference.get("effective_from") or difference.get("valid_from")
            place = f"{difference.get('source_system') or difference.get('table')}" + (f" from {since}" if since else "")
            output.line(f"  {difference['bk']} {place}: {difference['what']}")
            for column, values in difference.get("columns", {}).items():
                output.line(f"    {column}: held {_readable(values['held'])}, the evidence says {_readable(values['evidence'])}")
    differing = [each.entity for each in found if not each.equal]
    if any(not name.startswith("gold.") for name in differing):
        output.line("remedy: `karat maintain rebuild-from-raw` writes what the evidence says")
    for name in (name for name in differing if name.startswith("gold.")):
        output.line(f"remedy: `karat run --select {name} --reload` reads its sources again")
    if differing:
        raise typer.Exit(FAILED)


def _readable(value: object) -> str:
    """A value in a line: bytes as the hex digits every other tool shows them as."""
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else repr(value)


def maintain(folder: Path, what: str, names: Sequence[str], variables: Variables, output: Output, hours: int) -> None:  # noqa: PLR0913, PLR0917
    """Housekeeping, listed or done."""
    from karat.project import Project

    if what not in {"dry-run", "apply", "rebuild-from-raw"}:
        message = f"maintain {what} is not known"
        raise ConfigError(message, remedy="use dry-run, apply or rebuild-from-raw")
    project = Project.open(folder, variables=variables)
    fetch_jars(output)
    try:
        done = project.maintain(what, names, retention_hours=hours)
    finally:
        project.close()
    output.record([asdict(chore) for chore in done])
    for chore in done:
        output.line(f"{chore.table}: {counted(chore.files, 'file')}, {chore.bytes:,} bytes" + (", done" if chore.done else ""))
        for action in chore.actions:
            output.line(f"  {action}")
    if what == "rebuild-from-raw":
        output.line("every timeline and belief asked for is what its evidence says")
    if what == "dry-run":
        output.line("nothing was changed; `karat maintain apply` does it")


def stream(folder: Path, select: Sequence[str], interval: float, variables: Variables, output: Output) -> None:
    """Batches until a signal."""
    from rich.console import Console

    from karat.project import Project
    from karat.stream import stream as streamed
    from karat.telemetry.terminal import Terminal

    project = Project.open(folder, variables=variables)
    fetch_jars(output)
    verbosity: Any = "silent" if output.json else "quiet" if output.quiet else "normal"
    output.note(f"streaming: a look every {interval:g} s; Ctrl-C ends it after the running batch")
    try:
        ended = streamed(
            project, select, interval, lambda: project.run(select, sinks=[Terminal(Console(), Console(stderr=True), verbosity)])
        )
    finally:
        project.close()
    output.record(asdict(ended))
    output.line(
        f"stopped after {counted(ended.batches, 'batch', 'batches')}" + (f", {ended.failed} of them failed" if ended.failed else "")
    )
    if ended.failed:
        raise typer.Exit(FAILED)


def quarantine_list(folder: Path, entity: str | None, variables: Variables, output: Output) -> None:
    """How many rows wait, by reason's rule."""
    from karat.config.load import load
    from karat.inspect.quarantine import refused_rows

    rows = refused_rows(load(folder, variables), entity)
    counts = Counter((row["entity"], row["feed"], row["rule"], row["replayed_by"] is not None) for row in rows)
    found = [
        {"entity": e, "feed": feed, "rule": rule, "rows": number, "replayed": replayed}
        for (e, feed, rule, replayed), number in sorted(counts.items())
    ]
    output.record(found)
    for line in found:
        state = "replayed" if line["replayed"] else "waiting"
        output.line(f"{line['entity']:<20} {line['feed']:<12} {line['rule']:<16} {line['rows']:>6} {state}")
    if not found:
        output.line("nothing is in quarantine")


def quarantine_show(folder: Path, entity: str, identity: str | None, variables: Variables, output: Output) -> None:
    """Rows with reason and original."""
    from karat.config.load import load
    from karat.inspect.quarantine import refused_rows

    rows = [
        row
        for row in refused_rows(load(folder, variables), entity)
        if row["quarantine_id"].startswith(identity or "") and (identity or row["replayed_by"] is None)
    ]
    output.record([_shown(row) for row in rows])
    for row in rows:
        state = f", replayed by {row['replayed_by']}" if row["replayed_by"] else ""
        origin = row["source_file"] or row["source_path"]
        output.line(f"{row['quarantine_id'][:12]} {row['feed']} {origin} ({row['ingest_ts']:%Y-%m-%d %H:%M}{state})")
        output.line(f"  {row['rule']}: {row['reason']}")
        output.line(f"  {row['original']}")
    if not rows:
        output.line("no such row is in quarantine" if identity else "nothing waits in quarantine")


def quarantine_replay(folder: Path, entity: str, variables: Variables, output: Output) -> None:
    """Waiting rows checked again."""
    from karat.project import Project

    project = Project.open(folder, variables=variables)
    fetch_jars(output)
    try:
        done = project.replay(entity)
    finally:
        project.close()
    output.record(asdict(done))
    output.line(f"{counted(done.admitted, 'row')} admitted, {counted(done.waiting, 'row')} still refused")
    behind = [str(belief.table) for belief in project.config.beliefs if belief.entity.name == entity.removeprefix("bronze.")]
    if done.admitted and behind:
        output.line(f"next: `karat run` lets {', '.join(behind)} follow")


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON can tell it: bytes in hex."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a cell holds)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value
