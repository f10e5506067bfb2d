"""Rules written short, questions about literal tables of statements, and beliefs shown as text."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from karat.reference import Authority, EntitySchema, Group, Row, Rule, belief_history, believed, explained, restatements
from tests.unit.reference.histories import MARCH, assertions, lines, moment, shown, text

CRM_OVER_CORE = {"CRM": 2, "CORE": 1}
CORE_OVER_CRM = {"CRM": 1, "CORE": 2}
CORE_ALONE = {"CORE": 1}
CRM_ALONE = {"CRM": 1}
ANYBODY = Authority()


def after_run(number: int) -> datetime:
    """When the rows of that line, or run, had arrived."""
    return MARCH + timedelta(days=100, hours=number)


NOW = after_run(99)


def group(*attributes: str, by: str = "precedence", sources: Mapping[str, int] | None = None, nulls: str = "skip") -> Group:
    return Group(attributes, by, sources, nulls)  # type: ignore[arg-type]


def rule(*groups: Group, delete: Authority = ANYBODY, version: int = 1, since: datetime = MARCH) -> Rule:
    return Rule(version, since, {"+".join(each.attributes): each for each in groups}, delete)


def belief(table: str, terms: EntitySchema, *rules: Rule, at: str | None = None, known_at: datetime = NOW) -> list[Row]:
    """Who is believed to be what, at a day of March or at the end of time."""
    return believed(assertions(lines(table), terms), terms, rules, known_at=known_at, valid_at=moment(at) if at else None)


def told(table: str, terms: EntitySchema, *rules: Rule, known_at: datetime = NOW) -> list[Row]:
    """The history of what is believed."""
    return belief_history(assertions(lines(table), terms), terms, rules, known_at=known_at)


def restated(table: str, terms: EntitySchema, *rules: Rule, runs: tuple[int, int]) -> list[Row]:
    """The receipts between two runs."""
    before, after = map(after_run, runs)
    return restatements(assertions(lines(table), terms), terms, rules, before=before, after=after)


def lost(table: str, terms: EntitySchema, by: Rule, attribute: str, **question: Any) -> list[str]:  # noqa: ANN401 - times and runs
    """Every statement in order: who said what when, and `won` or why not."""
    rows = assertions(lines(table), terms)
    why = explained(rows, terms, [by], attribute=attribute, **{"known_at": NOW, **question})
    assert why
    told = [(loser.statement, loser.value, str(loser.reason)) for loser in why.losers]
    told += [(why.winner, why.value, "won")] if why.winner else []
    return [f"{word.source} {text(word.at)} {text(value)}: {reason}" for word, value, reason in sorted(told, key=lambda one: one[0].order)]


def whose(because: Mapping[str, Row]) -> dict[str, str]:
    """Attribute to who said it and when."""
    return {name: f"{word['source_system']} {text(word['source_event_ts'])}" for name, word in because.items()}


def receipts(rows: Sequence[Row]) -> list[str]:
    """One line per receipt: `from to cause: changed: before -> after`, or `nothing` where nothing was believed."""
    found = []
    for row in rows:
        period = shown([row], "valid_from valid_to cause")[0]
        states = (" ".join(text(state[name]) for name in row["changed"]) if state else "nothing" for state in (row["before"], row["after"]))
        found.append(f"{period}: {' '.join(row['changed'])}: {' -> '.join(states)}")
    return found
