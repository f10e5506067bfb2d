"""The rules of the gate: each a name, the rows it refuses, and the reason it gives them. The first that applies speaks."""

from collections.abc import Iterator
from dataclasses import dataclass

from karat.contract.drift import declared_names, keeps_undeclared
from karat.contract.meaning import LISTED, LOAD_TYPE, OP, OP_WORD
from karat.contract.presence import UNDECLARED, lacking
from karat.contract.reading import NEVER, Reading, shown
from karat.contract.wanted import setting
from karat.sources.raw import BROKEN
from karat.temporal.sql import Sql, literal


@dataclass(frozen=True)
class Rule:
    """What a row must not be."""

    name: str
    broken_when: Sql
    reason: Sql


def rules(reading: Reading, time: Sql, snapshot: Sql) -> tuple[Rule, ...]:
    """The rules a feed's rows are held against, without those that no row can break; `time` and `snapshot` say where these stand."""
    unparsable = Rule("unparsable", f"{BROKEN} IS NOT NULL", BROKEN)
    if reading.is_evidence_only:
        return (unparsable,)
    every = (
        unparsable,
        *_drift_rules(reading),
        *_failure_rules(reading),
        *_marker_rules(reading),
        *_key_rules(reading),
        *_type_rules(reading),
        *_time_rules(reading, time, snapshot),
    )
    return tuple(rule for rule in every if rule.broken_when != NEVER)


def verdict(held: tuple[Rule, ...]) -> Sql:
    """The rule that refuses a row and its reason, as a struct; null for one that none refuses."""
    answers = (f"WHEN {rule.broken_when} THEN struct({literal(rule.name)} AS rule, {rule.reason} AS reason)" for rule in held)
    return f"CASE {' '.join(answers)} END"


def misfit_reason(reading: Reading, name: str) -> Sql:
    """Why a value does not fit."""
    failed = literal(f"{name}: {reading.wanted[name].text} cannot be computed for this row")
    unfit = _told(f"{name}: ", shown(reading.text(name)), f" does not fit {reading.ddl(name)}")
    return unfit if reading.failed(name) == NEVER else f"if({reading.failed(name)}, {failed}, {unfit})"


def _told(before: str, value: Sql, after: str) -> Sql:
    return f"concat({literal(before)}, {value}, {literal(after)})"


def _drift_rules(reading: Reading) -> Iterator[Rule]:
    policy, drift = reading.feed.drift, reading.drift
    if policy.new_columns == "quarantine" and keeps_undeclared(reading.feed):
        is_there = "true" if reading.columns.types is None else "value IS NOT NULL"
        used = ", ".join(sorted({literal(name.lower()) for name in declared_names(reading.entity, reading.feed)}))
        strange = f"map_filter({UNDECLARED}, (name, value) -> lower(name) NOT IN ({used}) AND {is_there})"
        listed = f"concat_ws(', ', array_sort(map_keys({strange})))"
        yield Rule("drift", f"size({strange}) > 0", f"concat('column nobody declared: ', {listed})")
    if policy.missing_columns != "quarantine":
        return
    if drift.missing:
        yield Rule("drift", "true", literal(f"column missing from the batch: {', '.join(drift.missing)}"))
    if (lacks := lacking(reading.entity, reading.feed, reading.columns, reading.wanted)) is not None:
        yield Rule("drift", f"{lacks} != ''", f"concat('column missing from the batch: ', {lacks})")


_RULE_OF = {"event_time": "event time", "op": "op", "load_type": "load marker", "snapshot_of": "snapshot time"}


def _failure_rules(reading: Reading) -> Iterator[Rule]:
    for name in ("event_time", "sequence", "op", "asserted", "delete_when", "snapshot_of", "load_type"):
        if not reading.wants(name) or (name == "event_time" and reading.entity.declared.time_basis == "platform"):
            continue
        expression = reading.wanted[setting(name)]
        reason = literal(f"{name}: {expression.text} cannot be computed for this row")
        yield Rule(_RULE_OF.get(name, "type"), reading.failed(setting(name)), reason)


def _marker_rules(reading: Reading) -> Iterator[Rule]:
    yield Rule("op", f"{OP} IS NULL AND {OP_WORD} IS NOT NULL", _told("op: ", shown(OP_WORD), " is none of c, r, u, d, t"))
    if reading.wants("load_type"):
        marker = shown(reading.text(setting("load_type")))
        reason = _told(f"{reading.wanted[setting('load_type')].text}: ", marker, " is neither FULL nor PARTIAL")
        yield Rule("load marker", f"{LOAD_TYPE} IS NULL", reason)
    if reading.wants("asserted"):
        text = reading.text(setting("asserted"))
        yield Rule("type", f"{text} IS NOT NULL AND {LISTED} IS NULL", _told("asserted: ", shown(text), " is no list of columns"))


_NEEDS_KEY = f"coalesce({OP} != 't', true)"


def _key_rules(reading: Reading) -> Iterator[Rule]:
    for name in reading.entity.key:
        failed = reading.failed(name)
        nothing = f"{reading.value(name)} IS NULL" if failed == NEVER else f"({reading.value(name)} IS NULL AND NOT {failed})"
        yield Rule("null key", f"{_NEEDS_KEY} AND {nothing}", literal(f"{name} is null"))


def _type_rules(reading: Reading) -> Iterator[Rule]:
    for name in reading.entity.key:
        if reading.misfit(name) != NEVER:
            yield Rule("type", f"{_NEEDS_KEY} AND {reading.misfit(name)}", misfit_reason(reading, name))
    if reading.keeps_misfits:
        return
    for name in reading.entity.attributes:
        yield Rule("type", reading.misfit(name), misfit_reason(reading, name))


_NO_TIME = " is no time between the years 1 and 9999"


def _time_rules(reading: Reading, time: Sql, snapshot: Sql) -> Iterator[Rule]:
    if reading.entity.declared.time_basis != "platform":
        told = shown(reading.text(setting("event_time"))) if reading.wants("event_time") else literal("the message's own time")
        what = reading.wanted[setting("event_time")].text if reading.wants("event_time") else "time"
        yield Rule("event time", f"{time} IS NULL", _told(f"{what}: ", told, _NO_TIME))
    if reading.wants("snapshot_of"):
        is_snapshot = f"{LOAD_TYPE} = 'FULL' AND {OP} IS NULL"
        told = shown(reading.text(setting("snapshot_of")))
        reason = _told(f"{reading.wanted[setting('snapshot_of')].text}: ", told, _NO_TIME)
        yield Rule("snapshot time", f"{is_snapshot} AND {snapshot} IS NULL", reason)
