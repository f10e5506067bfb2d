"""Statements to beliefs: of each attribute, the strongest word that an allowed source stands behind.

A source's *life* in an entity ends with its delete; what it says afterwards begins another. It stands behind its last life, also when
that has ended. Its *word* on an attribute is the last statement of that life which asserts it, never one which merely inherited it.

    CRM status=A@1, delete@3, name=N@5    CRM's word on status is A until 5; then it has none
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from karat.config.rules import Group, Rule, in_force
from karat.reference.rules import IS_DELETED, allows, standing
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

Said = Sequence[Statement]
"""Statements about one entity, in order."""


@dataclass(frozen=True)
class Belief:
    """What is believed of one entity at one time."""

    state: Row
    """Every attribute, and whether it is deleted."""
    because: Mapping[str, Row]
    """Attribute to the statement that won it; nothing for what nobody has a word on."""


def believed(
    rows: Iterable[Row], terms: EntitySchema, rules: Iterable[Rule], *, known_at: datetime, valid_at: datetime | None = None
) -> list[Row]:
    """One row per entity believed in at that time, by default at the end of time; by business key."""
    found: list[Row] = []
    for said, rule in _judged(rows, terms, rules, known_at):
        if belief := compose(until(said, valid_at), terms, rule):
            found.append(_row(said, belief, terms, rule))
    return found


def belief_history(rows: Iterable[Row], terms: EntitySchema, rules: Iterable[Rule], *, known_at: datetime) -> list[Row]:
    """One row per entity and period [valid_from, valid_to) of one belief, because of who said it last; by business key, then in time."""
    found: list[Row] = []
    for said, rule in _judged(rows, terms, rules, known_at):
        periods = _periods(said, terms, rule)
        ends = [start for start, _ in periods[1:]] + [None] * bool(periods)
        for (start, belief), end in zip(periods, ends, strict=True):
            found.append({**_row(said, belief, terms, rule), "valid_from": start, "valid_to": end, "is_current": end is None})
    return found


def conflicts(rows: Iterable[Row], terms: EntitySchema, rules: Iterable[Rule], *, known_at: datetime) -> list[Row]:
    """One row per entity and attribute on which allowed sources differ at the end of time; among the candidates the winner comes first."""
    found: list[Row] = []
    for said, rule in _judged(rows, terms, rules, known_at):
        for name in terms.attributes:
            words = contenders(said, name, rule)[::-1]
            told = [(word, word.row.get(name)) for word in words]
            if any(not same(value, told[0][1]) for _, value in told):
                whose = [
                    {
                        "source_system": word.source,
                        "value": value,
                        "at": word.at,
                        "record_hash": word.row["record_hash"],
                        "won": word is words[0],
                    }
                    for word, value in told
                ]
                found.append({**entity(said, terms), "attribute": name, "value": told[0][1], "candidates": whose})
    return found


def compose(said: Said, terms: EntitySchema, rule: Rule) -> Belief | None:
    """The belief once these statements were made; none until somebody allowed to has said something that can be believed."""
    if not any(enters(statement, rule) for statement in said):
        return None
    winners = {name: won for name in terms.attributes if (won := winner(said, name, rule))}
    values = {name: winners[name].row.get(name) if name in winners else None for name in terms.attributes}
    verdict = winner(said, IS_DELETED, rule)
    deleted = verdict is not None and is_delete(verdict.row)
    return Belief({**values, IS_DELETED: deleted}, {name: origin(won) for name, won in winners.items()})


def contenders(said: Said, attribute: str, rule: Rule) -> list[Statement]:
    """The word of each source that competes for the attribute, or for whether the entity is deleted; the winner's is the last."""
    _, decider = rule.on(attribute)
    if decider is None:
        return []
    speakers = [of_source(said, source) for source in {statement.source for statement in said} if allows(decider, source)]
    if isinstance(decider, Group):
        words = [word for own in speakers if (word := word_on(attribute, own))]
        competing = [word for word in words if decider.nulls == "count" or word.row.get(attribute) is not None]
    else:
        competing = [own[-1] for own in speakers]
    return sorted(competing, key=lambda word: standing(word, decider))


def winner(said: Said, attribute: str, rule: Rule) -> Statement | None:
    """Whose word is believed."""
    return next(reversed(contenders(said, attribute, rule)), None)


def word_on(attribute: str, own: Said) -> Statement | None:
    """What the source says of the attribute, be it a value or a null."""
    return next((statement for statement in reversed(life(own)) if asserts(statement, attribute)), None)


def life(own: Said) -> Said:
    """The upserts that a source stands behind: those since it came back, or up to the deletes that are its last word."""
    lives = [list(run) for gone, run in groupby(own, key=lambda statement: is_delete(statement.row)) if not gone]
    return lives[-1] if lives else []


def enters(statement: Statement, rule: Rule) -> bool:
    """The statement alone puts its entity into the belief: it asserts, if only as null, what its source may say."""
    return any(
        asserts(statement, attribute) and allows(group, statement.source)
        for group in rule.groups.values()
        for attribute in group.attributes
    )


def asserts(statement: Statement, attribute: str) -> bool:
    """The attribute was said, not inherited; a delete says nothing of attributes, whatever it carries."""
    return not is_delete(statement.row) and attribute in (statement.row["asserted_columns"] or ())


def known(rows: Iterable[Row], known_at: datetime | None = None) -> list[Row]:
    """The evidence received by then; rows without a time basis are of rejected sources and count nowhere."""
    return [row for row in rows if row["time_basis"] is not None and (known_at is None or row["ingest_ts"] <= known_at)]


def until(said: Said, valid_at: datetime | None) -> Said:
    """What had been said by that time of the world."""
    return [statement for statement in said if valid_at is None or statement.at <= valid_at]


def of_source(said: Said, source: str) -> Said:
    """The source's own statements."""
    return [statement for statement in said if statement.source == source]


def origin(statement: Statement) -> Row:
    """Enough to find a statement again."""
    return {"source_system": statement.source, "source_event_ts": statement.at, "record_hash": statement.row["record_hash"]}


def entity(said: Said, terms: EntitySchema) -> Row:
    """Whom the statements are about."""
    return {name: said[0].row[name] for name in (*terms.key, "bk")}


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - whatever a row holds
    """Equal as a table sees it: unlike in Python NaN is NaN, in lists and structures too."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _judged(rows: Iterable[Row], terms: EntitySchema, rules: Iterable[Rule], known_at: datetime) -> list[tuple[Said, Rule]]:
    """What was known of each entity, and the rule in force then; nothing before the first rule."""
    rule = in_force(rules, known_at)
    return [(said, rule) for said in by_entity(known(rows, known_at), terms).values()] if rule else []


def _periods(said: Said, terms: EntitySchema, rule: Rule) -> list[tuple[datetime, Belief]]:
    """Each belief with its start. Of several statements of one instant only the state after all of them counts."""
    periods: list[tuple[datetime, Belief]] = []
    for instant in sorted({statement.at for statement in said}):
        belief = compose(until(said, instant), terms, rule)
        if belief is None:
            continue
        if periods and same(periods[-1][1].state, belief.state):
            periods[-1] = (periods[-1][0], belief)  # said again, perhaps by somebody else: the last to say it is whose word it is
        else:
            periods.append((instant, belief))
    return periods


def _row(said: Said, belief: Belief, terms: EntitySchema, rule: Rule) -> dict[str, Any]:
    return {**entity(said, terms), **belief.state, "rule_version": rule.version, "because": belief.because}
