"""What a feed's settings want of every record: one expression per column and per setting."""

from collections.abc import Mapping
from types import MappingProxyType

from karat.config.declared.entity import Feed, LoadTypeColumn
from karat.config.resolved import Entity
from karat.contract.expressions import Expression
from karat.temporal.columns import quoted

Wanted = Mapping[str, Expression]
"""Column or setting to what it is computed from."""


def wanted_columns(entity: Entity, feed: Feed) -> Wanted:
    """Each key column and attribute: as mapped, else the column of that name."""
    return MappingProxyType(
        {
            name: Expression(f"map.{name}", feed.map[name]) if name in feed.map else Expression(name, quoted(name))
            for name in (*entity.key, *entity.attributes)
        }
    )


def wanted_settings(feed: Feed) -> Wanted:
    """The settings that are read from the record."""
    load_type = feed.load_type.column if isinstance(feed.load_type, LoadTypeColumn) else None
    given = {
        "event_time": feed.event_time,
        "sequence": feed.sequence,
        "op": feed.op,
        "asserted": feed.asserted,
        "delete_when": feed.delete_when,
        "snapshot_of": feed.snapshot_of,
        "load_type": load_type,
    }
    return MappingProxyType({setting(name): Expression(name, text) for name, text in given.items() if text is not None})


def setting(name: str) -> str:
    """A setting among the columns; the sign keeps it apart from an attribute of the same name."""
    return f"@{name}"


def value_of(name: str) -> str:
    """Working: where the value computed for a column or setting stands."""
    return f"__karat_value_{name}"


def failure_of(name: str) -> str:
    """Working: whether computing it failed."""
    return f"__karat_failure_{name}"
