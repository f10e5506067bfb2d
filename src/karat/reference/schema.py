"""What the history of an entity depends on besides what was said."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Row = Mapping[str, Any]
"""A row under its table's column names: times aware, hashes bytes, `inherited` a mapping of mappings."""


@dataclass(frozen=True)
class EntitySchema:
    """How the statements about one entity are read."""

    key: tuple[str, ...]
    attributes: tuple[str, ...]
    """All of them, the untracked ones included."""
    types: Mapping[str, str]
    """Attribute to Spark DDL type: `string`, `decimal(10,2)`, `timestamp`."""
    untracked: frozenset[str] = frozenset()
    """Attributes that ride along: they open no version and enter no hash."""
    entity_type: Literal["state", "transaction"] = "state"
    late_partials: Literal["pinned", "propagate"] = "pinned"
