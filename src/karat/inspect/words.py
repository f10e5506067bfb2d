"""Whose word stood when: what each source held true of one attribute over time, and what was believed. No JVM."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from karat.config.rules import Rule
from karat.inspect.belief import Question
from karat.reference import Statement
from karat.reference.belief import enters, known, of_source, same, until, winner, word_on
from karat.reference.rules import IS_DELETED, allows
from karat.reference.statements import by_entity, is_delete

MOST = 60
"""So many moments, the latest, are told: a picture of more would show nothing."""

Told = tuple[str, Any, bool]
"""Whose word, its value, and whether the entity is gone meanwhile."""


@dataclass(frozen=True)
class Spell:
    """A stretch of time, without end if it lasts, over which a word stands."""

    source: str
    value: Any
    gone: bool
    """Whether the source, or for what is believed the belief, holds the entity deleted."""
    start: datetime
    end: datetime | None


@dataclass(frozen=True)
class Words:
    """The words on one attribute, or on whether the entity is deleted."""

    by_source: Mapping[str, Sequence[Spell]]
    """All who had spoken, by name."""
    unheard: frozenset[str]
    """Those of them whom the rule does not hear on this."""
    believed: Sequence[Spell]


def words(question: Question, attribute: str) -> Words:
    """The words on the attribute as far as they were known; none without a rule."""
    rule = question.rule
    said = [told for about in by_entity(known(question.rows, question.known_at), question.terms).values() for told in about]
    if rule is None or not said:
        return Words({}, frozenset(), ())
    instants = sorted({statement.at for statement in said})[-MOST:]
    sources = sorted({statement.source for statement in said})
    heard = {instant: until(said, instant) for instant in instants}
    lanes = {
        source: _spells((instant, _held(of_source(heard[instant], source), source, attribute)) for instant in instants)
        for source in sources
    }
    believed = _spells((instant, _believed(heard[instant], rule, attribute)) for instant in instants)
    decider = rule.on(attribute)[1]
    return Words(lanes, frozenset(source for source in sources if not allows(decider, source)), believed)


def _held(own: Sequence[Statement], source: str, attribute: str) -> Told | None:
    """What the source stands behind once it has said this."""
    if not own:
        return None
    gone = is_delete(own[-1].row)
    if attribute == IS_DELETED:
        return source, gone, gone
    word = word_on(attribute, own)
    return None if word is None else (source, word.row.get(attribute), gone)


def _believed(heard: Sequence[Statement], rule: Rule, attribute: str) -> Told | None:
    """What is believed once this has been said, and because of whom."""
    if not any(enters(statement, rule) for statement in heard):
        return None
    verdict = winner(heard, IS_DELETED, rule)
    gone = verdict is not None and is_delete(verdict.row)
    won = verdict if attribute == IS_DELETED else winner(heard, attribute, rule)
    value = gone if attribute == IS_DELETED else won and won.row.get(attribute)
    return won.source if won else "", value, gone


def _spells(moments: Iterable[tuple[datetime, Told | None]]) -> list[Spell]:
    """Moments to stretches: what only goes on is no new one."""
    kept: list[tuple[datetime, Told | None]] = []
    for instant, told in moments:
        if not kept or not _alike(kept[-1][1], told):
            kept.append((instant, told))
    ends = [later for _, (later, _) in pairwise(kept)] + [None]
    return [Spell(*told, start, end) for (start, told), end in zip(kept, ends, strict=True) if told is not None]


def _alike(one: Told | None, other: Told | None) -> bool:
    if one is None or other is None:
        return one is other
    return one[0] == other[0] and one[2] == other[2] and same(one[1], other[1])
