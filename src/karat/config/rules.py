"""The rules of a belief as values: which sources are allowed on which attributes, and which candidate wins."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

By = Literal["precedence", "recency"]


@dataclass(frozen=True)
class Group:
    """Attributes that are decided by the same criteria."""

    attributes: tuple[str, ...]
    by: By = "precedence"
    sources: Mapping[str, int] | None = None
    """Source to rank, higher wins; None: every source, with the rank of its statement."""
    nulls: Literal["skip", "count"] = "skip"


@dataclass(frozen=True)
class Authority:
    """Which sources decide whether an entity is deleted."""

    by: By = "precedence"
    sources: Mapping[str, int] | None = None
    """As in a group."""


@dataclass(frozen=True)
class Rule:
    """One version of the rules."""

    version: int
    in_force_from: datetime
    groups: Mapping[str, Group]
    delete: Authority = Authority()

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that this version decides."""
        return tuple(attribute for group in self.groups.values() for attribute in group.attributes)

    def on(self, attribute: str) -> tuple[str | None, Group | Authority | None]:
        """The group that decides the attribute, or `delete` for `is_deleted`, with its name; None where no source is allowed."""
        if attribute == "is_deleted":
            return "delete", self.delete
        return next(((name, group) for name, group in self.groups.items() if attribute in group.attributes), (None, None))

    @property
    def content_hash(self) -> str:
        """A hash that changes with anything that decides a belief; names of groups and the order of attributes do not count."""
        groups = sorted((asdict(group) for group in self.groups.values()), key=lambda group: sorted(group["attributes"]))
        content = [self.version, self.in_force_from.isoformat(), [_sorted(group) for group in groups], asdict(self.delete)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def in_force(rules: Iterable[Rule], known_at: datetime) -> Rule | None:
    """The last version that had begun by then; None before the first."""
    begun = (rule for rule in rules if rule.in_force_from <= known_at)
    return max(begun, key=lambda rule: (rule.in_force_from, rule.version), default=None)


def _sorted(group: dict[str, object]) -> dict[str, object]:
    return {**group, "attributes": sorted(group["attributes"])}  # type: ignore[call-overload]
