"""A table compared with what its evidence says, row for row and with multiplicity."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.temporal.changes import DELETE, INSERT, KEEP, UPDATE, WAS_HELD_UNTIL, TableSpec, difference
from karat.temporal.columns import ACTION, col

DUPLICATE: Final = "duplicate"
"""The action of a held row that is there once already."""
MEANING: Final = {
    INSERT: "missing in the table",
    DELETE: "in the table, but not in the evidence",
    UPDATE: "differs from the evidence",
    DUPLICATE: "held more than once",
}
MOST_SHOWN: Final = 20
_COPY: Final = "__karat_copy"


@dataclass(frozen=True)
class Verified:
    """Whether a table is what its evidence says; if not, the first differences."""

    entity: str
    equal: bool
    differences: tuple[Mapping[str, Any], ...] = ()
    counts: Mapping[str, int] | None = None


def compared(fresh: DataFrame, held: DataFrame, spec: TableSpec, ignored: Iterable[str] = ()) -> DataFrame:
    """The rows that differ, each with its action. Grain: one row per missing, extra, differing or repeated row."""
    of_row = Window.partitionBy(*map(col, spec.identity)).orderBy(F.lit(0))
    numbered = held.select(*map(col, spec.columns)).withColumn(_COPY, F.row_number().over(of_row))
    first = numbered.where(F.col(_COPY) == 1).drop(_COPY)
    others = numbered.where(F.col(_COPY) > 1).drop(_COPY).withColumn(ACTION, F.lit(DUPLICATE))
    found = difference(fresh, first, spec, ignored).where(F.col(ACTION) != KEEP).drop(WAS_HELD_UNTIL)
    return found.unionByName(others)


def readable(rows: DataFrame) -> DataFrame:
    """Times as text: the first year of the calendar is more than Python's own conversion can take."""
    is_time = {field.name for field in rows.schema if isinstance(field.dataType, T.TimestampType)}
    return rows.select(*(col(name).cast("string").alias(name) if name in is_time else col(name) for name in rows.columns))
