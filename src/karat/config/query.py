"""The SQL of a target, looked at without Spark: which aliases it reads, and whether a changed row of one can be followed to its result.

A query is *row by row* in an alias when each row of it makes its result rows by itself: no aggregate, window, DISTINCT or LIMIT lies on
its way, and it is not on the side of an outer join that may be empty. Then the query over changed rows alone gives the changed result.
"""

from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

FEED_COLUMNS: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that a change feed adds; every view of changed rows has them."""
CHANGE_COLUMNS: Final = ("__karat_change_type", "__karat_commit_version", "__karat_commit_timestamp")
"""The same, carried through the query beside its own columns."""
DIALECT: Final = "spark"


class SqlProblem(Exception):
    """What is wrong with a query, and in which of its lines."""

    def __init__(self, message: str, line: int, remedy: str) -> None:
        super().__init__(message)
        self.message, self.line, self.remedy = message, line, remedy


def parsed(sql: str) -> exp.Query:
    """The query's syntax. Raises `SqlProblem` for anything but one query."""
    try:
        found = [statement for statement in sqlglot.parse(sql, dialect=DIALECT) if statement is not None]
    except (ParseError, TokenError) as wrong:
        first = wrong.errors[0] if isinstance(wrong, ParseError) and wrong.errors else {}
        message = f"the SQL does not parse: {first.get('description') or str(wrong).splitlines()[0]}"
        raise SqlProblem(message, int(first.get("line") or 1), "mend the syntax") from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        message = "this is not one query"
        raise SqlProblem(message, 1, "write one SELECT, with WITH and UNION ALL as needed")
    return found[0]


def tables_read(query: exp.Query) -> frozenset[str]:
    """The names in FROM and JOIN that are not the query's own WITH tables, in lower case."""
    own = {cte.alias_or_name.lower() for cte in query.find_all(exp.CTE)}
    return frozenset(
        name for table in query.find_all(exp.Table) if (name := table.sql(DIALECT).split(" AS ")[0].strip("`").lower()) not in own
    )


def output_columns(query: exp.Query) -> tuple[str, ...] | None:
    """The names of the result's columns; None where a star hides them."""
    names = query.named_selects
    return None if any(select.is_star for select in query.selects) else tuple(names)


def is_row_by_row(query: exp.Query, alias: str) -> bool:
    """Whether every changed row of the alias makes its result rows by itself."""
    try:
        carrying_changes(query, alias)
    except _NotRowByRowError:
        return False
    return True


def changes_query(query: exp.Query, alias: str) -> str:
    """The query with `CHANGE_COLUMNS` of one alias; branches of a UNION ALL that do not read it are left out."""
    return carrying_changes(query, alias).sql(DIALECT)


def carrying_changes(query: exp.Query, alias: str) -> exp.Query:
    """A copy of the query's syntax that carries the alias's change columns to the result."""
    copy = query.copy()
    if sum(1 for table in copy.find_all(exp.Table) if table.name.lower() == alias.lower()) != 1:
        raise _NotRowByRowError
    return _carry(copy, alias.lower(), _with_tables(copy))


class _NotRowByRowError(Exception):
    """The rows of an alias cannot be followed through the query."""


def _with_tables(query: exp.Query) -> dict[str, exp.Query]:
    """The query's WITH tables by name."""
    return {cte.alias_or_name.lower(): cte.this for cte in query.find_all(exp.CTE)}


def _carry(query: exp.Expr, alias: str, with_tables: dict[str, exp.Query]) -> exp.Query:
    """The query with the change columns, changed in place; a UNION ALL is cut down to the branch that reads the alias."""
    if isinstance(query, exp.Subquery):
        return _carry(query.this, alias, with_tables)
    if isinstance(query, exp.Union):
        return _branch(query, alias, with_tables)
    if not isinstance(query, exp.Select):
        raise _NotRowByRowError
    _check_row_by_row(query)
    qualifier, inner = _side_that_reads(query, alias, with_tables)
    source = FEED_COLUMNS if inner is None else CHANGE_COLUMNS
    if inner is not None:
        replaced = _carry(inner, alias, with_tables)
        if replaced is not inner:
            inner.replace(replaced)
        if _has_star_of(query, qualifier):
            return query
    columns = [exp.alias_(exp.column(name, table=qualifier), carried) for name, carried in zip(source, CHANGE_COLUMNS, strict=True)]
    query.set("expressions", [*query.expressions, *columns])
    return query


def _branch(union: exp.Union, alias: str, with_tables: dict[str, exp.Query]) -> exp.Query:
    if union.args.get("distinct", True) or union.args.get("limit") or union.args.get("order"):
        raise _NotRowByRowError
    sides = [side for side in (union.left, union.right) if _reads(side, alias, with_tables)]
    if len(sides) != 1:
        raise _NotRowByRowError
    kept = _carry(sides[0], alias, with_tables)
    if (own := union.args.get("with_") or union.args.get("with")) is not None:
        kept.set("with_" if "with_" in kept.arg_types else "with", own)
    return kept


def _check_row_by_row(select: exp.Select) -> None:
    clauses = ("group", "distinct", "having", "qualify", "limit", "offset", "windows")
    if any(select.args.get(clause) for clause in clauses):
        raise _NotRowByRowError
    for projection in select.expressions:
        for node in projection.find_all(exp.AggFunc, exp.Window):
            if node.find_ancestor(exp.Select) is select:
                raise _NotRowByRowError


def _side_that_reads(select: exp.Select, alias: str, with_tables: dict[str, exp.Query]) -> tuple[str, exp.Query | None]:
    """The name by which the query knows the alias or what reads it, and that inner query; not on a side that may be empty."""
    start = select.args.get("from_") or select.args.get("from")
    joins = select.args.get("joins") or []
    sides = [(start.this if start else None, None), *((join.this, join) for join in joins)]
    for place, (source, join) in enumerate(sides):
        if source is None or not _reads(source, alias, with_tables):
            continue
        if any(_may_be_empty(later, is_left=True) for _, later in sides[place + 1 :] if later is not None):
            raise _NotRowByRowError
        if join is not None and _may_be_empty(join, is_left=False):
            raise _NotRowByRowError
        if isinstance(source, exp.Subquery):
            return source.alias_or_name, source.this
        if isinstance(source, exp.Table):
            inner = with_tables.get(source.name.lower())
            return source.alias_or_name, inner if source.name.lower() != alias else None
    raise _NotRowByRowError  # in a subquery of a condition, where no row of it reaches the result


def _may_be_empty(join: exp.Join, *, is_left: bool) -> bool:
    """Whether a result row may lack a row of this side of the join, or whether the side only filters."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if side == "FULL" or ("OUTER" in kind and not side):
        return True
    if kind in {"SEMI", "ANTI"}:
        return not is_left
    return side == ("RIGHT" if is_left else "LEFT")


def _reads(node: exp.Expr, alias: str, with_tables: dict[str, exp.Query]) -> bool:
    """Whether the alias is read below this piece of the query, WITH tables included."""
    for table in node.find_all(exp.Table):
        name = table.name.lower()
        if name == alias or (name in with_tables and with_tables[name] is not node and _reads(with_tables[name], alias, with_tables)):
            return True
    return False


def _has_star_of(select: exp.Select, qualifier: str) -> bool:
    """Whether a star of the query carries the columns of this side."""
    return any(
        isinstance(each, exp.Star)
        or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star) and each.table.lower() == qualifier.lower())
        for each in select.expressions
    )
