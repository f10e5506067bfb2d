"""Answers as tables and lines a person can read."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from karat.inspect.progress import Failure, RunSummary
from karat.inspect.tables import LakeTable


def tables_picture(found: Sequence[LakeTable]) -> None:
    """One line a table."""
    picture = _picture("table", "layer", "rows", "version", "changed", "last run", "status", right={"rows", "version"})
    for table in found:
        changed = table.changed_at and table.changed_at[:16].replace("T", " ")
        cells = (table.name, table.layer, table.rows, table.version, changed, table.last_run, table.status)
        picture.add_row(*("" if cell is None else str(cell) for cell in cells))
    _console().print(picture if found else "the lake holds no tables yet")


def run_picture(run: RunSummary) -> None:
    """A run and its stages."""
    console = _console()
    began = f"{run.started_at:%Y-%m-%d %H:%M:%S} UTC" if run.started_at else "unknown"
    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    note = f" ({run.note})" if run.note else ""
    console.print(f"run {run.run_id} of {run.project}: {run.state}{note}{took}, begun {began}", highlight=False)
    picture = _picture("stage", "state", "read", "inserted", "updated", "deleted", "quarantined", "seconds", right=_COUNTS)
    for stage in run.stages:
        seconds = "" if stage.seconds is None else f"{stage.seconds:.1f}"
        rows = stage.rows
        counts = (rows.read, rows.inserted, rows.updated, rows.deleted, rows.quarantined)
        picture.add_row(stage.stage, stage.state, *(str(count) for count in counts), seconds)
    console.print(picture)
    for stage in run.stages:
        if stage.error:
            console.print(f"{stage.stage}: {stage.error}", highlight=False, markup=False)
    if run.corrupt:
        console.print(f"{run.corrupt} lines of the log could not be read", highlight=False)


def failures_picture(found: Sequence[Failure]) -> None:
    """What failed, newest first."""
    console = _console()
    for failure in found:
        console.print(f"{failure.at} {failure.stage} (run {failure.run_id})\n  {failure.error}", highlight=False, markup=False)
    if not found:
        console.print("no failures on record")


def record_line(record: Mapping[str, Any]) -> str:
    """One event of the log as a line."""
    what = record.get("stage") or record.get("project") or ", ".join(record.get("running", {}))
    status = record.get("status") or ("" if record.get("ok") is None else record.get("interrupted") or ("ok" if record["ok"] else "failed"))
    return " ".join(part for part in (str(record.get("at", ""))[:19], str(record.get("event", "")), str(what), str(status)) if part)


_COUNTS = {"read", "inserted", "updated", "deleted", "quarantined", "seconds"}


WIDE = 160
"""Off a terminal nothing is cut: a file has no edge."""


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _picture(*headings: str, right: set[str]) -> Table:
    picture = Table(box=box.SIMPLE_HEAD)
    for heading in headings:
        picture.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading in {"table", "stage"})
    return picture
