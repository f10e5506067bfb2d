"""Why one value is believed: the statement that won, and why every other statement did not."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from karat.config.rules import Authority, By, Group, Rule, in_force
from karat.reference.belief import Said, asserts, candidate_of, known, life, of_source, until, winner
from karat.reference.rules import IS_DELETED, allows, rank_key
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

Reason = Literal[
    "not yet known",  # it arrived after `known_at`, or only counts because of a statement that arrived after it
    "not yet valid",  # its valid time is after `valid_at`
    "not allowed",  # the rule does not consider its source for this attribute
    "deletion",  # a delete asserts no attributes
    "inherited only",  # its row has the attribute only by inheritance
    "earlier life",  # its source deleted the entity afterwards and came back
    "superseded",  # its source has a later statement
    "null",  # it asserts null, and nulls do not compete
    "rank",  # it ranks lower than the winner
    "time",  # it is older than the winner
    "tie",  # only tiebreakers decided between it and the winner
]


@dataclass(frozen=True)
class Loser:
    """A statement that is not believed, with the value in its row, asserted or inherited."""

    statement: Statement
    value: Any
    reason: Reason


@dataclass(frozen=True)
class Explanation:
    """Why the attribute has its value: the winner, if any, and all other statements about the entity in order."""

    attribute: str
    value: Any
    winner: Statement | None
    losers: tuple[Loser, ...]
    rule_version: int
    group: str | None
    """The rule's group; `delete` for whether the entity is deleted, None for an attribute that no source is allowed on."""
    by: By | None


def explained(  # noqa: PLR0913  (the question has two times)
    rows: Iterable[Row],
    schema: EntitySchema,
    rules: Iterable[Rule],
    *,
    attribute: str,
    known_at: datetime,
    valid_at: datetime | None = None,
) -> Explanation | None:
    """The explanation of one attribute, or of `is_deleted`; None where no rule was in force.

    `rows` are the assertions about one entity and the source-level statements of its sources.
    """
    rule = in_force(rules, known_at)
    if rule is None:
        return None
    evidence = known(rows)
    received, ever = _statements(known(evidence, known_at), schema), _statements(evidence, schema)
    considered = until(received, valid_at)
    won = winner(considered, attribute, rule)
    sources = {source: _Source.of(source, considered, attribute) for source in {statement.source for statement in considered}}
    valid = set(map(_identity, considered))
    reasons: list[tuple[Statement, Reason]] = []
    for statement in received:
        if _identity(statement) not in valid:
            reasons.append((statement, "not yet valid"))
        elif statement is not won:
            reasons.append((statement, _reason(statement, attribute, rule, sources[statement.source], won)))
    identities = {_identity(statement) for statement in received}
    reasons += [(statement, "not yet known") for statement in ever if _identity(statement) not in identities]
    losers = [Loser(statement, _value(statement, attribute), reason) for statement, reason in reasons]
    losers.sort(key=lambda loser: loser.statement.order)
    group, decider = rule.on(attribute)
    return Explanation(attribute, _value(won, attribute), won, tuple(losers), rule.version, group, decider.by if decider else None)


@dataclass(frozen=True)
class _Source:
    """The statements of one source that count, and among them its candidate."""

    life: frozenset[tuple[object, ...]]
    candidate: Statement | None
    last: Statement

    @classmethod
    def of(cls, source: str, considered: Said, attribute: str) -> "_Source":
        own = of_source(considered, source)
        return cls(frozenset(map(_identity, life(own))), candidate_of(own, attribute), own[-1])


def _reason(statement: Statement, attribute: str, rule: Rule, source: _Source, won: Statement | None) -> Reason:
    """The first reason for which a known and valid statement did not win."""
    _, decider = rule.on(attribute)
    if decider is None or not allows(decider, statement.source):
        return "not allowed"
    hurdles: dict[Reason, bool]
    if isinstance(decider, Group):
        hurdles = {
            "deletion": is_delete(statement.row),
            "inherited only": not asserts(statement, attribute),
            "earlier life": _identity(statement) not in source.life,
            "superseded": statement is not source.candidate,
            "null": decider.nulls == "skip" and statement.row.get(attribute) is None,
        }
    else:
        hurdles = {"superseded": statement is not source.last}
    failed = next((reason for reason, stops in hurdles.items() if stops), None)
    return failed or (_margin(statement, won, decider) if won else "tie")


def _margin(loser: Statement, won: Statement, decider: Group | Authority) -> Reason:
    """Which criterion decided between two candidates."""
    criteria: tuple[Reason, Reason] = ("rank", "time") if decider.by == "precedence" else ("time", "rank")
    pairs = zip(criteria, rank_key(loser, decider), rank_key(won, decider), strict=False)  # the rest of a key are tiebreakers
    return next((criterion for criterion, one, other in pairs if one != other), "tie")


def _value(statement: Statement | None, attribute: str) -> Any:  # noqa: ANN401 - whatever a row holds
    if attribute == IS_DELETED:
        return statement is not None and is_delete(statement.row)
    return statement and statement.row.get(attribute)


def _statements(rows: Iterable[Row], schema: EntitySchema) -> list[Statement]:
    return [statement for said in by_entity(rows, schema).values() for statement in said]


def _identity(statement: Statement) -> tuple[object, ...]:
    """What identifies a statement; a snapshot row and its presence share a hash."""
    return statement.source, statement.row["statement_hash"], statement.only_if_live
