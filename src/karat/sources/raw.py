"""The raw frame: what every reader hands over, whatever the format. Grain: one row per record.

A record of a text format (json, csv) is a map from field to exact text; a record of a typed one (parquet, tables) keeps its
typed columns next to it. A record without fields and without a fault is a tombstone: nothing was said.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.columns import col, quoted
from karat.temporal.sql import NO_TEXT, Sql

LINE: Final = "__karat_line"
"""Working: the record's own text, where it has one: a line of JSON, a document, a malformed row of a csv file."""

FIELDS: Final = "__karat_fields"
"""Working: map from field to its exact text; a field that is there without a value has a null, one that is not there no key."""

ROW: Final = "__karat_row"
"""Working: the typed columns as a struct; only frames of typed formats have it."""

PATH: Final = "__karat_path"
"""Working: where the record was read, in full."""

FILE: Final = "__karat_file"
"""Working: the name of its file; null for a table's row."""

BROKEN: Final = "__karat_broken"
"""Working: why the record cannot be read; null for one that can."""

CHANGE: Final = "__karat_change"
"""Working: what a change feed says happened: insert, update_preimage, update_postimage, delete; only frames of change feeds have it."""

BEFORE: Final = "update_preimage"
"""The change that is a row as it was before an update."""

GONE: Final = ("delete", BEFORE)
"""Changes that end a row; of an update only if no row of the same key takes its place."""

COMMIT: Final = "__karat_commit"
"""Working: the commit of a change, by number; comes with CHANGE."""

COMMITTED_AT: Final = "__karat_committed_at"
"""Working: when a change was committed; comes with CHANGE."""

FIELDS_TYPE: Final = T.MapType(T.StringType(), T.StringType())


def no_text() -> Column:
    """A null where a text would be."""
    return F.expr(NO_TEXT)


def is_typed(rows: DataFrame) -> bool:
    """Whether the records have typed columns, not only texts."""
    return ROW in rows.columns


def fields_of(names: tuple[str, ...], values: list[Column]) -> Column:
    """The map of a record whose columns are known by name."""
    return F.map_from_arrays(F.array(*(F.lit(name) for name in names)), F.array(*values))


def text_of(value: Sql, data_type: T.DataType) -> Sql:
    """A typed value as text that keeps everything: nested ones as JSON, bytes as base64."""
    match data_type:
        case T.StringType():
            return value
        case T.BinaryType():
            return f"base64({value})"
        case T.ArrayType() | T.MapType() | T.StructType():
            return f"to_json({value}, map('ignoreNullFields', 'false'))"
        case T.VariantType():
            return f"to_json({value})"
        case _:
            return f"CAST({value} AS STRING)"


def typed_record(rows: DataFrame, *, without: tuple[str, ...] = ()) -> tuple[Column, Column]:
    """FIELDS and ROW of rows with typed columns."""
    chosen = [field for field in rows.schema if field.name not in without]
    names = tuple(field.name for field in chosen)
    fields = fields_of(names, [F.expr(text_of(quoted(field.name), field.dataType)) for field in chosen])
    return fields, F.struct(*(col(name) for name in names))
