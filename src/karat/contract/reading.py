"""How one batch is read: what all steps from images to statements need to know of the declaration and of the batch."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import types as T

from karat.config.entity import Feed, FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.drift import Drift
from karat.contract.incoming import Incoming
from karat.contract.wanted import Wanted, setting, value_of
from karat.sources.raw import text_of
from karat.temporal.columns import quoted
from karat.temporal.sql import Sql, literal


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

    @property
    def tells_presence(self) -> bool:
        """Whether a record shows by its own fields what it says; elsewhere a null is all there is to see."""
        is_json = isinstance(self.feed.source, FilesSource) and self.feed.source.format == "json"
        return self.feed.is_change_stream or (is_json and self.feed.envelope == "flat")

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

    def text(self, name: str) -> Sql:
        """The same as text."""
        return text_of(self.value(name), self.types[name])


def shown(text: Sql) -> Sql:
    """A value in a message: in quotes, and not longer than a line."""
    cut = f"if(char_length({text}) > {LONGEST}, concat(left({text}, {LONGEST}), '…'), {text})"
    quote = literal("'")
    return f"coalesce(concat({quote}, {cut}, {quote}), 'nothing')"


LONGEST = 80
"""How much of a value a message shows."""
