"""The columns of a batch as expressions see them: by name, exact before any case, and null where a record has none.

Records of text (json, csv) may each have other fields: every name that the feed's settings speak of is looked up record by record, so
nothing has to be read ahead to learn what the fields of a batch are. Typed records all have the columns of their table.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.contract.columns import DOCUMENT
from karat.contract.expressions import Expression
from karat.contract.field_paths import NAMED, FieldPath
from karat.contract.wanted import Wanted
from karat.sources.raw import BROKEN, CHANGE, COMMIT, COMMITTED_AT, FIELDS, FILE, ROW, is_typed
from karat.temporal.columns import quoted
from karat.temporal.sql import NO_TEXT, Sql, literal, texts

_WORKING: Final = {"_file": FILE, "_change_type": CHANGE, "_commit_version": COMMIT, "_commit_timestamp": COMMITTED_AT, "payload": DOCUMENT}
"""The names that expressions may use besides the record's own columns, and the working columns they stand for."""


@dataclass(frozen=True)
class Incoming:
    """Which columns the records of a batch have."""

    types: Mapping[str, T.DataType] | None
    """Of typed records; None where every column is a text."""
    working: Mapping[str, str]
    """Names besides the record's own columns: name to working column."""
    working_types: Mapping[str, T.DataType]
    names: tuple[str, ...] = ()
    """Names that settings speak of and that fields are found under; of typed records their columns."""
    whole: frozenset[str] = frozenset()
    """Settings that are a column's name, whatever they would mean in SQL."""

    def found(self, name: str) -> tuple[str, ...]:
        """The columns of typed records that a name means: the one of exactly this name, then those of it in another case."""
        same = (known for known in self.names if known.lower() == name.lower())
        return tuple(sorted(same, key=lambda known: (known != name, known)))

    def is_column(self, expression: Expression) -> bool:
        """Whether the whole text is a column's name."""
        return expression.text in self.whole if self.types is None else bool(self.found(expression.text))

    def paths(self, expression: Expression) -> tuple[tuple[str, ...], ...]:
        """The record's own fields that an expression uses, each as the names between its dots."""
        used = ((expression.text,),) if self.is_column(expression) else expression.paths
        return tuple(parts for parts in used if not (len(parts) == 1 and parts[0] in self.working))

    def referenced(self, expression: Expression) -> tuple[str, ...]:
        """The columns an expression speaks of: of `a.b` the column of that name if there is one or may be one, else `a`."""
        if self.is_column(expression):
            return (expression.text,)
        if self.types is None:
            return tuple(".".join(parts) for parts in expression.paths)
        chosen = (next((name for name in names if self.found(name)), names[-1]) for names in expression.references)
        return tuple(dict.fromkeys(chosen))

    def value(self, parts: Sequence[str]) -> Sql:
        """What a record says in this place; null where it says nothing."""
        name = ".".join(parts)
        if name in self.working:
            return self.working[name]
        if self.types is not None:
            found = self.found(name)
            return f"{ROW}.{quoted(found[0])}" if found else NO_TEXT
        value = self.field(parts).value
        for other in self._other_case(parts):
            value = f"if({self.field(parts).is_said}, {value}, {self.field(other).value})"
        return value

    def is_said(self, parts: Sequence[str]) -> Sql:
        """Whether a record of text says anything in this place, be it null."""
        said = self.field(parts).is_said
        return " OR ".join((said, *(self.field(other).is_said for other in self._other_case(parts))))

    def field(self, parts: Sequence[str]) -> FieldPath:
        """The field of a record of text."""
        return FieldPath(NAMED, tuple(parts))

    def type_of(self, name: str) -> T.DataType:
        """The type of what a record says under this name."""
        if name in self.working:
            return self.working_types[name]
        found = self.found(name)
        return T.StringType() if self.types is None or not found else self.types[found[0]]

    def _other_case(self, parts: Sequence[str]) -> list[tuple[str]]:
        """Names that settings speak of too and that differ in case alone."""
        if len(parts) > 1:
            return []
        return [(name,) for name in self.names if name.lower() == parts[0].lower() and name != parts[0]]


