"""What only shows when all declarations are seen together: two writers of one table, tables that wait for each other."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from karat.config.problems import Problem
from karat.config.resolved import Config, CuratedTable

Placed = tuple[CuratedTable, str, int]
"""A table with the file and line of its declaration."""


def wiring_problems(tables: Sequence[Placed]) -> list[Problem]:
    """Problems between declarations."""
    return [*_written_twice(tables), *_waiting_for_itself(tables)]


def _written_twice(tables: Sequence[Placed]) -> list[Problem]:
    problems = []
    first: dict[str, Placed] = {}
    for placed in tables:
        table, file, line = placed
        owned = {str(table.target).lower(), str(table.quarantine).lower()}
        books = {str(table.books.control).lower(), str(table.books.audit).lower()}
        if str(table.target).lower() in books:
            problems.append(
                Problem(
                    file,
                    line,
                    "target_table",
                    "the target is also the control or audit table",
                    str(table.target),
                    "give it a name of its own",
                )
            )
        if len(books) == 1:
            message, remedy = "control and audit are one table", "give each a table of its own"
            problems.append(Problem(file, line, "settings.control_table", message, str(table.books.control), remedy))
        for name in owned:
            earlier = first.setdefault(name, placed)
            if earlier is not placed:
                message = f"{earlier[1]}:{earlier[2]} writes this table already"
                problems.append(Problem(file, line, "target_table", message, name, "give each table one declaration"))
    return problems


def _waiting_for_itself(tables: Sequence[Placed]) -> list[Problem]:
    graph = {str(table.target): {str(table.source)} for table, _, _ in tables}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as cycle:
        path = [str(name) for name in cycle.args[1]]
        _, file, line = next(placed for placed in tables if str(placed[0].target) in path)
        remedy = "break the circle: one of them must read something else"
        return [Problem(file, line, "source_table", f"these tables wait for each other: {' ← '.join(path)}", remedy=remedy)]
    return []


def missing_files(config: Config) -> list[Problem]:
    """SQL files that are not there: `check` says so; a run fails the one table and goes on with the others."""
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
