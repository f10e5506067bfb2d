"""What each source has to say: its last word on each attribute it authored, and on whether the thing is there.

A source's *life* with an entity ends when it deletes it; what it says after that begins a new one. It is heard from its
present life only, but one whose last word is a delete still stands behind the life that this ended.

    CORE  name=Ann @1   delete @3                   at 4: Ann, gone
    CORE  name=Ann @1   delete @3   status=A @5     at 6: no word on the name, status A

Words are picked by an expression that the caller chooses: the last one so far (a window) or the last of all (an aggregate).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from karat.config.rules import Authority, Group, Rule
from karat.temporal.columns import (
    ASSERTED,
    AT,
    BATCH_SEQ,
    BK,
    IS_DELETED,
    PLACE,
    RANK,
    RECORD_HASH,
    SK,
    SOURCE_SYSTEM,
    Names,
    col,
    quoted,
)
from karat.temporal.sql import Sql, literal, some, texts
from karat.temporal.whose import said, says_all

LIFE = "__karat_life"
"""Working: the number of the life a statement belongs to, within its source."""
BACK = "__karat_back"
"""Working: whether the source speaks of the thing again after it had deleted it."""
SAYS_ALL = "__karat_says_all"
"""Working: whether the statement speaks of every attribute; most do, and then each need not be looked for."""
NEW = "__karat_new"
"""Working: whether the statement was not known before."""
ENTERED = "__karat_entered"
"""Working: whether anybody who is heard has said anything that is believed."""

Pick = Callable[[Sql, Sql], Sql]
"""The value of the last statement for which the condition holds: (condition, value)."""


@dataclass(frozen=True)
class Subject:
    """What a belief is about: the entity's columns, and everybody who has ever spoken of it."""

    key: Names
    attributes: Mapping[str, T.DataType]
    sources: Names


def spoken(statements: DataFrame, subject: Subject) -> DataFrame:
    """Of statements what a belief can hear. Grain: unchanged."""
    heard_of = (*subject.key, *subject.attributes, BK, SK, AT, PLACE, SOURCE_SYSTEM, RANK, IS_DELETED, ASSERTED, RECORD_HASH, BATCH_SEQ)
    return statements.select(*map(col, heard_of))


def so_far(condition: Sql, value: Sql) -> Sql:
    """The last one up to the row itself."""
    upto = f"(PARTITION BY {BK} ORDER BY {PLACE} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    return f"last(if({condition}, {value}, NULL), true) OVER {upto}"


def of_all(condition: Sql, value: Sql) -> Sql:
    """The last one of a group."""
    return f"max_by({value}, {PLACE}) FILTER (WHERE {condition})"


def with_lives(statements: DataFrame, subject: Subject) -> DataFrame:
    """Each statement with the life it belongs to; a delete belongs to the life it ends. Grain: unchanged."""
    several = f", {SOURCE_SYSTEM}" if len(subject.sources) > 1 else ""  # what one says alone lies in the entity's own order
    own = f"(PARTITION BY {BK}{several} ORDER BY {PLACE})"
    back = f"NOT {IS_DELETED} AND coalesce(lag({IS_DELETED}) OVER {own}, false)"
    marked = statements.selectExpr("*", f"{back} AS {BACK}", f"{says_all(subject.attributes)} AS {SAYS_ALL}")
    return marked.selectExpr("*", f"count_if({BACK}) OVER {own} AS {LIFE}")


def picked(subject: Subject, rule: Rule, pick: Pick) -> list[Sql]:
    """Every word that may count, as columns; for `selectExpr` or `agg`."""
    lives = [f"{pick(_is(source), LIFE)} AS {_life(index)}" for index, source in enumerate(subject.sources)]
    ends = [f"{pick(_is(source), _end(rule.delete, source))} AS {_lifecycle(subject, source)}" for source in heard(subject, rule.delete)]
    words = [
        f"{pick(f'{_is(source)} AND NOT {IS_DELETED} AND {_says(attribute)}', _word(attribute, group, source))} AS {word}"
        for attribute, group in spoken_of(subject, rule).items()
        for source, word in _words(subject, attribute, group)
    ]
    return [*lives, *ends, *words, f"{pick(_enters(subject, rule), 'true')} AS {ENTERED}"]


def news(subject: Subject, rule: Rule) -> list[Sql]:
    """The last new statement that may have moved each attribute, and whether the thing is there, as columns."""
    whose = f"named_struct('source_system', {SOURCE_SYSTEM}, 'at', {AT}, 'record_hash', {RECORD_HASH}, 'is_new', {NEW})"
    moves = {
        attribute: f"{_by(heard(subject, group))} AND ({IS_DELETED} OR {BACK} OR {_says(attribute)})"
        for attribute, group in spoken_of(subject, rule).items()
    }
    moves[ENTERED] = _enters(subject, rule)
    if having_a_say := heard(subject, rule.delete):
        moves[IS_DELETED] = _by(having_a_say)
        moves[ENTERED] = some([moves[ENTERED], moves[IS_DELETED]])
    return [f"{so_far(f'{NEW} AND ({condition})', whose)} AS {last_new(name)}" for name, condition in moves.items()]


