"""Housekeeping of the tables of entities, beliefs and the star: small files joined and laid out by key, old files let go.

Nothing here changes what a table says, except that sightings which were left for later are written down now. Files of changes that a
target of the star has not read yet are kept, however old they are.
"""

from dataclasses import dataclass
from datetime import timedelta

from karat.belief.rebuild import rebuild_belief
from karat.bronze.rebuild import rebuild_timeline
from karat.config.names import TableName
from karat.config.resolved import Belief, Entity
from karat.config.star import Dimension, Fact, StarTable
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.materialized import leftovers, remove_leftovers
from karat.temporal.columns import BK

LEFT_BEHIND = 24
"""Hours after which nobody needs staged rows any more: no stage takes that long."""
_LET_GO = "let go of files"
SMALL_FILE = 32 * 1024 * 1024
"""Files below this are worth joining."""


@dataclass(frozen=True)
class Chore:
    """One table's housekeeping: how it looks, and what was or would be done."""

    table: str
    files: int
    bytes: int
    actions: tuple[str, ...]
    """What is worth doing; nothing for a table in order."""
    done: bool = False


Maintained = Entity | Belief | StarTable


def chores(of: Maintained, run: RunContext, tables: DeltaTables, *, retention_hours: int) -> list[tuple[TableName, Chore]]:
    """What each of the tables could use."""
    found = []
    for name in _tables(of):
        if not tables.exists(name):
            continue
        files, size = tables.extent(name)
        actions = []
        if files > 1 and size / files < SMALL_FILE:
            layout = ", laid out by key" if _layout(of, name) else ""
            actions.append(f"compact {files} files of {size // max(files, 1):,} bytes on average{layout}")
        if isinstance(of, Entity) and name == of.timeline and of.declared.sightings == "lazy":
            actions.append("bring lazy sightings up to date")
        unread = _unread_changes(name, run, tables, retention_hours)
        actions.append(unread or f"{_LET_GO} no version of the last {retention_hours} hours needs")
        found.append((name, Chore(str(name), files, size, tuple(actions))))
    return found


def maintain(of: Maintained, run: RunContext, *, retention_hours: int) -> list[Chore]:
    """Do what `chores` says."""
    tables = run.tables()
    done = []
    for name, chore in chores(of, run, tables, retention_hours=retention_hours):
        if isinstance(of, Entity) and any(action.startswith("bring") for action in chore.actions):
            rebuild(of, run)
        if any(action.startswith("compact") for action in chore.actions):
            tables.compact(name, _layout(of, name))
        if any(action.startswith(_LET_GO) for action in chore.actions):
            tables.vacuum(name, retention_hours)
        files, size = tables.extent(name)
        done.append(Chore(chore.table, files, size, chore.actions, done=True))
    return done


def staging_chores(tables: DeltaTables, *, apply: bool) -> list[Chore]:
    """Staged rows that killed processes left behind: one chore, none where there are no such rows."""
    found = leftovers(tables.session, LEFT_BEHIND)
    if not found.folders:
        return []
    if apply:
        remove_leftovers(tables.session, found)
    sets = "set" if len(found.folders) == 1 else "sets"
    action = f"remove {len(found.folders)} {sets} of staged rows that ended processes left"
    return [Chore("_staging", found.files, found.bytes, (action,), done=apply)]


def rebuild(of: Entity | Belief, run: RunContext) -> None:
    """The tables as all evidence says; only keys that differ are written."""
    if isinstance(of, Entity):
        rebuild_timeline(of, run)
    else:
        rebuild_belief(of, run)


def _tables(of: Maintained) -> tuple[TableName, ...]:
    match of:
        case Entity():
            return (of.assertions, of.timeline, of.quarantine)
        case Belief():
            return of.tables
        case Fact():
            return (of.table, of.quarantine, of.late_dimensions)
        case _:
            return (of.table, of.quarantine)


def _layout(of: Maintained, name: TableName) -> tuple[str, ...]:
    """The columns by which rows are laid close together: whatever is about one key; refused rows have none."""
    if isinstance(of, StarTable):
        by_key = of.keys if isinstance(of, Dimension) and of.calendar is None else ()
        return of.layout.zorder_by or (() if of.layout.cluster_by else by_key) if name == of.table else ()
    return () if isinstance(of, Entity) and name == of.quarantine else (BK,)


def _unread_changes(name: TableName, run: RunContext, tables: DeltaTables, hours: int) -> str | None:
    """Why files of the table are kept: a target has yet to read changes that are older than the retention; None where none has."""
    latest = None
    for star in run.config.star:
        feeds = [source.alias for source in star.sources if source.is_feed and source.table == name]
        if not feeds or not tables.exists(star.table):
            continue
        read = tables.state(star.table, str(star.table)).checkpoint.position.get("sources", {})
        versions = [int(read[alias]["version"]) for alias in feeds if alias in read]
        latest = latest or tables.commits(name)
        limit = run.stamp.started_at - timedelta(hours=hours)
        unread = [entry for entry in latest if entry["version"] > min(versions, default=-1) and entry["timestamp"].astimezone() < limit]
        if unread:
            return f"files are kept: {star.table} has not read the changes since version {min(versions, default=-1) + 1} yet"
    return None