def incoming(image: DataFrame, wanted: Wanted, more: Collection[Expression] = ()) -> Incoming:
    """The columns of a batch, by what its feed's settings speak of."""
    working = {name: column for name, column in _WORKING.items() if column in image.columns}
    schema = image.schema
    working_types = {name: schema[column].dataType for name, column in working.items()}
    if is_typed(image):
        types = {field.name: field.dataType for field in _row_type(image)}
        return Incoming(types, working, working_types, tuple(types))
    expressions = [*wanted.values(), *more]
    whole = {each.text for each in expressions if each.is_no_sql} | _names_among(image, expressions)
    names = used_names(expressions, whole)
    return Incoming(None, working, working_types, tuple(name for name in names if name not in working), frozenset(whole))


def used_names(expressions: Collection[Expression], whole: Collection[str] = ()) -> tuple[str, ...]:
    """The names of fields that expressions speak of: of `a.b` the field of that name, and the one it may be inside of."""
    found: list[str] = []
    for each in expressions:
        if each.is_path:
            continue
        paths = ((each.text,),) if each.text in whole else each.paths
        found.extend(name for parts in paths for name in (".".join(parts), parts[0]))
    return tuple(dict.fromkeys(found))


def with_declared_names(image: DataFrame, columns: Incoming) -> DataFrame:
    """Records of text with NAMED: their fields, those of a name that settings speak of in another case under that name.

    Where a record has the name itself, too, a field in another case stays what it is: one that nobody declared. Of several in
    other cases the first counts. Grain: unchanged.
    """
    declared, lowered = texts(columns.names), texts(sorted({name.lower() for name in columns.names}))
    groups: dict[str, list[str]] = {}
    for name in sorted(columns.names):
        groups.setdefault(name.lower(), []).append(name)
    entries = ", ".join(f"{literal(low)}, {texts(group)}" for low, group in groups.items())
    if not groups:
        return image.select("*", F.col(FIELDS).alias(NAMED))
    mine = f"try_element_at(map({entries}), lower(name))"
    others = f"array_except(map_keys({FIELDS}), {declared})"
    same_case = f"size({others}) = 0 OR NOT arrays_overlap(transform({others}, name -> lower(name)), {lowered})"
    all_differ = f"size(array_distinct(transform(map_keys({FIELDS}), name -> lower(name)))) = size({FIELDS})"
    first = f"name = array_min(filter(map_keys({FIELDS}), other -> lower(other) = lower(name)))"
    renamed = f"if(arrays_overlap({mine}, map_keys({FIELDS})) OR NOT {first}, name, {mine}[0])"
    named = f"""CASE WHEN {BROKEN} IS NOT NULL THEN NULL WHEN {same_case} THEN {FIELDS}
        WHEN {all_differ} THEN transform_keys({FIELDS}, (name, value) -> coalesce({mine}[0], name))
        ELSE transform_keys({FIELDS}, (name, value) -> coalesce({renamed}, name)) END"""
    return image.select("*", F.expr(named).alias(NAMED))


def field_names(image: DataFrame) -> tuple[str, ...]:
    """The names of all fields the records have, in order; for records of text a job of its own."""
    if is_typed(image):
        return tuple(field.name for field in _row_type(image))
    every = image.agg(F.array_distinct(F.flatten(F.collect_set(F.map_keys(F.col(FIELDS)))))).collect()[0][0]
    return tuple(sorted(every))


def _names_among(image: DataFrame, expressions: Collection[Expression]) -> set[str]:
    """The settings that are names of fields although they read like SQL (`e-mail`); the records are asked only if there is such a one."""
    unsure = {each.text for each in expressions if each.may_be_a_name}
    return {text for text in unsure if text.lower() in {name.lower() for name in field_names(image)}} if unsure else set()


def _row_type(image: DataFrame) -> T.StructType:
    row = image.schema[ROW].dataType
    return row if isinstance(row, T.StructType) else T.StructType()
