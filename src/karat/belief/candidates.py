"""Each source's candidate: its last statement on each attribute that it asserted itself, and on whether the thing is there.

A source's *life* with an entity ends when it deletes it; what it says after that begins a new one. Only its present life
counts, but a source whose last word is a delete still stands behind the life that this ended.

    CORE  name=Ann @1   delete @3                   at 4: Ann, gone
    CORE  name=Ann @1   delete @3   status=A @5     at 6: no candidate for the name, status A

The same expressions serve windows (the last statement so far) and aggregates (the last of all).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pyspark.sql import DataFrame

from karat.config.rules import Authority, Group, Rule
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.sql import Sql, literal, some, texts
from karat.temporal.whose import said, says_all

FIRST_NEW: Final = "__karat_first_new"
"""Working: the first time at which anything new about the entity takes effect; null where everything is derived anew."""
NEW: Final = "__karat_new"
"""Working: whether the statement was not known before."""
ENTERED: Final = "__karat_entered"
"""Working: whether any source that counts has said anything that is believed."""
_LIFE: Final = "__karat_life"
_RETURNS: Final = "__karat_returns"
_SAYS_ALL: Final = "__karat_says_all"

LastOf = Callable[[Sql, Sql], Sql]
"""The value of the last statement for which the condition holds: (condition, value)."""


def believable(statements: DataFrame, schema: EntitySchema) -> DataFrame:
    """Of statements the columns that a belief depends on. Grain: unchanged."""
    owned = (c.BK, c.SK, c.AT, c.PLACE, c.SOURCE_SYSTEM, c.RANK, c.IS_DELETED, c.ASSERTED, c.RECORD_HASH, c.BATCH_SEQ, FIRST_NEW)
    return statements.select(*map(c.col, (*schema.key, *schema.attributes, *owned)))


def last_so_far(condition: Sql, value: Sql) -> Sql:
    """The last one up to the row itself."""
    so_far = f"(PARTITION BY {c.BK} ORDER BY {c.PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return f"last(if({condition}, {value}, NULL), true) OVER {so_far}"


def last_of_all(condition: Sql, value: Sql) -> Sql:
    """The last one of a group."""
    return f"max_by({value}, {c.PLACE}) FILTER (WHERE {condition})"


def with_lives(statements: DataFrame, schema: EntitySchema) -> DataFrame:
    """Each statement with the life it belongs to; a delete belongs to the life it ends. Grain: unchanged."""
    several = f", {c.SOURCE_SYSTEM}" if len(schema.sources) > 1 else ""  # one source alone lies in the entity's own order
    own = f"(PARTITION BY {c.BK}{several} ORDER BY {c.PLACE})"
    returns = f"NOT {c.IS_DELETED} AND coalesce(lag({c.IS_DELETED}) OVER {own}, false)"
    marked = statements.selectExpr("*", f"{returns} AS {_RETURNS}", f"{says_all(schema.attributes)} AS {_SAYS_ALL}")
    return marked.selectExpr("*", f"count_if({_RETURNS}) OVER {own} AS {_LIFE}")


def candidate_columns(schema: EntitySchema, rule: Rule, last: LastOf) -> list[Sql]:
    """Every candidate that may count, as columns; for `selectExpr` or `agg`."""
    lives = [f"{last(_is(source), _LIFE)} AS {_life(index)}" for index, source in enumerate(schema.sources)]
    lifecycle = [
        f"{last(_is(source), _lifecycle(rule.delete, source))} AS {_lifecycle_column(schema, source)}"
        for source in allowed_sources(schema, rule.delete)
    ]
    words = [
        f"{last(f'{_is(source)} AND NOT {c.IS_DELETED} AND {_says(attribute)}', _candidate(attribute, group, source))} AS {column}"
        for attribute, group in decided_attributes(schema, rule).items()
        for source, column in _candidate_columns(schema, attribute, group)
    ]
    return [*lives, *lifecycle, *words, f"{last(_enters(schema, rule), 'true')} AS {ENTERED}"]


def latest_new(schema: EntitySchema, rule: Rule) -> list[Sql]:
    """The last new statement that may have moved each attribute, and whether the thing is there, as columns."""
    whose = f"named_struct('source_system', {c.SOURCE_SYSTEM}, 'at', {c.AT}, 'record_hash', {c.RECORD_HASH}, 'is_new', {NEW})"
    moves = {
        attribute: f"{_by(allowed_sources(schema, group))} AND ({c.IS_DELETED} OR {_RETURNS} OR {_says(attribute)})"
        for attribute, group in decided_attributes(schema, rule).items()
    }
    moves[ENTERED] = _enters(schema, rule)
    if deciding := allowed_sources(schema, rule.delete):
        moves[c.IS_DELETED] = _by(deciding)
        moves[ENTERED] = some([moves[ENTERED], moves[c.IS_DELETED]])
    return [f"{last_so_far(f'{NEW} AND ({condition})', whose)} AS {latest_new_on(name)}" for name, condition in moves.items()]


def latest_new_on(attribute: str) -> Sql:
    """The column that holds the last new statement about an attribute."""
    return c.quoted(f"__karat_latest_new_{attribute}")


def candidates(schema: EntitySchema, attribute: str, group: Group) -> dict[str, Sql]:
    """Source to its candidate for the attribute where it counts, else null."""
    found = {}
    for source, candidate in _candidate_columns(schema, attribute, group):
        counts = f"{candidate}.life = {_life(schema.sources.index(source))}"
        if group.nulls == "skip":  # no candidate at all: the source does not fall back to what it said before the null
            counts += f" AND {candidate}.value IS NOT NULL"
        found[source] = f"if({counts}, {candidate}, NULL)"
    return found


def winner(competing: Sequence[Sql], by: str) -> Sql:
    """The candidate that counts; null when there is none. Each is named by its place."""
    if not competing:
        return "NULL"
    if len(competing) == 1:
        return competing[0]
    strongest = f"greatest({', '.join(_strength(candidate, by) for candidate in competing)})"
    return f"coalesce({', '.join(f'if({candidate}.place = {strongest}.place, {candidate}, NULL)' for candidate in competing)})"


def lifecycle_winner(schema: EntitySchema, rule: Rule) -> Sql:
    """The statement that decides whether the entity is there; null without a statement of a source that may decide it."""
    return winner([_lifecycle_column(schema, source) for source in allowed_sources(schema, rule.delete)], rule.delete.by)


def allowed_sources(schema: EntitySchema, group: Group | Authority) -> list[str]:
    """The sources that count: those of the rule that have statements, or all."""
    return [source for source in schema.sources if group.sources is None or source in group.sources]


def decided_attributes(schema: EntitySchema, rule: Rule) -> dict[str, Group]:
    """Attribute to the group it is decided in, where any of its sources has statements."""
    return {
        attribute: group
        for group in rule.groups.values()
        if allowed_sources(schema, group)
        for attribute in group.attributes
        if attribute in schema.attributes
    }


def _strength(candidate: Sql, by: str) -> Sql:
    """What candidates are compared by: rank and time as the rule has it, then the order of statements."""
    first = ("rank", "at") if by == "precedence" else ("at", "rank")
    fields = ", ".join(f"'{name}', {candidate}.{name}" for name in (*first, "feed_rank", "place"))
    return f"if({candidate} IS NULL, NULL, named_struct({fields}))"


def _candidate(attribute: str, group: Group, source: str) -> Sql:
    return f"named_struct({_common(group, source)}, 'life', {_LIFE}, 'value', {c.quoted(attribute)})"


def _lifecycle(authority: Authority, source: str) -> Sql:
    return f"named_struct({_common(authority, source)}, 'gone', {c.IS_DELETED})"


def _says(attribute: str) -> Sql:
    return f"({_SAYS_ALL} OR {said(attribute)})"


def _common(group: Group | Authority, source: str) -> Sql:
    rank = c.RANK if group.sources is None else str(group.sources[source])
    return (
        f"'rank', {rank}, 'at', {c.AT}, 'feed_rank', {c.RANK}, 'place', {c.PLACE}, 'source_system', {c.SOURCE_SYSTEM},"
        f" 'record_hash', {c.RECORD_HASH}, 'is_new', {NEW}"
    )


def _enters(schema: EntitySchema, rule: Rule) -> Sql:
    """Whether a statement brings its entity into the belief: a source that counts asserts something, be it null."""
    return some(
        f"NOT {c.IS_DELETED} AND {_by(sources)} AND arrays_overlap({c.ASSERTED}, {texts(group.attributes)})"
        for group in rule.groups.values()
        if (sources := allowed_sources(schema, group))
    )


def _candidate_columns(schema: EntitySchema, attribute: str, group: Group) -> list[tuple[str, Sql]]:
    place = list(schema.attributes).index(attribute)
    return [(source, f"__karat_candidate_{place}_{schema.sources.index(source)}") for source in allowed_sources(schema, group)]


def _life(source: int) -> Sql:
    return f"__karat_life_{source}"


def _lifecycle_column(schema: EntitySchema, source: str) -> Sql:
    return f"__karat_lifecycle_{schema.sources.index(source)}"


def _is(source: str) -> Sql:
    return f"{c.SOURCE_SYSTEM} = {literal(source)}"


def _by(sources: Iterable[str]) -> Sql:
    return f"{c.SOURCE_SYSTEM} IN ({', '.join(map(literal, sources))})"
