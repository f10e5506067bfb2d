r"""Canonical text of values and the hash of a state: what counts as the same state.

The text of a state is `name=value||name=value`, names in order, nulls left out; inside names and values `\`, `|` and `=` are escaped.
So a new attribute without values changes no hash, while a value that becomes null does.
"""

import hashlib
import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

from karat.reference.schema import EntitySchema

_ESCAPED: Final = str.maketrans({"\\": "\\\\", "|": "\\|", "=": "\\="})
_PLAIN_EXPONENTS: Final = range(-3, 7)  # Java writes numbers from 0.001 up to ten million without an exponent


def attr_hash(values: Mapping[str, Any], schema: EntitySchema, *, deleted: bool = False) -> bytes:
    """The hash of the tracked attributes that are not null; of a delete, whatever it carries, the hash of the deletion alone."""
    pairs = (
        f"{name.translate(_ESCAPED)}={canonical(values[name], schema.types[name]).translate(_ESCAPED)}"
        for name in sorted(schema.attributes)
        if name not in schema.untracked and values.get(name) is not None
    )
    return hashlib.sha256(("__DELETED__" if deleted else "||".join(pairs)).encode()).digest()


def canonical(value: object, type_: str) -> str:  # noqa: PLR0911  (one line per type)
    """The value as text, the same that the Spark transforms write."""
    kind, _, arguments = type_.lower().replace(" ", "").partition("(")
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value.strip(" ")
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.isoformat(sep=" ", timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal() | int() if kind in {"decimal", "dec", "numeric"}:
            scale = int(arguments.rstrip(")").partition(",")[2] or 0)
            return f"{Decimal(value or 0):.{max(6, scale)}f}"  # at least six places: a column that gains places keeps its hashes
        case float() | int() if kind in {"float", "real", "double"}:
            return _java_text(float(value), single=kind != "double")
        case int():
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case _:
            raise TypeError(type_)  # nested values are beyond the oracle


def _java_text(value: float, *, single: bool) -> str:
    """`Double.toString` and `Float.toString`: 123.45, 1.0E10, 1.0E-5; minus zero is zero."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    number = Decimal(_shortest_single(value) if single else repr(value)).normalize() if value else Decimal(0)
    exponent = 0 if number.adjusted() in _PLAIN_EXPONENTS else number.adjusted()
    digits = f"{number.scaleb(-exponent):f}"
    return digits + ("" if "." in digits else ".0") + (f"E{exponent}" if exponent else "")


def _shortest_single(value: float) -> str:
    """The fewest digits that still mean the same 32-bit number."""
    candidates = (f"{value:.{digits}e}" for digits in range(9))
    return next(text for text in candidates if struct.pack("f", float(text)) == struct.pack("f", value))
