"""The star from its declarations: tables named, queries read, lookups and bridges tied to their dimensions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from karat.config.declared.curation import parse_order
from karat.config.declared.gold import BridgeDeclaration, DimensionDeclaration, FactDeclaration, Lookup, Side, Target
from karat.config.document import Document, Place, dotted
from karat.config.names import TableName, is_path, is_plain, lake_path, table_name
from karat.config.problems import Problem, nearest, shown
from karat.config.query import SqlProblem, output_columns, parsed, tables_read
from karat.config.resolved import Config, OrderBy
from karat.config.star import (
    BAD_VALUE,
    CALENDAR_KEY,
    DIMENSION_COLUMNS,
    MISSING,
    NOT_APPLICABLE,
    NOT_YET_KNOWN,
    Bridge,
    BridgeSide,
    Dimension,
    DimensionLookup,
    Fact,
    Source,
    Star,
    StarTable,
    TargetLayout,
)
from karat.config.template import render, template_problem
from karat.errors import ConfigError

SCHEMA = "gold"
Declared = DimensionDeclaration | FactDeclaration | BridgeDeclaration
_WHEN_NULL = {"missing": MISSING, "not_applicable": NOT_APPLICABLE, "not_yet_known": NOT_YET_KNOWN, "bad_value": BAD_VALUE}


@dataclass
class _Here:
    """A declaration with its place, and what is wrong with it so far."""

    document: Document
    config: Config
    variables: Mapping[str, object]
    problems: list[Problem] = field(default_factory=list)

    def problem(self, place: Place, message: str, value: object = "", remedy: str = "") -> None:
        found = shown(value) if value else ""
        self.problems.append(Problem(self.document.file, self.document.line_of(place), dotted(place), message, found, remedy))


def resolve_star(
    declared: Sequence[tuple[Declared, Document]], config: Config, variables: Mapping[str, object]
) -> tuple[list[tuple[Star, Document]], list[Problem]]:
    """The tables of the star: dimensions first, since facts and bridges name them; and what is wrong beyond the declarations' shape."""
    found: list[tuple[Star, Document]] = []
    problems: list[Problem] = []
    dimensions: dict[str, Dimension] = {}
    names = {each.name for each, _ in declared if isinstance(each, DimensionDeclaration)}
    for each, document in sorted(declared, key=lambda pair: not isinstance(pair[0], DimensionDeclaration)):
        here = _Here(document, config, variables)
        star = _resolved(each, dimensions, names, here)
        problems += here.problems
        if isinstance(star, Dimension):
            dimensions[star.name] = star
        if star is not None and not here.problems:
            found.append((star, document))
    return found, problems


def _resolved(declared: Declared, dimensions: Mapping[str, Dimension], names: set[str], here: _Here) -> Star | None:
    shared = _shared(declared, here)
    match declared:
        case DimensionDeclaration():
            return _dimension(declared, shared, here)
        case FactDeclaration():
            lookups = [_lookup(each, index, dimensions, names, here) for index, each in enumerate(declared.lookups)]
            _check_columns(("grain",), declared.grain, shared, here)
            return Fact(
                **vars(shared),
                grain=tuple(declared.grain),
                lookups=tuple(each for each in lookups if each is not None),
                load=declared.load,
                milestones=tuple(declared.milestones),
                period=declared.period,
                order=tuple(OrderBy(*parse_order(column)) for column in declared.order_by),
                quarantines_duplicates=declared.on_duplicate == "quarantine",
                keeps_deleted=declared.deletes == "ignore",
            )
        case BridgeDeclaration():
            sides = [_side(role, side, dimensions, names, here) for role, side in declared.between.items()]
            first, second = (sides[0], sides[1])
            return None if first is None or second is None else Bridge(**vars(shared), sides=(first, second), weight=declared.weight)


def _shared(declared: Target, here: _Here) -> StarTable:
    catalog = here.config.settings.catalog
    sources = []
    for index, source in enumerate(declared.sources):
        name = _table(source.table, here, ("sources", index, "table"))
        if name is not None:
            sources.append(Source(name, source.alias, source.mode == "cdf"))
    template = _template(declared, here)
    layout = TargetLayout(tuple(declared.partition_by), tuple(declared.cluster_by), tuple(declared.zorder_by))
    place = f"{here.document.file}:{here.document.line_of(('sql',) if declared.sql else ('sql_file',))}"
    table = TableName(SCHEMA, declared.name, None, catalog)
    found = StarTable(declared.name, table, tuple(sources), template, declared.on_full_change, layout, place)
    _check_query(found, declared, here)
    return found


def _table(text: str, here: _Here, place: Place) -> TableName | None:
    """A table of the lake, by name or by path."""
    config, catalog = here.config, here.config.settings.catalog
    try:
        name = lake_path(text, config.lake) if is_path(text) else table_name(text, "silver", catalog)
    except ValueError as wrong:
        here.problem(place, str(wrong), text, "write schema.table, or a path below the lake")
        return None
    if name.path is not None and catalog is None and is_plain(name):
        return TableName(name.schema, name.table)
    return TableName(name.schema, name.table, name.path, catalog)


def _template(declared: Target, here: _Here) -> str:
    """The text of the query, from the declaration or from a file of the project."""
    if declared.sql_file is None:
        return declared.sql or ""
    path = Path(here.config.folder, declared.sql_file).resolve()
    if not path.is_relative_to(here.config.folder):
        here.problem(("sql_file",), "the path leads out of the project", declared.sql_file, "keep SQL files in the project's folder")
    elif not path.is_file():
        here.problem(("sql_file",), "there is no such file", declared.sql_file, "create it, or mend sql_file")
    else:
        return path.read_text(encoding="utf-8")
    return ""


