"""Problems between declarations: two writers of one table, and cycles of tables that read each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from karat.config.problems import Problem
from karat.config.resolved import Belief, Config, CuratedTable, Entity
from karat.config.star import Bridge, Fact, Star


@dataclass(frozen=True)
class Writer:
    """The tables that a declaration writes and reads, and its place."""

    name: str
    writes: frozenset[str]
    reads: frozenset[str]
    file: str
    line: int
    path: str
    audit_tables: tuple[str, str] | None = None
    """Control and audit table, for curated tables."""
    reads_at: str = "feeds"
    """The setting that says what is read."""


def curated_writer(table: CuratedTable, file: str, line: int) -> Writer:
    """What a curated table writes and reads."""
    audit_tables = (str(table.audit_tables.control), str(table.audit_tables.audit))
    writes = frozenset({str(table.target), str(table.quarantine)})
    return Writer(str(table.target), writes, frozenset({str(table.source)}), file, line, "target_table", audit_tables, "source_table")


def entity_writer(entity: Entity, file: str, line: int) -> Writer:
    """What an entity writes and reads."""
    writes = frozenset(map(str, (entity.timeline, entity.assertions, entity.quarantine)))
    reads = frozenset(str(feed.table) for feed in entity.feeds if feed.table is not None)
    return Writer(str(entity.timeline), writes, reads, file, line, "name")


def belief_writer(belief: Belief, file: str, line: int) -> Writer:
    """What a belief writes and reads."""
    return Writer(str(belief.table), frozenset(map(str, belief.tables)), frozenset({str(belief.entity.timeline)}), file, line, "name")


def star_writer(star: Star, file: str, line: int) -> Writer:
    """What a dimension, a fact or a bridge writes and reads."""
    return Writer(str(star.table), frozenset(tables_written(star)), frozenset(tables_read(star)), file, line, "name", None, "sources")


def tables_written(star: Star) -> tuple[str, ...]:
    """The tables that are the target's own; facts also add skeletons to their dimensions."""
    late = (str(star.late_dimensions),) if isinstance(star, Fact) else ()
    return (str(star.table), str(star.quarantine), *late)


def tables_read(star: Star) -> tuple[str, ...]:
    """The sources of a target, and the dimensions that it looks up."""
    dimensions = [each.dimension for each in star.lookups] if isinstance(star, Fact) else []
    dimensions += [side.dimension for side in star.sides] if isinstance(star, Bridge) else []
    return tuple(dict.fromkeys(str(table) for table in (*(source.table for source in star.sources), *(each.table for each in dimensions))))


def wiring_problems(writers: Sequence[Writer]) -> list[Problem]:
    """Problems between declarations."""
    return [*_written_twice(writers), *_cycles(writers)]


def _written_twice(writers: Sequence[Writer]) -> list[Problem]:
    problems = []
    first: dict[str, Writer] = {}
    for writer in writers:
        audit_tables = {name.lower() for name in writer.audit_tables or ()}
        if writer.name.lower() in audit_tables:
            message, remedy = "the target is also the control or audit table", "give it a name of its own"
            problems.append(Problem(writer.file, writer.line, writer.path, message, writer.name, remedy))
        if len(audit_tables) == 1:
            message, remedy = "control and audit are one table", "give each a table of its own"
            problems.append(Problem(writer.file, writer.line, "settings.control_table", message, (writer.audit_tables or ("",))[0], remedy))
        for name in sorted(writer.writes):
            earlier = first.setdefault(name.lower(), writer)
            if earlier is not writer:
                message = f"{earlier.file}:{earlier.line} writes this table already"
                problems.append(Problem(writer.file, writer.line, writer.path, message, name.lower(), "give each table one declaration"))
    return problems


def _cycles(writers: Sequence[Writer]) -> list[Problem]:
    owners = {table: writer.name for writer in writers for table in writer.writes}
    graph = {writer.name: {owners.get(read, read) for read in writer.reads} for writer in writers}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        path = [str(name) for name in cycle.args[1]]
        found = next(writer for writer in writers if writer.name in path)
        remedy = "break the circle: one of them must read something else"
        message = f"these tables wait for each other: {' ← '.join(path)}"
        return [Problem(found.file, found.line, found.reads_at, message, remedy=remedy)]
    return []


def missing_files(config: Config) -> list[Problem]:
    """Problems for SQL files that do not exist. `check` reports them; a run fails only the table that needs one."""
    return [
        Problem(
            file=table.sql_file.relative_to(config.folder).as_posix(),
            line=1,
            path=str(table.target),
            message="this SQL file is named as a transformation and does not exist",
            remedy="create it, or mend transformation_sql_path",
        )
        for table in config.curated
        if table.sql_file is not None and not table.sql_file.is_file()
    ]
