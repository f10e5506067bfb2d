"""How the statements about an entity are read: its key, its attributes and their types."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Row = Mapping[str, Any]
"""A row under its table's column names: times aware, hashes bytes, `inherited` a mapping of mappings."""


@dataclass(frozen=True)
class EntitySchema:
    """The key, the attributes and the options of an entity."""

    key: tuple[str, ...]
    attributes: tuple[str, ...]
    """All of them, the untracked ones included."""
    types: Mapping[str, str]
    """Attribute to Spark DDL type: `string`, `decimal(10,2)`, `timestamp`."""
    untracked: frozenset[str] = frozenset()
    """Attributes that open no version and are in no hash."""
    entity_type: Literal["state", "transaction"] = "state"
    late_partials: Literal["pinned", "propagate"] = "pinned"
