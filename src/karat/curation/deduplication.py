"""One row per entity and batch: the first in the configured order, and always the same one."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.resolved import OrderBy
from karat.temporal.columns import PK_HASH, REASON, col

_RANK = "__karat_rank"


def deduplicated(rows: DataFrame, order: Sequence[OrderBy]) -> DataFrame:
    """Grain: one admitted row per `_pk_hash`; refused rows all stay, for each is evidence of its own."""
    ranked = rows.withColumn(_RANK, F.row_number().over(latest_first(rows, order)))
    return ranked.where((F.col(_RANK) == 1) | F.col(REASON).isNotNull()).drop(_RANK)


def latest_first(rows: DataFrame, order: Sequence[OrderBy]) -> WindowSpec:
    """The configured order, then every other column: two rows tie only when they are the same row."""
    present = {name.lower() for name in rows.columns}
    configured = [directed(each) for each in order if each.column.lower() in present]
    refused_last = F.col(REASON).asc_nulls_first()
    return Window.partitionBy(PK_HASH).orderBy(refused_last, *configured, *by_every_column(rows))


def by_every_column(rows: DataFrame) -> list[Column]:
    """All columns by name: whatever is still tied after this is the same row."""
    return [_orderable(field).asc() for field in sorted(rows.schema, key=lambda field: field.name)]


def directed(order: OrderBy) -> Column:
    """The column with its real direction; nulls as Spark has them for it, unless said."""
    column = col(order.column)
    if order.nulls_first is None:
        return column.desc() if order.descending else column.asc()
    if order.descending:
        return column.desc_nulls_first() if order.nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if order.nulls_first else column.asc_nulls_last()


def oldest_first(order: OrderBy) -> Column:
    """The same column the other way round: the row that would be kept comes last."""
    nulls_first = not order.descending if order.nulls_first is None else order.nulls_first
    return directed(OrderBy(order.column, not order.descending, not nulls_first))


def _orderable(field: T.StructField) -> Column:
    """The column, or its JSON where its type has no order of its own."""
    plain = isinstance(field.dataType, T.AtomicType) and not isinstance(field.dataType, T.VariantType)
    return col(field.name) if plain else F.to_json(F.struct(col(field.name)))
