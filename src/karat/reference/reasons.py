"""Why one value is believed: the statement that won, and what kept every other from winning."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from karat.config.rules import Authority, By, Group, Rule, in_force
from karat.reference.belief import Said, asserts, known, life, of_source, until, winner, word_on
from karat.reference.rules import IS_DELETED, allows, standing
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

Reason = Literal[
    "not yet known",  # it arrived after the knowledge asked for; a sweep or return also if only something that arrived later makes it count
    "not yet valid",  # it speaks of a later time
    "not allowed",  # the rule does not hear its source here
    "deletion",  # a delete carries no word on attributes
    "inherited only",  # its row merely carries the attribute
    "earlier life",  # its source deleted the entity since and came back
    "superseded",  # its source has said something later
    "null",  # its source's word is null, and nulls do not compete
    "rank",  # it ranks lower than the winner
    "time",  # it is older than the winner
    "tie",  # only tiebreakers are between it and the winner
]


@dataclass(frozen=True)
class Loser:
    """A statement that is not believed; its value is what its row carries, said or inherited."""

    statement: Statement
    value: Any
    reason: Reason


@dataclass(frozen=True)
class Explanation:
    """Why the attribute has its value: of all statements about the entity, each once and in order, one at most won."""

    attribute: str
    value: Any
    winner: Statement | None
    losers: tuple[Loser, ...]
    rule_version: int
    group: str | None
    """The rule's group; `delete` for whether the entity is deleted, none for an attribute nobody may say."""
    by: By | None


def explained(  # noqa: PLR0913  (the question has two times)
    rows: Iterable[Row], terms: EntitySchema, rules: Iterable[Rule], *, attribute: str, known_at: datetime, valid_at: datetime | None = None
) -> Explanation | None:
    """The explanation of one attribute, or of `is_deleted`, from the rows of one entity and its sources' sweeps; none without a rule."""
    rule = in_force(rules, known_at)
    if rule is None:
        return None
    evidence = known(rows)
    received, ever = _statements(known(evidence, known_at), terms), _statements(evidence, terms)
    heard = until(received, valid_at)
    won = winner(heard, attribute, rule)
    standings = {source: _Voice.of(source, heard, attribute) for source in {statement.source for statement in heard}}
    valid = set(map(_identity, heard))
    reasons: list[tuple[Statement, Reason]] = []
    for statement in received:
        if _identity(statement) not in valid:
            reasons.append((statement, "not yet valid"))
        elif statement is not won:
            reasons.append((statement, _reason(statement, attribute, rule, standings[statement.source], won)))
    identities = {_identity(statement) for statement in received}
    reasons += [(statement, "not yet known") for statement in ever if _identity(statement) not in identities]
    losers = [Loser(statement, _value(statement, attribute), reason) for statement, reason in reasons]
    losers.sort(key=lambda loser: loser.statement.order)
    group, decider = rule.on(attribute)
    return Explanation(attribute, _value(won, attribute), won, tuple(losers), rule.version, group, decider.by if decider else None)


@dataclass(frozen=True)
class _Voice:
    """What one source stands behind: the statements of its last life, and among them its word."""

    lived: frozenset[tuple[object, ...]]
    word: Statement | None
    last: Statement

    @classmethod
    def of(cls, source: str, heard: Said, attribute: str) -> "_Voice":
        own = of_source(heard, source)
        return cls(frozenset(map(_identity, life(own))), word_on(attribute, own), own[-1])


def _reason(statement: Statement, attribute: str, rule: Rule, voice: _Voice, won: Statement | None) -> Reason:
    """The first thing that kept a known and valid statement from winning."""
    _, decider = rule.on(attribute)
    if decider is None or not allows(decider, statement.source):
        return "not allowed"
    hurdles: dict[Reason, bool]
    if isinstance(decider, Group):
        hurdles = {
            "deletion": is_delete(statement.row),
            "inherited only": not asserts(statement, attribute),
            "earlier life": _identity(statement) not in voice.lived,
            "superseded": statement is not voice.word,
            "null": decider.nulls == "skip" and statement.row.get(attribute) is None,
        }
    else:
        hurdles = {"superseded": statement is not voice.last}
    stumbled = next((reason for reason, stops in hurdles.items() if stops), None)
    return stumbled or (_margin(statement, won, decider) if won else "tie")


def _margin(loser: Statement, won: Statement, decider: Group | Authority) -> Reason:
    """What decided between two that competed."""
    criteria: tuple[Reason, Reason] = ("rank", "time") if decider.by == "precedence" else ("time", "rank")
    pairs = zip(criteria, standing(loser, decider), standing(won, decider), strict=False)  # the rest of a standing are tiebreakers
    return next((criterion for criterion, one, other in pairs if one != other), "tie")


def _value(statement: Statement | None, attribute: str) -> Any:  # noqa: ANN401 - whatever a row holds
    if attribute == IS_DELETED:
        return statement is not None and is_delete(statement.row)
    return statement and statement.row.get(attribute)


def _statements(rows: Iterable[Row], terms: EntitySchema) -> list[Statement]:
    return [statement for said in by_entity(rows, terms).values() for statement in said]


def _identity(statement: Statement) -> tuple[object, ...]:
    """A snapshot row and its presence share a hash."""
    return statement.source, statement.row["statement_hash"], statement.only_if_live
