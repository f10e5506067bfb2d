r"""Values to canonical text, text to hashes: the same value gives the same hash in every run and every Spark.

Parts are joined by `|`. Inside a part `\` and `|` are escaped by `\`, a null is `__NULL__` and a text that reads
`__NULL__` is written `\__NULL__`: so ("a|b", "c") is not ("a", "b|c"), and nothing is mistaken for nothing.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.columns import quoted
from karat.temporal.sql import Sql, literal

NULL_TEXT: Final = "__NULL__"
SEPARATOR: Final = "|"
DECIMAL_SCALE: Final = 6
"""Decimals are written with at least this many places, so a column that gains places keeps its hashes."""


def hash_of(names: Sequence[str], schema: T.StructType, algorithm: str) -> Column:
    """The hash of the named columns in the order given, as lower-case hex; a column the schema lacks counts as null."""
    types = {field.name.lower(): field.dataType for field in schema}
    parts = [canonical(quoted(name), types[name.lower()]) if name.lower() in types else literal(NULL_TEXT) for name in names]
    text = f"concat_ws({literal(SEPARATOR)}, {', '.join(parts)})" if parts else "''"
    return F.expr(f"md5({text})" if algorithm == "md5" else f"sha2({text}, 256)")


def canonical(value: Sql, data_type: T.DataType, depth: int = 0) -> Sql:
    """The value as text that is equal exactly when the value is; never null. `depth`: inside how many nested ones it stands."""
    escaped = escape(text_of(value, data_type, depth), "\\", SEPARATOR)
    if isinstance(data_type, T.StringType):  # the only one that can read like nothing
        escaped = f"if({escaped} = {literal(NULL_TEXT)}, {literal(chr(92) + NULL_TEXT)}, {escaped})"
    return f"coalesce({escaped}, {literal(NULL_TEXT)})"


def escape(text: Sql, *letters: str) -> Sql:
    """The text with a backslash before each of these letters."""
    for letter in letters:
        text = f"replace({text}, {literal(letter)}, {literal(chr(92) + letter)})"
    return text


def text_of(value: Sql, data_type: T.DataType, depth: int = 0) -> Sql:  # noqa: PLR0911  (one line per type)
    """The value as plain text, nothing escaped yet; null for null."""
    match data_type:
        case T.StringType():
            return f"trim({value})"
        case T.TimestampType():
            return _moment_text(_without_zone(value))
        case T.TimestampNTZType():
            return _moment_text(value)
        case T.DecimalType():
            return _decimal_text(value, data_type.scale)
        case T.FloatType() | T.DoubleType():
            return f"if({value} = 0, '0.0', CAST({value} AS STRING))"
        case T.BinaryType():
            return f"lower(hex({value}))"
        case T.MapType() | T.StructType() | T.ArrayType():
            return _nested_text(value, data_type, depth)
        case T.VariantType():
            return f"to_json({value})"
        case _:
            return f"CAST({value} AS STRING)"


def _nested_text(value: Sql, data_type: T.MapType | T.StructType | T.ArrayType, depth: int) -> Sql:
    """The parts' own canonical texts as JSON; a map's entries in order, since it has none of its own."""
    part, depth = f"part{depth}", depth + 1  # a lambda inside a lambda has a variable of its own
    match data_type:
        case T.ArrayType():
            return f"to_json(transform({value}, {part} -> {canonical(part, data_type.elementType, depth)}))"
        case T.StructType():
            parts = [canonical(f"{value}.{quoted(field.name)}", field.dataType, depth) for field in data_type]
            return f"if({value} IS NOT NULL, to_json(array({', '.join(parts)})), NULL)"
        case T.MapType():
            key, held = canonical(f"{part}.key", data_type.keyType, depth), canonical(f"{part}.value", data_type.valueType, depth)
            return f"to_json(array_sort(transform(map_entries({value}), {part} -> struct({key}, {held}))))"


def _without_zone(value: Sql) -> Sql:
    """A point in time as UTC's calendar has it, out of reach of the session's zone and its lost and doubled hours."""
    seconds = f"CAST(CAST(unix_micros({value}) AS DECIMAL(20,0)) / 1000000 AS DECIMAL(20,6))"
    return f"(TIMESTAMP_NTZ'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds}))"


def _moment_text(value: Sql) -> Sql:
    """`yyyy-MM-dd HH:mm:ss.SSSSSS` of a time without a zone; a cast, because formatting would go through the session's own zone."""
    text = f"CAST({value} AS STRING)"
    fraction = f"if(instr({text}, '.') > 0, substring_index({text}, '.', -1), '')"
    return f"concat(substring_index({text}, '.', 1), '.', rpad({fraction}, 6, '0'))"


def _decimal_text(value: Sql, scale: int) -> Sql:
    """Plain digits with a fixed number of places; padded as text, since a cast to more places could overflow.

    Spark writes a small number of many places as 1E-9 when ANSI is off: one is added to the places, so that no exponent appears.
    """
    if scale > DECIMAL_SCALE:
        one = "CAST(1 AS DECIMAL(1,0))"
        places = f"substring(CAST(abs({value} % {one}) + {one} AS STRING), 3, {scale})"
        whole = f"CAST(floor(abs({value})) AS STRING)"
        return f"if({value} IS NOT NULL, concat(if({value} < 0, '-', ''), {whole}, '.', {places}), NULL)"
    padding = "0" * (DECIMAL_SCALE - scale)
    return f"concat(CAST({value} AS STRING), {literal(padding if scale else f'.{padding}')})"
