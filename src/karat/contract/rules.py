"""The rules of the gate: each a name, the rows it refuses, and the reason it gives them. The first that applies speaks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from karat.contract.meaning import LISTED, LOAD_TYPE, OP, OP_WORD
from karat.contract.reading import Reading, shown
from karat.contract.wanted import failure_of, setting
from karat.sources.raw import BROKEN, FIELDS
from karat.temporal.columns import col


@dataclass(frozen=True)
class Rule:
    """What a row must not be."""

    name: str
    broken_when: Column
    reason: Column


def rules(reading: Reading, misfit: Callable[[str], Column], time: Column, snapshot: Column) -> tuple[Rule, ...]:
    """The rules a feed's rows are held against; `misfit`, `time` and `snapshot` say where a row's values stand."""
    unparsable = Rule("unparsable", F.col(BROKEN).isNotNull(), F.col(BROKEN))
    if reading.is_evidence_only:
        return (unparsable,)
    return (
        unparsable,
        *_drift_rules(reading),
        *_failure_rules(reading),
        *_marker_rules(reading),
        *_key_rules(reading),
        *_type_rules(reading, misfit),
        *_time_rules(reading, time, snapshot),
    )


def verdict(held: tuple[Rule, ...]) -> Column:
    """The rule that refuses a row and its reason, as a struct; null for one that none refuses."""
    none = F.lit(None).cast("struct<rule:string,reason:string>")
    return reduce(lambda later, rule: F.when(rule.broken_when, _said(rule)).otherwise(later), reversed(held), none)


def _said(rule: Rule) -> Column:
    return F.struct(F.lit(rule.name).alias("rule"), rule.reason.alias("reason"))


def misfit_reason(reading: Reading, name: str) -> Column:
    """Why a value does not fit."""
    failed = F.lit(f"{name}: {reading.wanted[name].text} cannot be computed for this row")
    return F.when(col(failure_of(name)), failed).otherwise(
        F.concat(F.lit(f"{name}: "), shown(reading.text(name)), F.lit(f" does not fit {reading.ddl(name)}"))
    )


def _drift_rules(reading: Reading) -> Iterator[Rule]:
    policy, found = reading.feed.drift, reading.drift
    if found.new and policy.new_columns == "quarantine":
        strange = F.map_filter(
            F.col(FIELDS), lambda name, value: name.isin(*found.new) & (F.lit(reading.columns.types is None) | value.isNotNull())
        )
        names = F.concat_ws(", ", F.array_sort(F.map_keys(strange)))
        yield Rule("drift", F.size(strange) > 0, F.concat(F.lit("column nobody declared: "), names))
    if found.missing and policy.missing_columns == "quarantine":
        yield Rule("drift", F.lit(True), F.lit(f"column missing from the batch: {', '.join(found.missing)}"))


_RULE_OF = {"event_time": "event time", "op": "op", "load_type": "load marker", "snapshot_of": "snapshot time"}


def _failure_rules(reading: Reading) -> Iterator[Rule]:
    for name in ("event_time", "sequence", "op", "asserted", "delete_when", "snapshot_of", "load_type"):
        if not reading.wants(name) or (name == "event_time" and reading.entity.declared.time_basis == "platform"):
            continue
        expression = reading.wanted[setting(name)]
        reason = F.lit(f"{name}: {expression.text} cannot be computed for this row")
        yield Rule(_RULE_OF.get(name, "type"), col(failure_of(setting(name))), reason)


def _marker_rules(reading: Reading) -> Iterator[Rule]:
    unknown = F.col(OP).isNull() & F.col(OP_WORD).isNotNull()
    yield Rule("op", unknown, F.concat(F.lit("op: "), shown(F.col(OP_WORD)), F.lit(" is none of c, r, u, d, t")))
    if reading.wants("load_type"):
        marker = shown(reading.text(setting("load_type")))
        reason = F.concat(F.lit(f"{reading.wanted[setting('load_type')].text}: "), marker, F.lit(" is neither FULL nor PARTIAL"))
        yield Rule("load marker", F.col(LOAD_TYPE).isNull(), reason)
    if reading.wants("asserted"):
        text = reading.text(setting("asserted"))
        reason = F.concat(F.lit("asserted: "), shown(text), F.lit(" is no list of columns"))
        yield Rule("type", text.isNotNull() & F.col(LISTED).isNull(), reason)


def _needs_key() -> Column:
    return F.coalesce(F.col(OP) != "t", F.lit(True))


def _key_rules(reading: Reading) -> Iterator[Rule]:
    for name in reading.entity.key:
        nothing = reading.value(name).isNull() & ~col(failure_of(name))
        yield Rule("null key", _needs_key() & nothing, F.lit(f"{name} is null"))


def _type_rules(reading: Reading, misfit: Callable[[str], Column]) -> Iterator[Rule]:
    for name in reading.entity.key:
        yield Rule("type", _needs_key() & misfit(name), misfit_reason(reading, name))
    if reading.keeps_misfits:
        return
    for name in reading.entity.attributes:
        yield Rule("type", misfit(name), misfit_reason(reading, name))


def _time_rules(reading: Reading, time: Column, snapshot: Column) -> Iterator[Rule]:
    if reading.entity.declared.time_basis != "platform":
        told = shown(reading.text(setting("event_time"))) if reading.wants("event_time") else F.lit("the message's own time")
        what = reading.wanted[setting("event_time")].text if reading.wants("event_time") else "time"
        reason = F.concat(F.lit(f"{what}: "), told, F.lit(" is no time between the years 1 and 9999"))
        yield Rule("event time", time.isNull(), reason)
    if reading.wants("snapshot_of"):
        is_snapshot = (F.col(LOAD_TYPE) == "FULL") & F.col(OP).isNull()
        told = shown(reading.text(setting("snapshot_of")))
        reason = F.concat(
            F.lit(f"{reading.wanted[setting('snapshot_of')].text}: "), told, F.lit(" is no time between the years 1 and 9999")
        )
        yield Rule("snapshot time", is_snapshot & snapshot.isNull(), reason)
