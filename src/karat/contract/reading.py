"""How one batch is read: what all steps from images to statements need to know of the declaration and of the batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyspark.sql import types as T

from karat.config.declared.entity import Feed
from karat.config.resolved import Entity, FeedOf
from karat.contract.drift import Drift
from karat.contract.incoming import Incoming
from karat.contract.wanted import Wanted, failure_of, setting, value_of
from karat.sources.raw import text_of
from karat.temporal.columns import quoted
from karat.temporal.sql import Sql, literal

NEVER: Final[Sql] = "false"
"""A condition that no row meets; what hangs on it alone is left out of the plan."""


@dataclass(frozen=True)
class Reading:
    """A batch of one feed on its way to statements."""

    entity: Entity
    feed_of: FeedOf
    ingest_ts: datetime
    columns: Incoming
    drift: Drift
    wanted: Wanted
    types: Mapping[str, T.DataType]
    """The types of the computed values."""
    may_fail: frozenset[str] = frozenset()
    """The values that computing may fail for; those of fields that are just there cannot."""

    @property
    def feed(self) -> Feed:
        """The feed as declared."""
        return self.feed_of.feed

    @property
    def is_evidence_only(self) -> bool:
        """Whether the feed is graded REJECT: whatever can be read is kept, and none of it held against a rule."""
        return self.feed_of.grading.is_rejected

    @property
    def keeps_misfits(self) -> bool:
        """Whether a value that does not fit its attribute goes to `extra` instead of refusing the row."""
        return self.is_evidence_only or self.feed.drift.type_changes in {"keep", "ignore", "warn"}

    def ddl(self, name: str) -> str:
        """The declared type of a key column or attribute."""
        declared = self.entity.declared
        return declared.key[name] if name in declared.key else declared.attributes[name]

    def wants(self, name: str) -> bool:
        """Whether the feed has this setting."""
        return setting(name) in self.wanted

    def value(self, name: str) -> Sql:
        """The value computed for a key column, an attribute or a setting."""
        return quoted(value_of(name))

    def failed(self, name: str) -> Sql:
        """Whether computing it failed."""
        return quoted(failure_of(name)) if name in self.may_fail else NEVER

    def is_text(self, name: str) -> bool:
        """Whether the value is a text and is wanted as one, so that there is nothing to cast."""
        return isinstance(self.types[name], T.StringType) and self.ddl(name).strip().lower() == "string"

    def fitted(self, name: str) -> Sql:
        """The value in its declared type; null where it does not fit."""
        return self.value(name) if self.is_text(name) else quoted(fitted_of(name))

    def misfit(self, name: str) -> Sql:
        """Whether there is a value that does not fit, or that could not be computed; of an attribute only where it is said."""
        if not self.is_text(name):
            return quoted(misfit_of(name))
        if self.failed(name) == NEVER or name in self.entity.key:
            return self.failed(name)
        return f"({self.failed(name)} AND {quoted(said_of(name))})"

    def text(self, name: str) -> Sql:
        """The same as text."""
        return text_of(self.value(name), self.types[name])


def said_of(name: str) -> str:
    """Working: whether a row says something about an attribute."""
    return f"__karat_said_{name}"


def cast_of(name: str) -> str:
    """Working: the value in its declared type, as near as it comes."""
    return f"__karat_cast_{name}"


def fitted_of(name: str) -> str:
    """Working: the value in its declared type; null where it does not fit."""
    return f"__karat_fitted_{name}"


def misfit_of(name: str) -> str:
    """Working: whether the value does not fit its declared type."""
    return f"__karat_misfit_{name}"


def shown(text: Sql) -> Sql:
    """A value in a message: in quotes, and not longer than a line."""
    cut = f"if(char_length({text}) > {LONGEST}, concat(left({text}, {LONGEST}), '…'), {text})"
    quote = literal("'")
    return f"coalesce(concat({quote}, {cut}, {quote}), 'nothing')"


LONGEST = 80
"""How much of a value a message shows."""