def _check_query(target: StarTable, declared: Target, here: _Here) -> None:
    """The template is one that may run, and the query reads the declared aliases and nothing else."""
    if not target.template:
        return
    place: Place = ("sql",) if declared.sql else ("sql_file",)
    if (wrong := template_problem(target.template)) is not None:
        here.problem(place, f"line {wrong[1]}: {wrong[0]}", "", "a template knows var, this and run, if and for")
        return
    try:
        query = parsed(rendered_for_check(target, here.variables))
    except SqlProblem as problem:
        here.problem(place, f"line {problem.line}: {problem.message}", "", problem.remedy)
        return
    except ConfigError as problem:
        here.problem(place, problem.message, "", problem.remedy or "")
        return
    aliases = {source.alias.lower() for source in target.sources}
    for name in sorted(tables_read(query) - aliases - {THIS}):
        here.problem(place, f"the query reads {name}, which is no alias of a source", name, nearest(name, aliases))
    for alias in sorted(aliases - tables_read(query)):
        here.problem(place, f"the query does not read the source {alias}", alias, "read it, or take it out of `sources`")


THIS = "__karat_this"
"""The name of the view in which a query finds its own target."""


def rendered_for_check(target: StarTable, variables: Mapping[str, object]) -> str:
    """The query as a first run would see it."""
    this = {"name": str(target.table), "exists": False, "rows": THIS}
    run = {"id": "run", "started_at": "2026-01-01 00:00:00", "date": "2026-01-01", "is_first": True, "is_reload": False}
    return render(target.template, variables, this, run)


def _check_columns(place: Place, names: Sequence[str], target: StarTable, here: _Here) -> None:
    """The query returns these columns, as far as that can be told without Spark."""
    try:
        columns = output_columns(parsed(rendered_for_check(target, here.variables))) if target.template else None
    except (SqlProblem, ConfigError):
        return  # reported already
    if columns is None:
        return
    known = {column.lower() for column in columns}
    for name in names:
        if name.lower() not in known:
            here.problem(place, f"the query does not return the column {name}", name, nearest(name, columns))


def _dimension(declared: DimensionDeclaration, shared: StarTable, here: _Here) -> Dimension:
    key = declared.surrogate_key
    calendar = declared.calendar
    if calendar is None:
        _check_columns(("natural_keys",), declared.natural_keys, shared, here)
        _check_columns(("track",), declared.track or [], shared, here)
        if declared.effective_at is not None:
            _check_columns(("effective_at",), [declared.effective_at], shared, here)
    for name in (*declared.natural_keys, *(declared.track or [])):
        if name.lower() in DIMENSION_COLUMNS:
            here.problem(("natural_keys",), f"{name} is a column that Karat adds", name, "name it differently in the query")
    return Dimension(
        **vars(shared),
        scd_type=1 if calendar else declared.scd_type,
        keys=(CALENDAR_KEY,) if calendar else tuple(declared.natural_keys),
        surrogate=key.column if key else f"{declared.name.removeprefix('dim_')}_sk",
        strategy=key.strategy if key else "hash",
        tracked=tuple(declared.track) if declared.track else None,
        effective_at=declared.effective_at,
        absence_deletes=declared.absence_means == "deleted",
        open_end=declared.open_end,
        periods=(declared.periods.start, declared.periods.end) if declared.periods else None,
        repoints=declared.late_dimension == "repoint",
        from_changes=declared.initial == "changes",
        calendar=(calendar.start, calendar.end, calendar.fiscal_year_starts) if calendar else None,
    )


def _lookup(declared: Lookup, index: int, dimensions: Mapping[str, Dimension], names: set[str], here: _Here) -> DimensionLookup | None:
    place: Place = ("lookups", index)
    dimension = _named(declared.dimension, dimensions, names, here, (*place, "dimension"))
    if dimension is None:
        return None
    if {name.lower() for name in declared.on} != {name.lower() for name in dimension.keys} and declared.missing == "skeleton":
        keys = ", ".join(dimension.keys)
        message = f"a skeleton needs the whole natural key of {dimension.name} ({keys})"
        here.problem((*place, "on"), message, ", ".join(declared.on), "look up by the natural key, or set missing: member")
    missing = declared.missing
    if dimension.calendar is not None and missing == "skeleton":
        missing = "member"  # no fact makes a day
    on = tuple(declared.on.items())
    return DimensionLookup(dimension, on, declared.at, declared.into, missing, _WHEN_NULL[declared.when_null])


def _side(role: str, declared: Side, dimensions: Mapping[str, Dimension], names: set[str], here: _Here) -> BridgeSide | None:
    place: Place = ("between", role)
    dimension = _named(declared.dimension, dimensions, names, here, place)
    if dimension is None:
        return None
    on = tuple((declared.on or dict(zip(dimension.keys, dimension.keys, strict=True))).items())
    if {name.lower() for name, _ in on} != {name.lower() for name in dimension.keys}:
        here.problem((*place, "on"), f"the natural key of {dimension.name} is {', '.join(dimension.keys)}", "", "name each of its columns")
    return BridgeSide(role, dimension, on)


def _named(name: str, dimensions: Mapping[str, Dimension], names: set[str], here: _Here, place: Place) -> Dimension | None:
    found = dimensions.get(name.removeprefix("gold."))
    if found is None and name.removeprefix("gold.") not in names:  # one that is wrong itself is not reported once more
        here.problem(place, "there is no such dimension", name, nearest(name, names))
    return found
