"""Values to declared types: a value fits, or it is told that it does not; it is never bent."""

import re
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.contract.attempt import attempted, outcome
from karat.contract.times import BEGINS_WITH_A_DATE, is_in_range
from karat.sources.raw import text_of
from karat.temporal.sql import Sql, literal

_LENGTH: Final = re.compile(r"(?:var)?char\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_DECIMAL_TEXT: Final = r"^\s*[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?\s*$"
_EXACT: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType)
_NUMERIC: Final = (*_EXACT, T.FloatType, T.DoubleType)


def declared_type(ddl: str) -> T.DataType:
    """The type a declaration names; char and varchar are strings with a length."""
    return T.StringType() if _LENGTH.fullmatch(ddl.strip()) else T.DataType.fromDDL(ddl)


def cast_to(value: Sql, held: T.DataType, ddl: str) -> Column:
    """The value in the declared type, as near as it comes; null where it has none or there is no way."""
    wanted = declared_type(ddl)
    if isinstance(held, T.StringType) and _is_nested(wanted):
        # strict, since the lenient way answers with nulls inside
        text = F.expr(value)
        return F.when(text.isNotNull(), outcome(attempted(lambda: F.from_json(text, ddl, {"mode": "FAILFAST"}))))
    return F.expr(value).try_cast(wanted)


def comparable(rows: DataFrame, value: Sql, held: T.DataType, ddl: str) -> tuple[Sql, T.DataType]:
    """The value as something that can be cast at all: itself, or its text where Spark knows no way between the two types."""
    if isinstance(held, T.StringType):
        return value, held
    try:
        rows.select(F.expr(value).try_cast(declared_type(ddl))).schema  # noqa: B018  (asking for the schema is what makes Spark look)
    except AnalysisException:
        return text_of(value, held), T.StringType()
    return value, held


def fits(value: Sql, cast: Sql, held: T.DataType, ddl: str) -> Sql:
    """Whether the cast value is the value, and one that every reader of the table can hold; not true for a null."""
    wanted, text = declared_type(ddl), isinstance(held, T.StringType)
    if length := _LENGTH.fullmatch(ddl.strip()):
        return f"char_length({cast}) <= {int(length[1])}"
    tells_a_day = f" AND rlike({value}, {literal(BEGINS_WITH_A_DATE)})" if text else ""
    match wanted:
        case T.DateType():
            return f"year({cast}) BETWEEN 1 AND 9999{tells_a_day}"
        case T.TimestampType() | T.TimestampNTZType():
            return is_in_range(f"CAST({cast} AS TIMESTAMP)") + tells_a_day
        case T.DecimalType() if text:
            return f"{_places(value)} <= {wanted.scale}"
        case _ if isinstance(wanted, _EXACT) and isinstance(held, _NUMERIC):
            return f"{cast} = {value}"
    return f"{cast} IS NOT NULL"


def _places(text: Sql) -> Sql:
    """How many decimal places a number's text needs: 1.50 one, 12e-3 three, 1.5e2 none."""
    whole, digits, power = (f"regexp_extract({text}, {literal(_DECIMAL_TEXT)}, {group})" for group in (1, 2, 3))
    fraction = f"regexp_replace({digits}, '0+$', '')"
    zeros = f"if({fraction} = '', length({whole}) - length(regexp_replace({whole}, '0+$', '')), 0)"
    return f"(length({fraction}) - {zeros} - coalesce(try_cast({power} AS INT), 0))"


def _is_nested(data_type: T.DataType) -> bool:
    return isinstance(data_type, (T.ArrayType, T.MapType, T.StructType))
