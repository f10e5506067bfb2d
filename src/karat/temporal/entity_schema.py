"""What must be known of an entity to make a timeline of what is said about it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import types as T

from karat.temporal.columns import Names, quoted


@dataclass(frozen=True)
class EntitySchema:
    """The entity's columns, its sources, and how inherited values behave."""

    key: Mapping[str, T.DataType]
    attributes: Mapping[str, T.DataType]
    sources: Names
    """Every source system with statements."""
    untracked: frozenset[str] = frozenset()
    is_transaction: bool = False
    propagate: bool = False
    """Whether inherited values follow statements that arrive late; otherwise they stay as reconstructed on arrival."""

    @property
    def tracked(self) -> Names:
        """The attributes whose change opens a version, in the order their hash takes them."""
        return tuple(sorted(name for name in self.attributes if name not in self.untracked))


def types_of(columns: Mapping[str, str]) -> dict[str, T.DataType]:
    """Declared DDL types as Spark's own; needs a running session only for Spark's parser."""
    ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    parsed = T.StructType.fromDDL(ddl)
    return {field.name: field.dataType for field in parsed.fields} if isinstance(parsed, T.StructType) else {}
