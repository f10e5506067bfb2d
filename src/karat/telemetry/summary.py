"""The summary at the end of a run: a table, failures, notes and one last sentence."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.telemetry.board import COLOURS, clean
from karat.telemetry.events import RunFinished, StageFinished

_HEADINGS: Final = ("stage", "status", "read", "inserted", "updated", "deleted", "quarantined", "seconds")
_TEXT_COLUMNS: Final = 2
"""The first columns hold text and are aligned left; the others hold numbers."""


def print_summary(console: Console, stages: Sequence[StageFinished], run: RunFinished, *, plain: bool) -> None:
    """On a terminal a table in colour; elsewhere lines without colour and without a width to break them at."""
    unwell = [line for status in ("failed", "interrupted", "skipped") for line in _section(status.capitalize(), stages, status)]
    sentences = [*unwell, *_notes(stages), _last_sentence(stages, run)]
    if plain:
        lines = [*_plain_table(stages), *sentences]
        console.file.write("\n".join(lines) + "\n")
        console.file.flush()
        return
    if stages:
        console.print(_rich_table(stages))
    for sentence in sentences:
        console.print(Text(sentence), soft_wrap=True)


def _cells(stage: StageFinished) -> tuple[str, ...]:
    rows = stage.rows
    counts = (rows.read, rows.inserted, rows.updated, rows.deleted, rows.quarantined)
    return (clean(stage.stage).plain, stage.status, *(f"{count:,}" for count in counts), f"{stage.seconds:.1f}")


def _rich_table(stages: Sequence[StageFinished]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="left" if number < _TEXT_COLUMNS else "right", overflow="fold")
    for stage in stages:
        name, status, *numbers = _cells(stage)
        table.add_row(Text(name), Text(status, style=COLOURS[stage.status]), *numbers)
    return table


def _plain_table(stages: Sequence[StageFinished]) -> list[str]:
    if not stages:
        return []
    grid = [_HEADINGS, *(_cells(stage) for stage in stages)]
    widths = [max(len(row[number]) for row in grid) for number in range(len(_HEADINGS))]
    return ["  ".join(_aligned(row, widths)).rstrip() for row in grid]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if number < _TEXT_COLUMNS else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _section(heading: str, stages: Sequence[StageFinished], status: str) -> list[str]:
    """The tables that ended so, each with its whole error."""
    lines = [f"  {clean(stage.stage).plain}: {_indented(stage.error or 'no reason given')}" for stage in stages if stage.status == status]
    return ["", f"{heading}:", *lines] if lines else []


def _notes(stages: Sequence[StageFinished]) -> list[str]:
    notes = [f"  {clean(stage.stage).plain}: {_indented(note)}" for stage in stages for note in stage.notes]
    return ["", "Notes:", *notes] if notes else []


def _indented(text: str) -> str:
    return clean(text).plain.strip().replace("\n", "\n    ")


def _last_sentence(stages: Sequence[StageFinished], run: RunFinished) -> str:
    counted = ", ".join(f"{count} {status}" for status, count in run.counts.items() if count) or "no tables"
    head = f"\nRun {clean(run.run_id).plain}: {counted} in {run.seconds:.1f} s."
    if run.interrupted:
        return f"{head} Interrupted by {run.interrupted}: what was committed stays, the next run does the rest."
    if not run.ok:
        failed = clean(", ".join(run.failed)).plain
        return f"{head} Failed: {failed}." if failed else f"{head} It did not end well."
    return head if any(stage.status == "succeeded" for stage in stages) else f"{head} Nothing changed."
