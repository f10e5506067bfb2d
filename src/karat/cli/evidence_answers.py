"""What the commands about evidence do and say; each loads only what it needs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from karat.cli.answers import FAILED, Voice, counted, fetch_jars
from karat.errors import ConfigError

Variables = Mapping[str, str]


def history(folder: Path, entity: str, key: str, variables: Variables, voice: Voice) -> None:
    """One entity's statements and versions."""
    from karat.cli.periods import history_picture
    from karat.config.load import load
    from karat.inspect.history import history as told_of

    told = told_of(load(folder, variables), entity, key)
    voice.answer(
        {
            "entity": told.entity,
            "key": told.key,
            "statements": list(map(_shown, told.statements)),
            "versions": list(map(_shown, told.versions)),
        }
    )
    if not voice.json:
        history_picture(told)


def verify(folder: Path, names: Sequence[str], variables: Variables, voice: Voice) -> None:
    """Each timeline against its evidence; exit 1 when one differs."""
    from karat.project import Project

    project = Project.open(folder, variables=variables)
    fetch_jars(voice)
    try:
        everything = [*(entity.name for entity in project.config.entities), *(str(belief.table) for belief in project.config.beliefs)]
        found = [project.verify(name) for name in names or everything]
    finally:
        project.close()
    voice.answer([{**asdict(each), "differences": list(map(_shown, each.differences))} for each in found])
    for each in found:
        if each.equal:
            what = "the belief" if each.entity.startswith("silver.") else "the timeline"
            voice.say(f"{each.entity}: {what} is what its evidence says")
            continue
        voice.say(f"{each.entity}: " + ", ".join(f"{count} {what}" for what, count in (each.counts or {}).items()))
        for difference in each.differences:
            since = difference.get("effective_from") or difference.get("valid_from")
            place = f"{difference.get('source_system') or difference.get('table')}" + (f" from {since}" if since else "")
            voice.say(f"  {difference['bk']} {place}: {difference['what']}")
            for column, values in difference.get("columns", {}).items():
                voice.say(f"    {column}: held {_readable(values['held'])}, the evidence says {_readable(values['evidence'])}")
    if not all(each.equal for each in found):
        voice.say("remedy: `karat maintain rebuild-from-raw` writes what the evidence says")
        raise typer.Exit(FAILED)


def _readable(value: object) -> str:
    """A value in a line: bytes as the hex digits every other tool shows them as."""
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else repr(value)


def maintain(folder: Path, what: str, names: Sequence[str], variables: Variables, voice: Voice, hours: int) -> None:  # noqa: PLR0913, PLR0917
    """Housekeeping, said or done."""
    from karat.project import Project

    if what not in {"dry-run", "apply", "rebuild-from-raw"}:
        message = f"maintain {what} is not known"
        raise ConfigError(message, remedy="use dry-run, apply or rebuild-from-raw")
    project = Project.open(folder, variables=variables)
    fetch_jars(voice)
    try:
        done = project.maintain(what, names, retention_hours=hours)
    finally:
        project.close()
    voice.answer([asdict(chore) for chore in done])
    for chore in done:
        voice.say(f"{chore.table}: {counted(chore.files, 'file')}, {chore.bytes:,} bytes" + (", done" if chore.done else ""))
        for action in chore.actions:
            voice.say(f"  {action}")
    if what == "rebuild-from-raw":
        voice.say("every timeline and belief asked for is what its evidence says")
    if what == "dry-run":
        voice.say("nothing was changed; `karat maintain apply` does it")


def stream(folder: Path, select: Sequence[str], interval: float, variables: Variables, voice: Voice) -> None:
    """Batches until a signal."""
    from rich.console import Console

    from karat.project import Project
    from karat.stream import stream as streamed
    from karat.telemetry.terminal import Terminal

    project = Project.open(folder, variables=variables)
    fetch_jars(voice)
    manner: Any = "silent" if voice.json else "quiet" if voice.quiet else "normal"
    voice.aside(f"streaming: a look every {interval:g} s; Ctrl-C ends it after the running batch")
    try:
        ended = streamed(project, select, interval, lambda: project.run(select, sinks=[Terminal(Console(), Console(stderr=True), manner)]))
    finally:
        project.close()
    voice.answer(asdict(ended))
    voice.say(f"stopped after {counted(ended.batches, 'batch', 'batches')}" + (f", {ended.failed} of them failed" if ended.failed else ""))
    if ended.failed:
        raise typer.Exit(FAILED)


def quarantine_list(folder: Path, entity: str | None, variables: Variables, voice: Voice) -> None:
    """How many rows wait, by reason's rule."""
    from karat.config.load import load
    from karat.inspect.quarantine import refused_rows

    rows = refused_rows(load(folder, variables), entity)
    counts = Counter((row["entity"], row["feed"], row["rule"], row["replayed_by"] is not None) for row in rows)
    found = [
        {"entity": e, "feed": feed, "rule": rule, "rows": number, "replayed": replayed}
        for (e, feed, rule, replayed), number in sorted(counts.items())
    ]
    voice.answer(found)
    for line in found:
        state = "replayed" if line["replayed"] else "waiting"
        voice.say(f"{line['entity']:<20} {line['feed']:<12} {line['rule']:<16} {line['rows']:>6} {state}")
    if not found:
        voice.say("nothing is in quarantine")


def quarantine_show(folder: Path, entity: str, identity: str | None, variables: Variables, voice: Voice) -> None:
    """Rows with reason and original."""
    from karat.config.load import load
    from karat.inspect.quarantine import refused_rows

    rows = [
        row
        for row in refused_rows(load(folder, variables), entity)
        if row["quarantine_id"].startswith(identity or "") and (identity or row["replayed_by"] is None)
    ]
    voice.answer([_shown(row) for row in rows])
    for row in rows:
        state = f", replayed by {row['replayed_by']}" if row["replayed_by"] else ""
        origin = row["source_file"] or row["source_path"]
        voice.say(f"{row['quarantine_id'][:12]} {row['feed']} {origin} ({row['ingest_ts']:%Y-%m-%d %H:%M}{state})")
        voice.say(f"  {row['rule']}: {row['reason']}")
        voice.say(f"  {row['original']}")
    if not rows:
        voice.say("no such row is in quarantine" if identity else "nothing waits in quarantine")


def quarantine_replay(folder: Path, entity: str, variables: Variables, voice: Voice) -> None:
    """Waiting rows judged anew."""
    from karat.project import Project

    project = Project.open(folder, variables=variables)
    fetch_jars(voice)
    try:
        done = project.replay(entity)
    finally:
        project.close()
    voice.answer(asdict(done))
    voice.say(f"{counted(done.admitted, 'row')} admitted, {counted(done.waiting, 'row')} still refused")
    behind = [str(belief.table) for belief in project.config.beliefs if belief.entity.name == entity.removeprefix("bronze.")]
    if done.admitted and behind:
        voice.say(f"next: `karat run` lets {', '.join(behind)} follow")


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON can tell it: bytes in hex."""
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a cell holds)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value
