"""Answers about beliefs as a person reads them: why, as-of, conflicts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.cli.answers import counted
from karat.cli.lanes import lanes
from karat.cli.periods import OFF_TERMINAL
from karat.cli.plain import legible, short
from karat.config.rules import Rule
from karat.inspect.belief import Conflicts, Loser, Question, Statement, Why
from karat.inspect.values_over_time import values_over_time
from karat.reference import Reason

IN_WORDS: Final[Mapping[Reason, str]] = {
    "not yet known": "not yet known then",
    "not yet valid": "has a later event time",
    "not allowed": "not allowed on this attribute",
    "deletion": "a delete: asserts no attributes",
    "inherited only": "only inherited it",
    "earlier life": "from before its source deleted it",
    "superseded": "superseded by the same source",
    "null": "is null",
    "rank": "lower rank",
    "time": "older",
    "tie": "same rank and time: a tiebreaker",
}
SILENT: Final = frozenset({"deletion", "inherited only"})
"""Reasons of statements that do not assert the attribute: an overview only counts them."""
OVERVIEW: Final = 6
"""How many of the statements that did not win an overview shows, the latest ones."""
LONGEST: Final = 40
"""A longer value is cut in tables; the whole one is in the heading, or in JSON."""


def why_picture(question: Question, told: Mapping[str, Why], believed: Mapping[str, Any] | None) -> None:
    """One attribute with its values over time, or an overview of all."""
    console = _console()
    _say(console, f"{question.belief.name} {question.whom}: {times_in_words(question)}", "bold")
    if believed is None:
        _say(console, "not in the belief: no allowed source had asserted anything about it")
    if len(told) == 1:
        for why in told.values():
            _alone(console, question, why)
        return
    for why in told.values():
        _say(console, "")
        _verdict(console, question.rule, why)
        asserting = [loser for loser in why.losers if loser.reason not in SILENT]
        for line in _aligned(_loser_cells(loser, why) for loser in asserting[-OVERVIEW:]):
            _say(console, f"    {line}", "dim")
        others = {"before these": len(asserting[:-OVERVIEW]), "that do not assert it": len(why.losers) - len(asserting)}
        if more := ", ".join(f"{number} {which}" for which, number in others.items() if number):
            _say(console, f"    and {more}", "dim")


def row_picture(question: Question, row: Mapping[str, Any] | None) -> None:
    """What is believed of one entity, one line per attribute."""
    console = _console()
    _say(console, f"{question.belief.name} {question.whom}: {times_in_words(question)}", "bold")
    if row is None:
        _say(console, "not in the belief: no allowed source had asserted anything about it")
        return
    table = _table("attribute", "believed", "because of")
    for name in (*question.schema.attributes, "is_deleted"):
        whose = row["because"].get(name)
        author = f"{whose['source_system']} for {short(whose['source_event_ts'])}" if whose else ""
        table.add_row(*map(Text, (name, legible(row[name]), legible(author))))
    console.print(table)
    _say(console, f"by rule version {row['rule_version']}")


def rows_picture(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], count: int) -> None:
    """The first rows of a belief, and how many there are."""
    console = _console()
    if rows:
        table = _table(*columns)
        for row in rows:
            table.add_row(*(Text(_cut(legible(row[name]))) for name in columns))
        console.print(table)
    more = f", the first {len(rows)} are shown" if len(rows) < count else ""
    _say(console, f"{count} believed in{more}")


def conflicts_picture(found: Conflicts) -> None:
    """How often sources differ, by attribute, and some of the cases, one line per source."""
    console = _console()
    if not found.counts:
        _say(console, f"{found.belief}: the sources agree")
        return
    counts = ", ".join(f"{name} {number}" for name, number in sorted(found.counts.items(), key=lambda told: -told[1]))
    _say(console, f"{found.belief}: sources differ in {counted(sum(found.counts.values()), 'case')}: {counts}", "bold")
    table = _table("attribute", "about", "source", "value", "event time", "")
    for row in found.rows:
        about = ", ".join(f"{name}={legible(row[name])}" for name in found.key)
        heading = (row["attribute"], about)
        for number, said in enumerate(row["says"]):
            last = number == len(row["says"]) - 1
            cells = (
                legible(said["source_system"]),
                _cut(legible(said["value"])),
                short(said["source_event_ts"]),
                "believed" if said["won"] else "",
            )
            table.add_row(*map(Text, (*(heading if number == 0 else ("", "")), *cells)), end_section=last)
    if found.rows:
        console.print(table)
    if (more := sum(found.counts.values()) - len(found.rows)) > 0:
        _say(console, f"and {more} more: --limit shows more, --attribute only one attribute's")


def receipts_picture(receipts: Sequence[Mapping[str, Any]]) -> None:
    """What was believed about the past before it changed, one line per value."""
    console = _console()
    if not receipts:
        _say(console, "nothing that was believed about the past has changed")
        return
    table = _table("about", "from", "until", "what", "before", "now", "because of", "restated")
    for row in receipts:
        period = (short(row["valid_from"]), short(row["valid_to"]) if row["valid_to"] else "on")
        for number, name in enumerate(row["changed"]):
            whose = row["because"].get(name) if isinstance(row["because"], Mapping) else None
            because = f"{whose['source_system']} of {short(whose['source_event_ts'])}" if whose else f"rule version {row['rule_version']}"
            sides = (_cut(legible(row[side].get(name))) if row[side] else "nothing" for side in ("before", "after"))
            cells = (*((row["bk"], *period) if number == 0 else ("", "", "")), name, *sides, because, short(row["restated_at"]))
            table.add_row(*(Text(legible(cell)) for cell in cells), end_section=number == len(row["changed"]) - 1)
    console.print(table)


def times_in_words(question: Question) -> str:
    """The two times asked about."""
    valid = "the latest state" if question.valid_at is None else f"the state at {short(question.valid_at)}"
    return f"{valid}, as known at {short(question.known_at.replace(microsecond=0))} UTC"


def _alone(console: Console, question: Question, why: Why) -> None:
    """The value with its reason, the picture, and the table of the statements that did not win."""
    _say(console, "")
    _verdict(console, question.rule, why)
    _say(console, "")
    lanes(values_over_time(question, why.attribute), why.winner.source_system if why.winner else None, question.valid_at, console)
    if not why.losers:
        _say(console, "there are no other statements about it")
        return
    table = _table("event time", "source", "value", "why it did not win", "arrived")
    for loser in why.losers:
        table.add_row(*map(Text, (*_loser_cells(loser, why), _arrival(loser.statement))))
    console.print(table)


def _verdict(console: Console, rule: Rule | None, why: Why) -> None:
    """What is believed, the statement that won, and what decided."""
    if why.winner is None and why.attribute != "is_deleted":
        _say(console, f"{why.attribute}: nothing is believed", "bold")
    else:
        _say(console, f"{why.attribute} = {legible(why.value) if why.value is not None else 'null'}", "bold")
    _say(console, f"  {_author(why.winner)}")
    _say(console, f"  {_decision(rule, why)}")


def _author(winner: Statement | None) -> str:
    if winner is None:
        return "there is no candidate"
    origin = winner.source_file or winner.source_path or "unknown origin"
    seen = "" if winner.at == winner.source_event_ts else f" (as it was at {short(winner.source_event_ts)})"
    return legible(
        f"{winner.source_system} for {short(winner.at)}{seen}: {origin}, arrived {_arrival(winner)} in run {winner.ingest_run_id}"
    )


def _arrival(told: Statement) -> str:
    """The time of arrival to the second; `--json` has it exactly."""
    return short(told.ingest_ts.replace(microsecond=0))


def _decision(rule: Rule | None, why: Why) -> str:
    if rule is None or why.group is None:
        return f"rule version {why.rule_version} allows no source on it"
    decider = rule.on(why.attribute)[1]
    ranks = None if decider is None else decider.sources
    ordered = sorted((ranks or {}).items(), key=lambda ranked: (-ranked[1], ranked[0]))
    named = ", ".join(f"{source} (rank {rank})" for source, rank in ordered) or "none"
    group = "delete" if why.attribute == "is_deleted" else f"group {why.group}"
    return legible(
        f"by {why.by} (rule version {why.rule_version}, {group}); sources: {'all, by their own rank' if ranks is None else named}"
    )


def _loser_cells(loser: Loser, why: Why) -> tuple[str, str, str, str]:
    told, value, reason = loser
    shown = "may not delete" if (reason, why.attribute) == ("not allowed", "is_deleted") else IN_WORDS[reason]
    return short(told.at), legible(told.source_system), _cut(legible(value)), shown


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """The rows as lines with aligned cells."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        table.add_column(Text(heading), no_wrap=heading in {"event time", "arrived", "source"})
    return table


def _console() -> Console:
    """The console; wide where the output is no terminal, so that nothing is cut."""
    console = Console()
    return console if console.is_terminal else Console(width=OFF_TERMINAL)


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(Text(text, style), highlight=False)
