"""The history of an entity as a picture: a lane per source, one for the entity, then statements and versions as tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.inspect.history import LATE, History

LANE = 72
"""The width of a lane in characters."""
COLOURS = ("cyan", "magenta", "yellow", "green", "blue")
OFF_TERMINAL = 200
EVERYTHING = {"absent": "the snapshot was complete: other keys are deleted", "t": "all keys are deleted"}
"""The meaning of statements about a whole source."""


def history_picture(told: History) -> None:
    """Lanes, statements, versions."""
    console = Console()
    console = console if console.is_terminal else Console(width=OFF_TERMINAL)
    key = ", ".join(f"{name}={value}" for name, value in told.key.items())
    if not told.statements:
        console.print(f"there is no evidence about {told.entity} {key}", highlight=False)
        return
    console.print(f"{told.entity} {key}: {len(told.statements)} arrivals, {len(told.versions)} versions", highlight=False)
    if told.versions and told.versions[0]["effective_to"] is None and told.versions[0]["is_current"] is None:
        console.print(_facts(told))
    else:
        _lanes(told, console)
        console.print(_versions(told))
    console.print(_statements(told))


def _lanes(told: History, console: Console) -> None:
    sources = sorted({row["source_system"] for row in told.versions})
    starts = sorted({row["effective_from"] for row in told.versions})
    if len(starts) < 2:  # noqa: PLR2004  (one instant has no extent)
        return
    colours = {source: COLOURS[index % len(COLOURS)] for index, source in enumerate(sources)}
    width = max(len("entity"), *(len(source) for source in sources))
    for source in sources:
        mine = [row for row in told.versions if row["source_system"] == source]
        console.print(Text(f"{source:>{width}} ", style=colours[source]) + _lane(mine, "source_effective_to", starts, colours))
    console.print(Text(f"{'entity':>{width}} ") + _lane(told.versions, "effective_to", starts, colours))
    first, last = _short(starts[0]), _short(starts[-1])
    console.print(Text(" " * (width + 1) + first + " " * max(1, LANE - len(first) - len(last)) + last, style="dim"))


def _lane(rows: Sequence[Mapping[str, Any]], end: str, starts: Sequence[datetime], colours: Mapping[str, str]) -> Text:
    """The versions as a lane: solid while the entity is live, dotted while it is deleted."""
    span = (starts[-1] - starts[0]).total_seconds() * 1.08 or 1.0
    lane = [(" ", "")] * LANE

    def place(moment: datetime) -> int:
        return min(LANE - 1, int((moment - starts[0]).total_seconds() / span * LANE))

    for row in rows:
        first = place(row["effective_from"])
        last = LANE - 1 if row[end] is None else place(row[end])
        colour = colours[row["source_system"]]
        for column in range(first, max(first + 1, last)):
            lane[column] = ("·" if row["is_deleted"] else "━", colour)
        lane[first] = ("x" if row["is_deleted"] else "┣", colour)
    return Text.assemble(*lane)


def _versions(told: History) -> Table:
    attributes = _attributes(told)
    table = _table("version from", "to", "source", *attributes, "state", "seen")
    for row in told.versions:
        inherited = row.get("inherited") or {}
        cells = [Text(_shown(row[name]), style="dim italic" if name in inherited else "") for name in attributes]
        state = ("deleted" if row["is_deleted"] else "live") + (", current" if row["is_current"] else "")
        if row["op"] in {"absent", "t"}:
            state += " (absent)" if row["op"] == "absent" else " (truncated)"
        period = (_short(row["effective_from"]), _short(row["effective_to"]))
        table.add_row(*period, Text(row["source_system"]), *cells, state, f"{row['seen_count']}x")
    table.caption = "dim values are inherited" if any(row.get("inherited") for row in told.versions) else None
    return table


def _facts(told: History) -> Table:
    attributes = _attributes(told)
    table = _table("at", "source", *attributes, "what", "seen")
    for row in told.versions:
        what = "correction" if row["corrects"] is not None else "fact"
        cells = [Text(_shown(row[name])) for name in attributes]
        table.add_row(_short(row["effective_from"]), Text(row["source_system"]), *cells, what, f"{row['seen_count']}x")
    return table


def _statements(told: History) -> Table:
    table = _table("event time", "source", "op", "asserted", "arrived", "from", "")
    for row in told.statements:
        said = ", ".join(f"{name}={_shown(row[name])}" for name in row["asserted_columns"] or [])
        op = row["op"] or ("snapshot" if row["load_type"] == "FULL" else "upsert")
        about = EVERYTHING.get(row["op"], "everything") if row["bk"] is None else said
        mark = Text("late", style="bold red") if row[LATE] else Text("")
        # values may look like markup; they are shown as they are
        words = map(Text, (row["source_system"], op, about, _short(row["ingest_ts"]), row["source_file"] or ""))
        table.add_row(_short(row["source_event_ts"]), *words, mark)
    return table


def _attributes(told: History) -> list[str]:
    return sorted({name for row in told.statements for name in row["asserted_columns"] or []})


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, no_wrap=heading in {"version from", "to", "event time", "arrived", "at"})
    return table


def _short(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}" + (f":{moment:%S}" if moment.second else "")


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
