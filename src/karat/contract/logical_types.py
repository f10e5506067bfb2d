"""Values as Kafka Connect writes them, by the schema around a message: days and microseconds since 1970, decimals as bytes in base64.

Without its schema such a message has plain numbers, and nobody can tell the units: then the feed's `map` says what they are.
"""

from typing import Final

from karat.temporal.sql import Sql, let, literal

_SCHEMA: Final = (
    "STRUCT<fields: ARRAY<STRUCT<field: STRING, fields: ARRAY<STRUCT<field: STRING, name: STRING, parameters: MAP<STRING, STRING>>>>>>"
)
_DAYS: Final = ("io.debezium.time.Date", "org.apache.kafka.connect.data.Date")
_MICROS: Final = {
    "io.debezium.time.Timestamp": "try_multiply(try_cast(value AS BIGINT), 1000L)",
    "org.apache.kafka.connect.data.Timestamp": "try_multiply(try_cast(value AS BIGINT), 1000L)",
    "io.debezium.time.MicroTimestamp": "try_cast(value AS BIGINT)",
    "io.debezium.time.NanoTimestamp": "try_divide(try_cast(value AS DECIMAL(20,0)), 1000)",
}
"""Logical type to the microseconds since 1970 that a value of it stands for."""
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_OF_ANY_SCALE: Final = "io.debezium.data.VariableScaleDecimal"
_TWO_TO_64: Final = "CAST('18446744073709551616' AS DECIMAL(20,0))"


def image_types(schema: Sql) -> Sql:
    """The columns of an image with their logical types, from the text of a message's schema; null when there is none."""
    return f"get(filter(from_json({schema}, '{_SCHEMA}').fields, part -> part.field = 'after'), 0).fields"


def plain(image: Sql, types: Sql) -> Sql:
    """The image, a map of texts, with every value as people write it; one that its type does not explain stays as it is."""
    known = f"get(filter({types}, column -> column.field = name), 0)"
    told = let("kind", known, _told())
    return f"if({types} IS NULL, {image}, transform_values({image}, (name, value) -> coalesce({told}, value)))"


def _told() -> Sql:
    """The value as text, by its `kind`."""
    days = ", ".join(map(literal, _DAYS))
    cases = [f"WHEN kind.name IN ({days}) THEN CAST(date_add(DATE'1970-01-01', try_cast(value AS INT)) AS STRING)"]
    for name, micros in _MICROS.items():
        cases.append(f"WHEN kind.name = {literal(name)} THEN CAST(timestamp_micros(CAST({micros} AS BIGINT)) AS STRING)")
    fixed = _decimal("value", "try_cast(kind.parameters['scale'] AS INT)")
    cases.append(f"WHEN kind.name = {literal(_DECIMAL)} THEN {fixed}")
    variable = _decimal("get_json_object(value, '$.value')", "try_cast(get_json_object(value, '$.scale') AS INT)")
    cases.append(f"WHEN kind.name = {literal(_OF_ANY_SCALE)} THEN {variable}")
    return f"CASE {' '.join(cases)} END"


def _decimal(text: Sql, scale: Sql) -> Sql:
    """Bytes of a number, the highest first, in two's complement; taken as two halves of 64 bits, since Spark knows no longer ones."""
    digits = f"hex(try_to_binary({text}, 'base64'))"
    halves = "lpad(digits, 32, if(substring(digits, 1, 1) >= '8', 'F', '0'))"
    high = f"CAST(conv(substring({halves}, 1, 16), 16, -10) AS DECIMAL(20,0))"
    low = f"CAST(conv(substring({halves}, 17, 16), 16, 10) AS DECIMAL(20,0))"
    number = f"try_add(try_multiply({high}, {_TWO_TO_64}), {low})"
    written = let("number", number, _placed(scale))
    return let("digits", digits, f"if(length(digits) BETWEEN 2 AND 32, {written}, NULL)")


def _placed(scale: Sql) -> Sql:
    """A whole `number` with its decimal point set."""
    padded = f"lpad(CAST(abs(number) AS STRING), greatest(length(CAST(abs(number) AS STRING)), {scale} + 1), '0')"
    point = f"concat(left(padded, length(padded) - {scale}), if({scale} > 0, concat('.', right(padded, {scale})), ''))"
    return f"if({scale} >= 0, concat(if(number < 0, '-', ''), {let('padded', padded, point)}), NULL)"
