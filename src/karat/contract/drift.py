"""Drift: the columns of a batch against what the entity declares, and what the feed's policy makes of the difference.

Nothing is read ahead for it. Rows carry the names of their fields where a policy needs them (NAMES); the aggregate that counts the
batch gathers them (`drift_aggregates`), and what it found becomes notes or a failure of the feed (`drift_found`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from karat.config.declared.entity import Feed, FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.columns import MISFIT, NAMES
from karat.contract.expressions import Expression
from karat.contract.incoming import used_names
from karat.contract.wanted import wanted_columns, wanted_settings
from karat.errors import ContractBreach
from karat.temporal.columns import FEED
from karat.temporal.sql import Sql, literal

_BETWEEN_NAMES: Final = "\x01"
_WORKING: Final = frozenset({"_file", "_change_type", "_commit_version", "_commit_timestamp"})


@dataclass(frozen=True)
class Drift:
    """How the fields of one feed's batch differ from the declaration."""

    new: tuple[str, ...] = ()
    """Fields nobody declared."""
    missing: tuple[str, ...] = ()
    """Columns that are declared and that no record has."""
    unsaid: tuple[str, ...] = ()
    """Key columns and attributes that hang on a missing one."""


@dataclass(frozen=True)
class DriftFound:
    """What the drift of a batch comes to: notes for the operator, and the feeds whose policy is to fail."""

    notes: tuple[str, ...] = ()
    failures: tuple[tuple[str, ContractBreach], ...] = ()
    """Feed to what is wrong with it, in the order of the declaration."""

    @property
    def failed_feeds(self) -> tuple[str, ...]:
        """The feeds whose rows must not land."""
        return tuple(name for name, _ in self.failures)


def drift_aggregates(entity: Entity) -> dict[str, Column]:
    """Aggregates over a batch of statements, by name: what `drift_found` has to know. None where no policy asks for any."""
    found: dict[str, Column] = {}
    for place, feed in enumerate(entity.feeds):
        is_its = F.col(FEED) == feed.feed.name
        if needs_names(feed.feed):
            lists = F.transform(F.collect_set(F.when(is_its, F.col(NAMES))), lambda names: F.split(names, _BETWEEN_NAMES))
            found[f"drift_names_{place}"] = F.array_distinct(F.flatten(lists))
        if feed.feed.drift.type_changes == "fail":
            found[f"drift_misfit_{place}"] = F.min(F.when(is_its, F.col(MISFIT)))
    return found


def drift_found(entity: Entity, counted: Mapping[str, Any]) -> DriftFound:
    """What the aggregates say in words; policies that only hold rows back have done so already."""
    notes: list[str] = []
    failures: list[tuple[str, ContractBreach]] = []
    for place, feed in enumerate(entity.feeds):
        drift = drift_of(counted.get(f"drift_names_{place}") or (), entity, feed)
        notes.extend(_notes(feed.feed, drift))
        if breach := _breach(feed.feed, drift, counted.get(f"drift_misfit_{place}")):
            failures.append((feed.feed.name, breach))
    return DriftFound(tuple(notes), tuple(failures))


def drift_of(names: Collection[str], entity: Entity, feed: FeedOf, *, is_typed: bool = False) -> Drift:
    """How fields of these names differ from what the feed's settings speak of."""
    declared = feed.feed
    there = {name.lower() for name in names}
    used = {name.lower() for name in declared_names(entity, declared)}
    new = () if not keeps_undeclared(declared) else tuple(sorted(name for name in names if name.lower() not in used))
    unsaid = _unsaid(there, entity, declared, is_typed=is_typed) if there and is_tabular(declared) else {}
    missing = tuple(dict.fromkeys(column for lacking in unsaid.values() for column in lacking))
    return Drift(new, missing, tuple(unsaid))


