"""Restatements: what is believed about the past now, what was believed before, and which statement changed it.

Between two times of knowledge the rule may change first, over the same evidence; then evidence arrives, under the new rule.
A statement that is not older than all that was known of its entity continues the belief and restates nothing; only a late
statement does.

    known: CRM A@1, CRM C@5    arrives: CRM B@3, CRM D@7    restatement: [3, 5) was A, is B, because of B@3
"""

from collections.abc import Iterable
from datetime import datetime
from itertools import pairwise

from karat.config.rules import Rule, in_force
from karat.reference.belief import Said, asserts, compose, enters, entity, known, of_source, origin, same, until, winner
from karat.reference.rules import IS_DELETED, allows
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

Change = tuple[datetime | None, Row | None]
"""The start of a change and what changed: a restatement without its end."""


def restatements(rows: Iterable[Row], schema: EntitySchema, rules: Iterable[Rule], *, before: datetime, after: datetime) -> list[Row]:
    """One row per entity, cause (`rule`, then `statement`) and period with one before, after and because; by business key.

    An entity without statements before has nothing to restate.
    """
    agreed, evidence = list(rules), list(rows)
    former, rule = in_force(agreed, before), in_force(agreed, after)
    if rule is None or former is None:  # where nothing was believed yet there is nothing to restate
        return []
    earlier, later = (by_entity(known(evidence, moment), schema) for moment in (before, after))
    versions = {"rule_version": rule.version, "rule_version_before": former.version}
    found: list[Row] = []
    for bk, said in earlier.items():
        restated = _by_rule(said, schema, former, rule) if former.version != rule.version else []
        restated += _by_statement(said, later[bk], schema, rule, before)
        found += [{**entity(said, schema), **each, **versions} for each in restated]
    return found


def _by_rule(said: Said, schema: EntitySchema, former: Rule, rule: Rule) -> list[Row]:
    """Where the new rule gives another belief than the former one, for the same statements."""
    changes: list[Change] = []
    for instant in _instants(said):
        before, after = (_state(until(said, instant), schema, each) for each in (former, rule))
        changed = _differing(before, after)
        changes.append((instant, {"changed": changed, **_sides(changed, before, after), "because": {}, "cause": "rule"}))
    return _with_periods(changes)


def _by_statement(earlier: Said, later: Said, schema: EntitySchema, rule: Rule, since: datetime) -> list[Row]:
    """Where late statements change the belief, under the same rule."""
    last = max(statement.at for statement in earlier)
    changes: list[Change] = []
    for instant in _instants([*earlier, *later]):
        known_by_now = until(later, instant)
        before, after = _state(until(earlier, instant), schema, rule), _state(known_by_now, schema, rule)
        new = [statement for statement in known_by_now if statement.row["ingest_ts"] > since]
        appears = before is None or after is None
        causes = {name: _cause(name, known_by_now, new, rule, appears=appears) for name in _differing(before, after)}
        because = {name: origin(cause) for name, cause in causes.items() if cause and cause.at < last}
        sides = _sides(because, before, after)
        changes.append((instant, {"changed": list(because), **sides, "because": because, "cause": "statement"}))
    return _with_periods(changes)


def _cause(name: str, said: Said, new: Said, rule: Rule, *, appears: bool) -> Statement | None:
    """The new statement behind a change: the winner if it is new, else the last new one that may have changed the winner."""
    won = winner(said, name, rule)
    if won in new:
        return won
    if name == IS_DELETED:
        # an entity that was not in the belief was not "not deleted" either: a statement that brings it in is the cause of both
        moving = [each for each in new if allows(rule.delete, each.source) or (appears and enters(each, rule))]
    else:
        allowed = [each for each in new if allows(rule.on(name)[1], each.source)]
        moving = [each for each in allowed if asserts(each, name) or _turns(each, of_source(said, each.source))]
    return moving[-1] if moving else None


def _turns(statement: Statement, own: Said) -> bool:
    """Whether it ends or begins a life of its source, which changes candidates for attributes that it does not assert."""
    return is_delete(statement.row) or any(following is statement and is_delete(previous.row) for previous, following in pairwise(own))


def _state(said: Said, schema: EntitySchema, rule: Rule) -> Row | None:
    belief = compose(said, schema, rule)
    return belief.state if belief else None


def _sides(changed: Iterable[str], before: Row | None, after: Row | None) -> Row:
    """`before` and `after` with the changed attributes only, so that other changes do not divide a restatement."""
    names = list(changed)
    sides = {"before": before, "after": after}
    return {side: None if state is None else {name: state.get(name) for name in names} for side, state in sides.items()}


def _differing(before: Row | None, after: Row | None) -> list[str]:
    """The attributes, and `is_deleted`, that differ; where there is no belief, all of them are null."""
    old, new = before or {}, after or {}
    return sorted(name for name in old or new if not same(old.get(name), new.get(name)))


def _instants(said: Said) -> list[datetime]:
    return sorted({statement.at for statement in said})


def _with_periods(changes: Iterable[Change]) -> list[Row]:
    """The changes with their periods: each lasts until the next one; what continues unchanged is no new one."""
    distinct = [change for previous, change in pairwise([(None, None), *changes]) if not same(previous[1], change[1])]
    periods = pairwise([*distinct, (None, None)])
    return [{"valid_from": start, "valid_to": end, **what} for (start, what), (end, _) in periods if what and what["changed"]]
