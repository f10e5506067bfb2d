"""Expressions as SQL text, for what is written once per column.

Every call of a column function is three round trips to the JVM, and a wide table needs thousands of them; a text is parsed there in one.
"""

from collections.abc import Iterable
from typing import Final

Sql = str
"""Text that Spark parses as an expression; names in it are quoted, values are literals."""

NO_TEXT: Final[Sql] = "CAST(NULL AS STRING)"
"""A null where a text would be."""


def literal(text: str) -> Sql:
    """A text as a literal, whatever letters it has."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def texts(values: Iterable[str]) -> Sql:
    """Several texts as an array; of type text when there are none, too."""
    listed = ", ".join(map(literal, values))
    return f"array({listed})" if listed else "CAST(array() AS ARRAY<STRING>)"


def let(name: str, value: Sql, then: Sql) -> Sql:
    """`then`, in which the name stands for the value, computed once."""
    return f"get(transform(array({value}), {name} -> {then}), 0)"


def every(conditions: Iterable[Sql]) -> Sql:
    """Whether all of them hold."""
    return " AND ".join(f"({condition})" for condition in conditions) or "true"


def some(conditions: Iterable[Sql]) -> Sql:
    """Whether one of them holds."""
    return " OR ".join(f"({condition})" for condition in conditions) or "false"
