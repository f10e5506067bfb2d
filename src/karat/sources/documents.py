r"""JSON text to fields, exactly: Spark's `from_json` reads 1.10 as 1.1 and a number of 38 digits as 1.2E37.

So numbers it would touch are first put in quotes behind a mark that no JSON text holds raw, and the mark is taken off what comes out:

    {"a": 1.10, "b": [2.50]}  →  {"a": "␁1.10", "b": ["␁2.50"]}  →  a = ␁1.10, b = ["␁2.50"]  →  a = 1.10, b = [2.50]
"""

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.temporal.columns import col

_MARK: Final = "\x01"
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+\-]?[0-9]++)?+"
_TOUCHED: Final = r"[0-9](?:[.eE]|[0-9]{17})|-0(?![0-9])"
"""What may be written otherwise when it comes out: fractions, exponents, more digits than a long is sure to hold."""
# \G makes each match begin where the last one ended, so that texts in quotes are always passed over whole. Everything is possessive:
# a quantifier that may step back is recursive in Java, and a long document would overflow its stack.
_NEXT_NUMBER: Final = rf'\G((?:[^"0-9\-]++|"(?:[^"\\]++|\\.)*+")*+)({_NUMBER})'
_STRICT: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
_AROUND: Final = " \t\r\n\ufeff"


def let(value: Column, then: Callable[[Column], Column]) -> Column:
    """A value computed once, however often what follows speaks of it: Spark would write it out at each place and compute it there."""
    return F.get(F.transform(F.array(value), then), F.lit(0))


def bare(text: Column) -> Column:
    """The text without a byte order mark and the white space around it."""
    return F.btrim(text, F.lit(_AROUND))


def with_objects(rows: DataFrame, texts: Mapping[str, Column]) -> DataFrame:
    """Rows with new columns: the fields of JSON objects as map<string,string>; null for a text that is not exactly one object.

    Texts in an object come unquoted, nested values as JSON; of a field that is there twice both entries are kept. Each step is a
    projection of its own: its result is used more than once, so Spark does not write the parser out at every use. Grain: unchanged.
    """
    if not texts:
        return rows
    others = [col(name) for name in rows.columns]
    given = rows.select(*others, *(text.alias(_text(name)) for name, text in texts.items()))
    marked = given.select(*others, *(_marked(col(_text(name))).alias(_text(name)) for name in texts))
    parsed = marked.select(*others, *(col(_text(name)) for name in texts), *(_documents_of(name).alias(_parsed(name)) for name in texts))
    return parsed.select(*others, *(_only_one(name).alias(name) for name in texts))


def has_field_twice(fields: Column) -> Column:
    """Whether the object such a map comes from says the same field twice."""
    return F.size(F.array_distinct(F.map_keys(fields))) < F.size(fields)


def json_at(text: Column, path: str) -> Column:
    """The value at a JSON path, exact; null when there is none."""
    return let(F.get_json_object(let(text, _marked), path), _unmarked)


def is_json(text: Column) -> Column:
    """Whether the text is exactly one JSON object or array."""
    documents = F.from_json(F.concat(F.lit("["), text, F.lit("]")), "array<string>", _STRICT)
    return F.coalesce(bare(text).rlike(r"^[{\[]") & (F.size(documents) == 1), F.lit(False))


def _text(name: str) -> str:
    return f"{name}_text"


def _parsed(name: str) -> str:
    return f"{name}_parsed"


def _documents_of(name: str) -> Column:
    """The documents of a text, as the parts of an array: so that one too many, or anything behind the first, is noticed."""
    return F.from_json(F.concat(F.lit("["), col(_text(name)), F.lit("]")), "array<map<string,string>>", _STRICT)


def _only_one(name: str) -> Column:
    found = F.get(col(_parsed(name)), F.lit(0))
    # values are gone through only where the text holds a mark
    exact = F.when(col(_text(name)).contains("\\u0001"), F.transform_values(found, lambda _, value: _unmarked(value))).otherwise(found)
    return F.when(F.size(col(_parsed(name))) == 1, exact)


def _marked(text: Column) -> Column:
    return F.when(text.rlike(_TOUCHED), F.regexp_replace(text, _NEXT_NUMBER, r'$1"\\u0001$2"')).otherwise(text)


def _unmarked(value: Column) -> Column:
    nested = F.regexp_replace(value, rf'"\\u0001({_NUMBER})"', "$1")
    return (
        F.when(value.startswith(_MARK) & value.rlike(rf"^{_MARK}{_NUMBER}$"), F.substring(value, F.lit(2), F.length(value)))
        .when(value.contains("\\u0001"), nested)
        .otherwise(value)
    )