def last_new(attribute: str) -> Sql:
    """The column that holds the last new statement about an attribute."""
    return quoted(f"__karat_news_{attribute}")


def candidates(subject: Subject, attribute: str, group: Group) -> dict[str, Sql]:
    """Source to its word on the attribute where it counts, else null."""
    found = {}
    for source, word in _words(subject, attribute, group):
        counts = f"{word}.life = {_life(subject.sources.index(source))}"
        if group.nulls == "skip":  # no word at all; what the source said before the null is not its word any more
            counts += f" AND {word}.value IS NOT NULL"
        found[source] = f"if({counts}, {word}, NULL)"
    return found


def winner(words: Iterable[Sql], by: str) -> Sql:
    """The word that counts; null when nobody has one. Words are told apart by their place."""
    competing = list(words)
    if not competing:
        return "NULL"
    if len(competing) == 1:
        return competing[0]
    best = greatest([_strength(word, by) for word in competing])
    return f"coalesce({', '.join(f'if({word}.place = {best}.place, {word}, NULL)' for word in competing)})"


def end_word(subject: Subject, rule: Rule) -> Sql:
    """The word that settles whether the thing is there; null when nobody with a say has spoken."""
    return winner([_lifecycle(subject, source) for source in heard(subject, rule.delete)], rule.delete.by)


def heard(subject: Subject, group: Group | Authority) -> list[str]:
    """The sources that count: those the rule names that have ever spoken, or all."""
    return [source for source in subject.sources if group.sources is None or source in group.sources]


def spoken_of(subject: Subject, rule: Rule) -> dict[str, Group]:
    """Attribute to the group it is decided in, where anybody who is heard there has ever spoken."""
    return {
        attribute: group
        for group in rule.groups.values()
        if heard(subject, group)
        for attribute in group.attributes
        if attribute in subject.attributes
    }


def greatest(values: Sequence[Sql]) -> Sql:
    """The greatest of them, nulls aside; SQL's own function wants at least two."""
    return f"greatest({', '.join(values)})" if len(values) > 1 else values[0]


def _strength(word: Sql, by: str) -> Sql:
    """What words are compared by: rank and time as the rule has it, then the order of statements."""
    first = ("rank", "at") if by == "precedence" else ("at", "rank")
    fields = ", ".join(f"'{name}', {word}.{name}" for name in (*first, "feed_rank", "place"))
    return f"if({word} IS NULL, NULL, named_struct({fields}))"


def _word(attribute: str, group: Group, source: str) -> Sql:
    return f"named_struct({_common(group, source)}, 'life', {LIFE}, 'value', {quoted(attribute)})"


def _end(authority: Authority, source: str) -> Sql:
    return f"named_struct({_common(authority, source)}, 'gone', {IS_DELETED})"


def _says(attribute: str) -> Sql:
    return f"({SAYS_ALL} OR {said(attribute)})"


def _common(group: Group | Authority, source: str) -> Sql:
    rank = RANK if group.sources is None else str(group.sources[source])
    return (
        f"'rank', {rank}, 'at', {AT}, 'feed_rank', {RANK}, 'place', {PLACE}, 'source_system', {SOURCE_SYSTEM},"
        f" 'record_hash', {RECORD_HASH}, 'is_new', {NEW}"
    )


def _enters(subject: Subject, rule: Rule) -> Sql:
    """Whether a statement brings its entity into the belief: somebody who is heard asserts something, be it null."""
    return some(
        f"NOT {IS_DELETED} AND {_by(sources)} AND arrays_overlap({ASSERTED}, {texts(group.attributes)})"
        for group in rule.groups.values()
        if (sources := heard(subject, group))
    )


def _words(subject: Subject, attribute: str, group: Group) -> list[tuple[str, Sql]]:
    place = list(subject.attributes).index(attribute)
    return [(source, f"__karat_word_{place}_{subject.sources.index(source)}") for source in heard(subject, group)]


def _life(source: int) -> Sql:
    return f"__karat_life_{source}"


def _lifecycle(subject: Subject, source: str) -> Sql:
    return f"__karat_lifecycle_{subject.sources.index(source)}"


def _is(source: str) -> Sql:
    return f"{SOURCE_SYSTEM} = {literal(source)}"


def _by(sources: Iterable[str]) -> Sql:
    return f"{SOURCE_SYSTEM} IN ({', '.join(map(literal, sources))})"