def declared_names(entity: Entity, feed: Feed) -> tuple[str, ...]:
    """The names of fields that key, attributes and settings speak of."""
    expressions = [*wanted_columns(entity, feed).values(), *wanted_settings(feed).values(), *document_setting(feed)]
    whole = [each.text for each in expressions if each.is_no_sql]
    return tuple(dict.fromkeys((*used_names(expressions, whole), *(each.text for each in expressions if each.may_be_a_name))))


def document_setting(feed: Feed) -> list[Expression]:
    """The setting a payload feed takes its document from."""
    return [] if feed.document is None else [Expression("document", feed.document)]


def keeps_undeclared(feed: Feed) -> bool:
    """Whether fields that nobody declared are of any interest: those of a document that is kept whole are not."""
    return feed.envelope != "payload" or feed.document is not None


def is_tabular(feed: Feed) -> bool:
    """Whether every record of the feed should have every column: not so for partial JSON, messages and documents."""
    if feed.is_change_stream or feed.envelope == "payload":
        return False
    return feed.load_type == "FULL" or not is_json(feed)


def is_json(feed: Feed) -> bool:
    """Whether the records are lines of JSON, which have a field or have it not, each by itself."""
    return isinstance(feed.source, FilesSource) and feed.source.format == "json"


def needs_names(feed: Feed) -> bool:
    """Whether a policy can only be applied when all names of a batch are known."""
    tells_new = feed.drift.new_columns in {"warn", "fail"} and keeps_undeclared(feed)
    return tells_new or (feed.drift.missing_columns in {"warn", "fail"} and is_tabular(feed))


def joined_names(names: Sql) -> Sql:
    """An array of names as one text; null where there is none."""
    return f"nullif(concat_ws({literal(_BETWEEN_NAMES)}, {names}), '')"


def _unsaid(there: Collection[str], entity: Entity, feed: Feed, *, is_typed: bool) -> dict[str, tuple[str, ...]]:
    """Key column or attribute to the columns it is made of and that are not there, for those that lack all of them."""
    found: dict[str, tuple[str, ...]] = {}
    for name, expression in wanted_columns(entity, feed).items():
        if expression.text.lower() in there:
            continue
        used = [parts for parts in expression.paths if ".".join(parts) not in _WORKING]
        lacking = [parts[0] for parts in used if not {".".join(parts).lower(), parts[0].lower()} & set(there)]
        if lacking and len(lacking) == len(used):
            found[name] = tuple(dict.fromkeys(lacking))
    are_all_attributes = set(found) >= set(entity.attributes) and not set(found) & set(entity.key)
    # a stream of complete rows may well bring nothing but deletes, which carry the key alone
    only_deletes = are_all_attributes and (feed.op is not None or feed.delete_when is not None) and not is_typed
    return {} if only_deletes else found


def _notes(feed: Feed, drift: Drift) -> list[str]:
    told = (
        ("columns nobody declared, kept in `extra`", drift.new, feed.drift.new_columns),
        ("columns missing", drift.missing, feed.drift.missing_columns),
    )
    return [f"feed {feed.name}: {what}: {', '.join(found)}" for what, found, policy in told if found and policy == "warn"]


def _breach(feed: Feed, drift: Drift, misfit: str | None) -> ContractBreach | None:
    told = (("new_columns", drift.new, "the entity declares no"), ("missing_columns", drift.missing, "the batch lacks"))
    for policy, found, what in told:
        if found and getattr(feed.drift, policy) == "fail":
            message = f"feed {feed.name}: {what} column {', '.join(found)}"
            remedy = f"declare or map the column, mend the source, or set drift.{policy} of the feed to keep, warn or quarantine"
            return ContractBreach(message, remedy=remedy, feed=feed.name, columns=found)
    if misfit is None:
        return None
    remedy = "mend the source, change the declared type, or set drift.type_changes of the feed to quarantine or keep"
    return ContractBreach(f"feed {feed.name}: {misfit}", remedy=remedy, feed=feed.name)
