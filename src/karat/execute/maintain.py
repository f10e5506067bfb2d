"""Housekeeping of bronze tables: small files joined and laid out by key, old files let go, lazy sightings brought up to date.

Nothing here changes what a table says, except that sightings which were left for later are written down now.
"""

from dataclasses import dataclass

from karat.bronze.difference import differences, timeline_form
from karat.bronze.timeline import timeline
from karat.config.names import TableName
from karat.config.resolved import Entity
from karat.execute.acts import settled_acts, write
from karat.execute.advance import Ground
from karat.execute.delta import DeltaTables
from karat.execute.evidence import speakers, terms_of
from karat.execute.world import World
from karat.state.commits import Commit, Written
from karat.temporal.columns import SK

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


def chores(entity: Entity, tables: DeltaTables, *, retention_hours: int) -> list[tuple[TableName, Chore]]:
    """What each of the entity's tables could use."""
    found = []
    for name in (entity.assertions, entity.timeline, entity.quarantine):
        if not tables.exists(name):
            continue
        files, size = tables.extent(name)
        actions = []
        if files > 1 and size / files < SMALL_FILE:
            layout = "" if name == entity.quarantine else ", laid out by key"
            actions.append(f"compact {files} files of {size // max(files, 1):,} bytes on average{layout}")
        if name == entity.timeline and entity.declared.sightings == "lazy":
            actions.append("bring lazy sightings up to date")
        actions.append(f"let go of files no version of the last {retention_hours} hours needs")
        found.append((name, Chore(str(name), files, size, tuple(actions))))
    return found


def maintain(entity: Entity, world: World, *, retention_hours: int) -> list[Chore]:
    """Do what `chores` says."""
    tables = world.tables()
    done = []
    for name, chore in chores(entity, tables, retention_hours=retention_hours):
        if any(action.startswith("bring") for action in chore.actions):
            mend_timeline(entity, world)
        if any(action.startswith("compact") for action in chore.actions):
            tables.compact(name, () if name == entity.quarantine else (SK,))
        tables.vacuum(name, retention_hours)
        files, size = tables.extent(name)
        done.append(Chore(chore.table, files, size, chore.actions, done=True))
    return done


def mend_timeline(entity: Entity, world: World) -> Written:
    """The timeline made anew from all evidence, sightings included; only what differs is written, in one commit."""
    tables = world.tables()
    ground = Ground(entity, terms_of(entity, tables, speakers(entity, tables)), tables)
    last = tables.checkpoint(entity.timeline, str(entity.timeline))
    position = {"assertions": tables.version(entity.assertions)}
    commit = Commit(str(entity.timeline), last.sequence + 1, world.stamp.run_id, world.config.hash, position)
    changes = differences(timeline(ground.evidence, ground.terms), ground.held, ground.terms)
    return write(settled_acts(changes, timeline_form(ground.terms)), entity.timeline, tables, commit)
