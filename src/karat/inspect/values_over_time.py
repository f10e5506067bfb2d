"""One attribute over time: the candidate of each source, and what was believed. No JVM."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from karat.config.rules import Rule
from karat.inspect.belief import Question
from karat.reference import Statement
from karat.reference.belief import candidate_of, enters, known, of_source, same, until, winner
from karat.reference.rules import IS_DELETED, allows
from karat.reference.statements import by_entity, is_delete

MOST = 60
"""The number of instants that are shown, the latest ones: more cannot be read in a picture."""

State = tuple[str, Any, bool]
"""The source of a value, the value, and whether the entity is deleted."""


@dataclass(frozen=True)
class ValuePeriod:
    """A period during which a source, or the belief, has one value; without end while it lasts."""

    source: str
    value: Any
    gone: bool
    """Whether the source, or the belief, holds the entity deleted."""
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class ValuesOverTime:
    """The values of one attribute over time, or whether the entity is deleted."""

    by_source: Mapping[str, Sequence[ValuePeriod]]
    """All sources with statements about the entity, by name."""
    not_allowed: frozenset[str]
    """The sources that the rule does not allow on this attribute."""
    believed: Sequence[ValuePeriod]


def values_over_time(question: Question, attribute: str) -> ValuesOverTime:
    """The values of the attribute over time, as far as they were known; nothing without a rule."""
    rule = question.rule
    by_key = by_entity(known(question.rows, question.known_at), question.schema)
    said = [statement for about in by_key.values() for statement in about]
    if rule is None or not said:
        return ValuesOverTime({}, frozenset(), ())
    instants = sorted({statement.at for statement in said})[-MOST:]
    sources = sorted({statement.source for statement in said})
    valid = {instant: until(said, instant) for instant in instants}
    lanes = {
        source: _periods((instant, _held(of_source(valid[instant], source), source, attribute)) for instant in instants)
        for source in sources
    }
    believed = _periods((instant, _believed(valid[instant], rule, attribute)) for instant in instants)
    decider = rule.on(attribute)[1]
    return ValuesOverTime(lanes, frozenset(source for source in sources if not allows(decider, source)), believed)


def _held(own: Sequence[Statement], source: str, attribute: str) -> State | None:
    """The source's candidate after these statements."""
    if not own:
        return None
    gone = is_delete(own[-1].row)
    if attribute == IS_DELETED:
        return source, gone, gone
    candidate = candidate_of(own, attribute)
    return None if candidate is None else (source, candidate.row.get(attribute), gone)


def _believed(said: Sequence[Statement], rule: Rule, attribute: str) -> State | None:
    """What is believed after these statements, and its source."""
    if not any(enters(statement, rule) for statement in said):
        return None
    lifecycle = winner(said, IS_DELETED, rule)
    gone = lifecycle is not None and is_delete(lifecycle.row)
    won = lifecycle if attribute == IS_DELETED else winner(said, attribute, rule)
    value = gone if attribute == IS_DELETED else won and won.row.get(attribute)
    return won.source if won else "", value, gone


def _periods(moments: Iterable[tuple[datetime, State | None]]) -> list[ValuePeriod]:
    """Periods from instants; equal states that follow each other are one period."""
    changes: list[tuple[datetime, State | None]] = []
    for instant, state in moments:
        if not changes or not _alike(changes[-1][1], state):
            changes.append((instant, state))
    ends = [later for _, (later, _) in pairwise(changes)] + [None]
    return [ValuePeriod(*state, start, end) for (start, state), end in zip(changes, ends, strict=True) if state is not None]


def _alike(one: State | None, other: State | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[0] == other[0] and one[2] == other[2] and same(one[1], other[1])
