"""What new knowledge changed about the past: receipts of what was believed before, what is believed now, and because of what.

Between two moments of knowledge first the rule may change, over the same evidence; then evidence arrives, under the new rule. Evidence
no older than what was known of its entity moves belief on and restates nothing; only a late statement leaves a receipt.

    known: CRM A@1, CRM C@5    arrives: CRM B@3, CRM D@7    receipt: [3, 5) was A, is B, because of B@3
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
"""From when on what is believed otherwise, and why: a receipt without its period."""


def restatements(rows: Iterable[Row], terms: EntitySchema, rules: Iterable[Rule], *, before: datetime, after: datetime) -> list[Row]:
    """One row per entity, cause (`rule`, then `statement`) and longest stretch of one before, after and because; by business key.

    An entity that nobody had spoken of before has nothing to restate.
    """
    agreed, evidence = list(rules), list(rows)
    former, rule = in_force(agreed, before), in_force(agreed, after)
    if rule is None or former is None:  # where nothing was believed yet there is nothing to restate
        return []
    earlier, later = (by_entity(known(evidence, moment), terms) for moment in (before, after))
    versions = {"rule_version": rule.version, "rule_version_before": former.version}
    found: list[Row] = []
    for bk, said in earlier.items():
        receipts = _by_rule(said, terms, former, rule) if former.version != rule.version else []
        receipts += _by_statement(said, later[bk], terms, rule, before)
        found += [{**entity(said, terms), **receipt, **versions} for receipt in receipts]
    return found


def _by_rule(said: Said, terms: EntitySchema, former: Rule, rule: Rule) -> list[Row]:
    """Where the new rule believes otherwise than the former one, of the same statements."""
    changes: list[Change] = []
    for instant in _instants(said):
        before, after = (_state(until(said, instant), terms, judge) for judge in (former, rule))
        changed = _differing(before, after)
        changes.append((instant, {"changed": changed, **_told(changed, before, after), "because": {}, "cause": "rule"}))
    return _receipts(changes)


def _by_statement(earlier: Said, later: Said, terms: EntitySchema, rule: Rule, since: datetime) -> list[Row]:
    """Where late statements make believe otherwise than before, under the same rule."""
    last = max(statement.at for statement in earlier)
    changes: list[Change] = []
    for instant in _instants([*earlier, *later]):
        heard = until(later, instant)
        before, after = _state(until(earlier, instant), terms, rule), _state(heard, terms, rule)
        new = [statement for statement in heard if statement.row["ingest_ts"] > since]
        appears = before is None or after is None
        causes = {name: _cause(name, heard, new, rule, appears=appears) for name in _differing(before, after)}
        because = {name: origin(cause) for name, cause in causes.items() if cause and cause.at < last}
        told = _told(because, before, after)
        changes.append((instant, {"changed": list(because), **told, "because": because, "cause": "statement"}))
    return _receipts(changes)


def _cause(name: str, heard: Said, new: Said, rule: Rule, *, appears: bool) -> Statement | None:
    """The new statement behind a change: the one believed now, else the last that may have moved what is believed."""
    won = winner(heard, name, rule)
    if won in new:
        return won
    if name == IS_DELETED:
        # An entity that was not believed in is not "not deleted" either: who brings it in brings this too, authority or not.
        moving = [word for word in new if allows(rule.delete, word.source) or (appears and enters(word, rule))]
    else:
        allowed = [word for word in new if allows(rule.on(name)[1], word.source)]
        moving = [word for word in allowed if asserts(word, name) or _turns(word, of_source(heard, word.source))]
    return moving[-1] if moving else None


def _turns(word: Statement, own: Said) -> bool:
    """It ends a life of its source or begins another one, and so moves attributes it says nothing of."""
    return is_delete(word.row) or any(following is word and is_delete(previous.row) for previous, following in pairwise(own))


def _state(said: Said, terms: EntitySchema, rule: Rule) -> Row | None:
    belief = compose(said, terms, rule)
    return belief.state if belief else None


def _told(changed: Iterable[str], before: Row | None, after: Row | None) -> Row:
    """Of both readings only what changed: a receipt is not cut where something else moved on."""
    names = list(changed)
    sides = {"before": before, "after": after}
    return {side: None if state is None else {name: state.get(name) for name in names} for side, state in sides.items()}


def _differing(before: Row | None, after: Row | None) -> list[str]:
    """Attributes, and `is_deleted`, that are not the same; where there is no belief, everything is null."""
    old, new = before or {}, after or {}
    return sorted(name for name in old or new if not same(old.get(name), new.get(name)))


def _instants(said: Said) -> list[datetime]:
    return sorted({statement.at for statement in said})


def _receipts(changes: Iterable[Change]) -> list[Row]:
    """Each change until the next: what only goes on is none, and where nothing changed there is no receipt."""
    kept = [change for previous, change in pairwise([(None, None), *changes]) if not same(previous[1], change[1])]
    periods = pairwise([*kept, (None, None)])
    return [{"valid_from": start, "valid_to": end, **told} for (start, told), (end, _) in periods if told and told["changed"]]
