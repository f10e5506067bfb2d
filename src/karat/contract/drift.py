"""Drift: the columns of a batch against what the entity declares, and what the feed's policy makes of the difference."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from karat.config.entity import Feed, FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.envelopes import images
from karat.contract.incoming import Incoming, field_names, incoming
from karat.contract.payloads import named_in
from karat.contract.wanted import wanted_columns, wanted_settings
from karat.errors import ContractBreach
from karat.sources.raw import is_typed


@dataclass(frozen=True)
class Drift:
    """What the columns of a batch are, and how they differ from the declaration."""

    names: tuple[str, ...]
    """Every field the records have."""
    used: tuple[str, ...]
    """Those that key, attributes or expressions speak of."""
    new: tuple[str, ...] = ()
    """Fields nobody declared."""
    missing: tuple[str, ...] = ()
    """Columns that are declared and that no record has."""
    unsaid: tuple[str, ...] = ()
    """Key columns and attributes that hang on a missing one."""
    notes: tuple[str, ...] = ()
    """What the policy `warn` has to say."""


def drift(raw: DataFrame, entity: Entity, feed: FeedOf, *, few: bool = False) -> Drift:
    """How the batch's columns differ from the declaration; raises where the policy is to fail."""
    return drift_of(images(raw, feed), entity, feed, few=few)


def drift_of(image: DataFrame, entity: Entity, feed: FeedOf, *, few: bool = False) -> Drift:
    """The same, of images that are there already."""
    declared = feed.feed
    is_payload = declared.envelope == "payload"
    names = named_in(declared) if is_payload and not is_typed(image) else field_names(image, few=few)
    columns = incoming(image, names)
    used = _used(columns, entity, declared)
    new = () if is_payload and declared.document is None else tuple(name for name in names if name not in used)
    unsaid = _unsaid(columns, entity, declared) if names and _is_tabular(declared) else {}
    missing = tuple(dict.fromkeys(column for lacking in unsaid.values() for column in lacking))
    notes = tuple(
        f"feed {declared.name}: {what}: {', '.join(found)}"
        for what, found, policy in (
            ("columns nobody declared, kept in `extra`", new, declared.drift.new_columns),
            ("columns missing", missing, declared.drift.missing_columns),
        )
        if found and policy == "warn"
    )
    _fail(declared, "new_columns", new, "declares no")
    _fail(declared, "missing_columns", missing, "lacks")
    return Drift(names, used, new, missing, tuple(unsaid), notes)


def _used(columns: Incoming, entity: Entity, feed: Feed) -> tuple[str, ...]:
    wanted = [*wanted_columns(entity, feed).values(), *wanted_settings(feed).values()]
    referenced = (name for expression in wanted for name in (expression.text, *columns.referenced(expression)))
    return tuple(dict.fromkeys(found for name in referenced for found in columns.found(name)))


def _unsaid(columns: Incoming, entity: Entity, feed: Feed) -> dict[str, tuple[str, ...]]:
    """Key column or attribute to the columns it is made of and that are not there, for those that lack all of them."""
    found: dict[str, tuple[str, ...]] = {}
    for name, expression in wanted_columns(entity, feed).items():
        if columns.found(expression.text):
            continue
        referenced = [column for column in columns.referenced(expression) if column not in columns.working]
        lacking = tuple(column for column in referenced if not columns.found(column))
        if lacking and len(lacking) == len(referenced):
            found[name] = lacking
    are_all_attributes = set(found) >= set(entity.attributes) and not set(found) & set(entity.key)
    # a stream of complete rows may well bring nothing but deletes, which carry the key alone
    only_deletes = are_all_attributes and (feed.op is not None or feed.delete_when is not None) and columns.types is None
    return {} if only_deletes else found


def _is_tabular(feed: Feed) -> bool:
    """Whether every record of the feed should have every column: not so for partial JSON, messages and documents."""
    if feed.is_change_stream or feed.envelope == "payload":
        return False
    return feed.load_type == "FULL" or not isinstance(feed.source, FilesSource) or feed.source.format != "json"


def _fail(feed: Feed, policy: str, columns: Iterable[str], verb: str) -> None:
    named = tuple(columns)
    if not named or getattr(feed.drift, policy) != "fail":
        return
    who = "the entity" if policy == "new_columns" else "the batch"
    message = f"feed {feed.name}: {who} {verb} column {', '.join(named)}"
    remedy = f"declare or map the column, mend the source, or set drift.{policy} of the feed to keep, warn or quarantine"
    raise ContractBreach(message, remedy=remedy, feed=feed.name, columns=named)
