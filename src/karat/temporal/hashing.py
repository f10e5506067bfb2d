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
    text = text_of(value, data_type)
    escaped = F.replace(F.replace(text, F.lit("\\"), F.lit("\\\\")), F.lit(SEPARATOR), F.lit("\\" + SEPARATOR))
    told_apart = F.when(escaped == NULL_TEXT, F.lit("\\" + NULL_TEXT)).otherwise(escaped)
    return F.coalesce(told_apart, F.lit(NULL_TEXT))


def text_of(value: Column, data_type: T.DataType) -> Column:  # noqa: PLR0911  (one line per type)
    """The value as plain text, nothing escaped yet; null for null."""
    match data_type:
        case T.StringType():
            return F.trim(value)
        case T.TimestampType():
            return _moment_text(_without_zone(value))
        case T.TimestampNTZType():
            return _moment_text(value)
        case T.DecimalType():
            return _decimal_text(value, data_type.scale)
        case T.FloatType() | T.DoubleType():
            return F.when(value == 0, F.lit("0.0")).otherwise(value.cast("string"))
        case T.BinaryType():
            return F.lower(F.hex(value))
        case T.MapType() | T.StructType() | T.ArrayType():
            return _nested_text(value, data_type)
        case T.VariantType():
            return F.to_json(value)
        case _:
            return value.cast("string")


def _nested_text(value: Column, data_type: T.MapType | T.StructType | T.ArrayType) -> Column:
    """The parts' own canonical texts as JSON; a map's entries in order, since it has none of its own."""
    match data_type:
        case T.ArrayType():
            return F.to_json(F.transform(value, lambda item: canonical(item, data_type.elementType)))
        case T.StructType():
            parts = [canonical(value.getField(field.name), field.dataType) for field in data_type]
            return F.when(value.isNotNull(), F.to_json(F.array(*parts)))
        case T.MapType():
            entries = F.transform(
                F.map_entries(value),
                lambda entry: F.struct(canonical(entry["key"], data_type.keyType), canonical(entry["value"], data_type.valueType)),
            )
            return F.to_json(F.array_sort(entries))


def _without_zone(value: Column) -> Column:
    """A point in time as UTC's calendar has it, out of reach of the session's zone and its lost and doubled hours."""
    seconds = (F.unix_micros(value).cast("decimal(20,0)") / F.lit(1_000_000)).cast("decimal(20,6)")
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + F.make_dt_interval(secs=seconds)


def _moment_text(value: Column) -> Column:
    """`yyyy-MM-dd HH:mm:ss.SSSSSS` of a time without a zone; a cast, because formatting would go through the session's own zone."""
    text = value.cast("string")
    fraction = F.when(F.instr(text, ".") > 0, F.substring_index(text, ".", -1)).otherwise(F.lit(""))
    return F.concat(F.substring_index(text, ".", 1), F.lit("."), F.rpad(fraction, 6, "0"))


def _decimal_text(value: Column, scale: int) -> Column:
    """Plain digits with a fixed number of places; padded as text, since a cast to more places could overflow.

    Spark writes a small number of many places as 1E-9 when ANSI is off: one is added to the places, so that no exponent appears.
    """
    if scale > DECIMAL_SCALE:
        sign = F.when(value < 0, F.lit("-")).otherwise(F.lit(""))
        whole = F.floor(F.abs(value)).cast("string")
        places = F.substring(((F.abs(value % F.lit(1).cast("decimal(1,0)"))) + F.lit(1).cast("decimal(1,0)")).cast("string"), 3, scale)
        return F.when(value.isNotNull(), F.concat(sign, whole, F.lit("."), places))
    padding = "0" * (DECIMAL_SCALE - scale)
    return F.concat(value.cast("string"), F.lit(padding if scale else f".{padding}"))
