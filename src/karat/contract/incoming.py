"""The columns of a batch as expressions see them: by name, exact before any case, and null where a record has none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.contract.columns import DOCUMENT
from karat.contract.expressions import Expression
from karat.sources.raw import CHANGE, COMMIT, COMMITTED_AT, FIELDS, FILE, ROW, is_typed
from karat.temporal.columns import quoted
from karat.temporal.sql import NO_TEXT, Sql, literal, some

_WORKING: Final = {"_file": FILE, "_change_type": CHANGE, "_commit_version": COMMIT, "_commit_timestamp": COMMITTED_AT, "payload": DOCUMENT}
"""The names that expressions may use besides the record's own columns, and the working columns they stand for."""


@dataclass(frozen=True)
class Incoming:
    """Which columns the records of a batch have."""

    names: tuple[str, ...]
    types: Mapping[str, T.DataType] | None
    """Of typed records; None where every column is a text."""
    working: Mapping[str, str]
    """Names besides the record's own columns: name to working column."""
    working_types: Mapping[str, T.DataType]

    def found(self, name: str) -> tuple[str, ...]:
        """The columns a name means: the one of exactly this name, then those of it in another case; a record's first one counts."""
        same = (known for known in self.names if known.lower() == name.lower())
        return tuple(sorted(same, key=lambda known: (known != name, known)))

    def value(self, name: str) -> Sql:
        """What a record says under this name; null where it says nothing."""
        if name in self.working:
            return self.working[name]
        found = self.found(name)
        if self.types is not None:
            return f"{ROW}.{quoted(found[0])}" if found else NO_TEXT
        value = _field(found[-1]) if found else NO_TEXT
        for earlier in reversed(found[:-1]):
            value = f"if({_has(earlier)}, {_field(earlier)}, {value})"
        return value

    def type_of(self, name: str) -> T.DataType:
        """The type of what a record says under this name."""
        if name in self.working:
            return self.working_types[name]
        found = self.found(name)
        return T.StringType() if self.types is None or not found else self.types[found[0]]

    def has(self, name: str) -> Sql:
        """Whether a record says anything under this name, be it null."""
        return "true" if name in self.working else _has_any(self.found(name))

    def unheard(self, name: str) -> Sql:
        """The fields of a record that this name could mean and that another one spoke for; an array."""
        found = self.found(name)
        after = [f"if({_has_any(found[:place])}, {literal(later)}, NULL)" for place, later in enumerate(found) if place]
        return f"array_intersect(array_compact(array({', '.join(after)})), map_keys({FIELDS}))"

    def referenced(self, expression: Expression) -> tuple[str, ...]:
        """The columns an expression speaks of: of `a.b` the column of that name if there is one, else `a`."""
        chosen = (next((name for name in names if self.found(name)), names[-1]) for names in expression.references)
        return tuple(dict.fromkeys(chosen))


def incoming(image: DataFrame, names: tuple[str, ...]) -> Incoming:
    """The columns of a batch whose names are known."""
    working = {name: column for name, column in _WORKING.items() if column in image.columns}
    types = {field.name: field.dataType for field in _row_type(image)} if is_typed(image) else None
    return Incoming(names, types, working, {name: image.schema[column].dataType for name, column in working.items()})


def field_names(image: DataFrame, *, few: bool = False) -> tuple[str, ...]:
    """The names of all fields the records have, in order; for records of text one small job, the smallest where they are few."""
    if is_typed(image):
        return tuple(field.name for field in _row_type(image))
    if few:  # all lists fit in one place
        every = image.agg(F.array_distinct(F.flatten(F.collect_set(F.map_keys(F.col(FIELDS)))))).collect()[0][0]
        return tuple(sorted(every))
    # most records have the same fields: to tell their lists apart first is cheaper than to take every one to pieces
    lists = image.select(F.map_keys(F.col(FIELDS)).alias("names")).distinct()
    found = lists.select(F.explode("names").alias("name")).distinct().collect()
    return tuple(sorted(row["name"] for row in found))


def _field(name: str) -> Sql:
    # not fields[name]: Spark takes that for cheap and looks it up again wherever the value is used
    return f"try_element_at({FIELDS}, {literal(name)})"


def _has(name: str) -> Sql:
    return f"map_contains_key({FIELDS}, {literal(name)})"


def _has_any(names: tuple[str, ...]) -> Sql:
    return f"coalesce({some(_has(name) for name in names)}, false)"


def _row_type(image: DataFrame) -> T.StructType:
    row = image.schema[ROW].dataType
    return row if isinstance(row, T.StructType) else T.StructType()
