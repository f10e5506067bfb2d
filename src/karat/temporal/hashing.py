r"""Values to canonical text, text to hashes: the same value gives the same hash in every run and every Spark.

Parts are joined by `|`. Inside a part `\` and `|` are escaped by `\`, a null is `__NULL__` and a text that reads
`__NULL__` is written `\__NULL__`: so ("a|b", "c") is not ("a", "b|c"), and nothing is mistaken for nothing.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.columns import col

NULL_TEXT: Final = "__NULL__"
SEPARATOR: Final = "|"
DECIMAL_SCALE: Final = 6
"""Decimals are written with at least this many places, so a column that gains places keeps its hashes."""


def hash_of(names: Sequence[str], schema: T.StructType, algorithm: str) -> Column:
    """The hash of the named columns in the order given, as lower-case hex; a column the schema lacks counts as null."""
    types = {field.name.lower(): field.dataType for field in schema}
    parts = [canonical(col(name), types[name.lower()]) if name.lower() in types else F.lit(NULL_TEXT) for name in names]
    text = F.concat_ws(SEPARATOR, *parts) if parts else F.lit("")
    return F.md5(text) if algorithm == "md5" else F.sha2(text, 256)


def canonical(value: Column, data_type: T.DataType) -> Column:
    """The value as text that is equal exactly when the value is; never null."""
    text = _text(value, data_type)
    escaped = F.replace(F.replace(text, F.lit("\\"), F.lit("\\\\")), F.lit(SEPARATOR), F.lit("\\" + SEPARATOR))
    told_apart = F.when(escaped == NULL_TEXT, F.lit("\\" + NULL_TEXT)).otherwise(escaped)
    return F.coalesce(told_apart, F.lit(NULL_TEXT))


def _text(value: Column, data_type: T.DataType) -> Column:  # noqa: PLR0911  (one line per type)
    match data_type:
        case T.StringType():
            return F.trim(value)
        case T.TimestampType() | T.TimestampNTZType():
            return F.date_format(value, "yyyy-MM-dd HH:mm:ss.SSSSSS")
        case T.DecimalType():
            return _decimal_text(value, data_type.scale)
        case T.FloatType() | T.DoubleType():
            return F.when(value == 0, F.lit("0.0")).otherwise(value.cast("string"))
        case T.BinaryType():
            return F.lower(F.hex(value))
        case T.MapType():
            return F.to_json(F.array_sort(F.map_entries(value)), {"ignoreNullFields": "false"})
        case T.StructType() | T.ArrayType() | T.VariantType():
            return F.to_json(value, {"ignoreNullFields": "false"})
        case _:
            return value.cast("string")


def _decimal_text(value: Column, scale: int) -> Column:
    """Plain digits with a fixed number of places; padded as text, since a cast to more places could overflow."""
    digits = value.cast("string")
    if scale >= DECIMAL_SCALE:
        return digits
    padding = "0" * (DECIMAL_SCALE - scale)
    return F.concat(digits, F.lit(padding if scale else f".{padding}"))
