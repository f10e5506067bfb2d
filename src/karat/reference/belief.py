"""Beliefs from statements: for each attribute the best candidate among the sources that the rule allows.

A source's *life* in an entity ends with its delete; its next statement begins another one. What counts is its last life,
even if that has ended. Its *candidate* for an attribute is the last statement of that life that asserts the attribute. A
statement that only inherited the attribute is no candidate.

    CRM status=A@1, delete@3, name=N@5    CRM's candidate for status is A until 5; then it has none
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from karat.config.rules import Group, Rule, in_force
from karat.reference.rules import IS_DELETED, allows, rank_key
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
    """Attribute to the statement that won it; attributes without a candidate are left out."""


def believed(
    rows: Iterable[Row], schema: EntitySchema, rules: Iterable[Rule], *, known_at: datetime, valid_at: datetime | None = None
) -> list[Row]:
    """One row per entity that is believed at that time, by default after all statements; by business key."""
    found: list[Row] = []
    for said, rule in _with_rule(rows, schema, rules, known_at):
        if belief := compose(until(said, valid_at), schema, rule):
            found.append(_row(said, belief, schema, rule))
    return found


def belief_history(rows: Iterable[Row], schema: EntitySchema, rules: Iterable[Rule], *, known_at: datetime) -> list[Row]:
    """One row per entity and period [valid_from, valid_to) of one belief; by business key, then in time.

    `because` names the statements that won at the end of the period.
    """
    found: list[Row] = []
    for said, rule in _with_rule(rows, schema, rules, known_at):
        periods = _periods(said, schema, rule)
        ends = [start for start, _ in periods[1:]] + [None] * bool(periods)
        for (start, belief), end in zip(periods, ends, strict=True):
            found.append({**_row(said, belief, schema, rule), "valid_from": start, "valid_to": end, "is_current": end is None})
    return found


def conflicts(rows: Iterable[Row], schema: EntitySchema, rules: Iterable[Rule], *, known_at: datetime) -> list[Row]:
    """One row per entity and attribute on which allowed sources differ after all statements; the winner is the first candidate."""
    found: list[Row] = []
    for said, rule in _with_rule(rows, schema, rules, known_at):
        for name in schema.attributes:
            found_here = candidates(said, name, rule)[::-1]
            values = [(candidate, candidate.row.get(name)) for candidate in found_here]
            if any(not same(value, values[0][1]) for _, value in values):
                listed = [
                    {
                        "source_system": candidate.source,
                        "value": value,
                        "at": candidate.at,
                        "record_hash": candidate.row["record_hash"],
                        "won": candidate is found_here[0],
                    }
                    for candidate, value in values
                ]
                found.append({**entity(said, schema), "attribute": name, "value": values[0][1], "candidates": listed})
    return found


def compose(said: Said, schema: EntitySchema, rule: Rule) -> Belief | None:
    """The belief after these statements; None until an allowed source has asserted an attribute."""
    if not any(enters(statement, rule) for statement in said):
        return None
    winners = {name: won for name in schema.attributes if (won := winner(said, name, rule))}
    values = {name: winners[name].row.get(name) if name in winners else None for name in schema.attributes}
    lifecycle = winner(said, IS_DELETED, rule)
    deleted = lifecycle is not None and is_delete(lifecycle.row)
    return Belief({**values, IS_DELETED: deleted}, {name: origin(won) for name, won in winners.items()})


def candidates(said: Said, attribute: str, rule: Rule) -> list[Statement]:
    """The candidates for the attribute, or for whether the entity is deleted, one per source; the winner is the last."""
    _, decider = rule.on(attribute)
    if decider is None:
        return []
    by_source = [of_source(said, source) for source in {statement.source for statement in said} if allows(decider, source)]
    if isinstance(decider, Group):
        found = [candidate for own in by_source if (candidate := candidate_of(own, attribute))]
        competing = [each for each in found if decider.nulls == "count" or each.row.get(attribute) is not None]
    else:
        competing = [own[-1] for own in by_source]
    return sorted(competing, key=lambda candidate: rank_key(candidate, decider))


def winner(said: Said, attribute: str, rule: Rule) -> Statement | None:
    """The statement that is believed; None if there is no candidate."""
    return next(reversed(candidates(said, attribute, rule)), None)


def candidate_of(own: Said, attribute: str) -> Statement | None:
    """The source's last statement that asserts the attribute, with a value or with null; None if it has none."""
    return next((statement for statement in reversed(life(own)) if asserts(statement, attribute)), None)


def life(own: Said) -> Said:
    """The upserts of a source that count: those since it came back, or those before the deletes that are its last statements."""
    lives = [list(run) for gone, run in groupby(own, key=lambda statement: is_delete(statement.row)) if not gone]
    return lives[-1] if lives else []


def enters(statement: Statement, rule: Rule) -> bool:
    """Whether the statement puts its entity into the belief: it asserts, if only as null, an attribute its source is allowed on."""
    return any(
        asserts(statement, attribute) and allows(group, statement.source)
        for group in rule.groups.values()
        for attribute in group.attributes
    )


def asserts(statement: Statement, attribute: str) -> bool:
    """Whether the statement asserts the attribute and did not inherit it; a delete asserts no attribute."""
    return not is_delete(statement.row) and attribute in (statement.row["asserted_columns"] or ())


def known(rows: Iterable[Row], known_at: datetime | None = None) -> list[Row]:
    """The evidence that had arrived by then; rows without a time basis are of rejected sources and never count."""
    return [row for row in rows if row["time_basis"] is not None and (known_at is None or row["ingest_ts"] <= known_at)]


def until(said: Said, valid_at: datetime | None) -> Said:
    """The statements with a valid time up to that one."""
    return [statement for statement in said if valid_at is None or statement.at <= valid_at]


def of_source(said: Said, source: str) -> Said:
    """The source's own statements."""
    return [statement for statement in said if statement.source == source]


def origin(statement: Statement) -> Row:
    """What identifies a statement in the evidence."""
    return {"source_system": statement.source, "source_event_ts": statement.at, "record_hash": statement.row["record_hash"]}


def entity(said: Said, schema: EntitySchema) -> Row:
    """The key columns of the entity that the statements are about."""
    return {name: said[0].row[name] for name in (*schema.key, "bk")}


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - whatever a row holds
    """Equality as in a table: unlike in Python, NaN equals NaN, in lists and structures too."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _with_rule(rows: Iterable[Row], schema: EntitySchema, rules: Iterable[Rule], known_at: datetime) -> list[tuple[Said, Rule]]:
    """The known statements of each entity with the rule in force then; nothing before the first rule."""
    rule = in_force(rules, known_at)
    return [(said, rule) for said in by_entity(known(rows, known_at), schema).values()] if rule else []


def _periods(said: Said, schema: EntitySchema, rule: Rule) -> list[tuple[datetime, Belief]]:
    """Each belief with its start. Statements of one instant count together."""
    periods: list[tuple[datetime, Belief]] = []
    for instant in sorted({statement.at for statement in said}):
        belief = compose(until(said, instant), schema, rule)
        if belief is None:
            continue
        if periods and same(periods[-1][1].state, belief.state):
            periods[-1] = (periods[-1][0], belief)  # the same values, perhaps from another source: the last statement is named
        else:
            periods.append((instant, belief))
    return periods


def _row(said: Said, belief: Belief, schema: EntitySchema, rule: Rule) -> dict[str, Any]:
    return {**entity(said, schema), **belief.state, "rule_version": rule.version, "because": belief.because}
