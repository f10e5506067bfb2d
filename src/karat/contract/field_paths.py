"""Fields of JSON documents by the names on the way to them: what stands there, and whether the document says anything there.

Of {"data": {"status": "PAID", "note": null}, "gone": null}

data.status   says PAID
data.note     says null       an explicit null is said, at any depth
data.total    says nothing    what is not there is not said
gone.since    says null       a null in the place of an object is a null for everything in it
data.status.x says nothing    nothing can be inside a text or a number; a text that holds a JSON object counts as that object
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.sources.documents import with_objects
from karat.temporal.columns import quoted
from karat.temporal.sql import Sql, literal

NAMED: Final = "__karat_named"
"""Working: the fields of a record under the names its feed calls them by."""

ROOT: Final = "__karat_root"
"""Working: the fields of the document of a payload feed."""


@dataclass(frozen=True)
class FieldPath:
    """A field of a document: the column with the outermost object's fields, and the names from there."""

    root: str
    parts: tuple[str, ...]

    @property
    def value(self) -> Sql:
        """The text that stands there; null where nothing does."""
        return self._or_of_that_name(_field(self.object_at(len(self.parts) - 1), self.parts[-1]), _field)

    @property
    def is_said(self) -> Sql:
        """Whether the document says anything there, be it null."""
        return self._or_of_that_name(self._is_said_from(0), _has)

    @property
    def is_there(self) -> Sql:
        """Whether the record has the field, or the one it should be inside of."""
        return self._or_of_that_name(_has(self.root, self.parts[0]), _has)

    @property
    def objects(self) -> "tuple[FieldPath, ...]":
        """The objects on the way, the outermost first."""
        return tuple(FieldPath(self.root, self.parts[:depth]) for depth in range(1, len(self.parts)))

    @property
    def column(self) -> str:
        """Working: where the fields of the object at this path stand; Spark would not tell names apart that differ in case alone."""
        return "_".join((self.root, *(part.encode().hex() for part in self.parts)))

    def object_at(self, depth: int) -> str:
        """Working: where the fields of the object so many names down stand."""
        return FieldPath(self.root, self.parts[:depth]).column if depth else self.root

    def _is_said_from(self, depth: int) -> Sql:
        column, name = self.object_at(depth), self.parts[depth]
        if depth == len(self.parts) - 1:
            return _has(column, name)
        return f"({_has(column, name)} AND ({_field(column, name)} IS NULL OR {self._is_said_from(depth + 1)}))"

    def _or_of_that_name(self, nested: Sql, at: Callable[[str, str], Sql]) -> Sql:
        """A record's field may have dots in its name: then that is the one."""
        if len(self.parts) == 1 or self.root == ROOT:
            return nested
        name = ".".join(self.parts)
        return f"if({_has(self.root, name)}, {at(self.root, name)}, {nested})"


def with_inner_objects(rows: DataFrame, paths: Iterable[FieldPath]) -> DataFrame:
    """Rows with the fields of every object that a path leads through; each is parsed once. Grain: unchanged."""
    through = dict.fromkeys(inner for path in paths for inner in path.objects)
    for depth in sorted({len(inner.parts) for inner in through}):
        here = [inner for inner in through if len(inner.parts) == depth]
        rows = with_objects(rows, {inner.column: F.expr(_field(inner.object_at(depth - 1), inner.parts[-1])) for inner in here})
    return rows


def _field(column: str, name: str) -> Sql:
    # not column[name]: Spark takes that for cheap and looks it up again wherever the value is used
    return f"try_element_at({quoted(column)}, {literal(name)})"


def _has(column: str, name: str) -> Sql:
    return f"coalesce(map_contains_key({quoted(column)}, {literal(name)}), false)"
