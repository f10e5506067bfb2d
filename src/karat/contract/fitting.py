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

_LENGTH: Final = re.compile(r"(?:var)?char\s*\(\s*(\d+)\s*\)", re.IGNORECASE)
_DECIMAL_TEXT: Final = r"^\s*[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?\s*$"
_EXACT: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.DecimalType)
_NUMERIC: Final = (*_EXACT, T.FloatType, T.DoubleType)


def declared_type(ddl: str) -> T.DataType:
    """The type a declaration names; char and varchar are strings with a length."""
    return T.StringType() if _LENGTH.fullmatch(ddl.strip()) else T.DataType.fromDDL(ddl)


def cast_to(value: Column, held: T.DataType, ddl: str) -> Column:
    """The value in the declared type, as near as it comes; null where it has none or there is no way."""
    wanted = declared_type(ddl)
    if isinstance(held, T.StringType) and _is_nested(wanted):
        # strict, since the lenient way answers with nulls inside
        return F.when(value.isNotNull(), outcome(attempted(lambda: F.from_json(value, ddl, {"mode": "FAILFAST"}))))
    return value.try_cast(wanted)


def comparable(rows: DataFrame, value: Column, held: T.DataType, ddl: str) -> tuple[Column, T.DataType]:
    """The value as something that can be cast at all: itself, or its text where Spark knows no way between the two types."""
    if isinstance(held, T.StringType):
        return value, held
    try:
        rows.select(value.try_cast(declared_type(ddl))).schema  # noqa: B018  (asking for the schema is what makes Spark look)
    except AnalysisException:
        return text_of(value, held), T.StringType()
    return value, held


def fits(value: Column, cast: Column, held: T.DataType, ddl: str) -> Column:
    """Whether the cast value is the value, and one that every reader of the table can hold; not true for a null."""
    wanted, text = declared_type(ddl), isinstance(held, T.StringType)
    if length := _LENGTH.fullmatch(ddl.strip()):
        return F.char_length(cast) <= int(length[1])
    match wanted:
        case T.DateType():
            years = F.year(cast).between(1, 9999)
            return years & value.rlike(BEGINS_WITH_A_DATE) if text else years
        case T.TimestampType() | T.TimestampNTZType():
            years = is_in_range(cast.cast("timestamp"))
            return years & value.rlike(BEGINS_WITH_A_DATE) if text else years
        case T.DecimalType() if text:
            return _places(value) <= wanted.scale
        case _ if isinstance(wanted, _EXACT) and isinstance(held, _NUMERIC):
            return cast == value
    return cast.isNotNull()


def _places(text: Column) -> Column:
    """How many decimal places a number's text needs: 1.50 one, 12e-3 three, 1.5e2 none."""
    fraction = F.regexp_replace(F.regexp_extract(text, _DECIMAL_TEXT, 2), "0+$", "")
    whole = F.regexp_extract(text, _DECIMAL_TEXT, 1)
    zeros = F.when(fraction == "", F.length(whole) - F.length(F.regexp_replace(whole, "0+$", ""))).otherwise(F.lit(0))
    exponent = F.coalesce(F.regexp_extract(text, _DECIMAL_TEXT, 3).try_cast("int"), F.lit(0))
    return F.length(fraction) - zeros - exponent


def _is_nested(data_type: T.DataType) -> bool:
    return isinstance(data_type, (T.ArrayType, T.MapType, T.StructType))
