"""A transaction is a fact: it is there once, however often it is told; other content under its id is a correction beside it."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.schema import HELD, OPENS, REBUILDS, timeline_columns
from karat.temporal.columns import (
    AT,
    ATTR_HASH,
    BK,
    CORRECTS,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    FIRST_SEEN,
    INHERITED,
    IS_CURRENT,
    IS_DELETED,
    IS_SOURCE_CURRENT,
    LAST_EVENT_TS,
    LAST_SEEN,
    PLACE,
    RECORD_HASH,
    SEEN_COUNT,
    SOURCE_EFFECTIVE_TO,
    Names,
    col,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.riding import unpacked
from karat.temporal.windows import all_of


def facts(statements: DataFrame, schema: EntitySchema, carried: Names = ()) -> DataFrame:
    """The first telling of each content, with how often it was told, and with `carried` columns of that telling.

    Among tellings that stand for held facts, those that come second now are there too. Grain: one row per transaction and
    distinct content.
    """
    in_turn = Window.partitionBy(BK, ATTR_HASH).orderBy(PLACE)
    told = all_of(in_turn)
    rides_along = {
        name: F.when(F.col(IS_DELETED), F.first(col(name)).over(told)).otherwise(F.last(col(name)).over(told))
        for name in (*sorted(schema.untracked), INHERITED)
    }
    first = statements.withColumns(
        {
            FIRST_SEEN: F.min(FIRST_SEEN).over(told),
            LAST_SEEN: F.max(LAST_SEEN).over(told),
            SEEN_COUNT: F.sum(SEEN_COUNT).over(told),
            LAST_EVENT_TS: F.max(F.coalesce(F.col(LAST_EVENT_TS), F.col(AT))).over(told),
            **rides_along,
            **({REBUILDS: F.max(REBUILDS).over(told)} if REBUILDS in statements.columns else {}),
            OPENS: F.row_number().over(in_turn) == 1,
        }
    )
    first = first.where(F.col(OPENS) | F.col(HELD).isNotNull() if HELD in statements.columns else F.col(OPENS))
    tellings = Window.partitionBy(BK, OPENS).orderBy(PLACE)
    the_fact = F.first(RECORD_HASH).over(tellings)
    is_the_fact = F.row_number().over(tellings) == 1
    no_time = F.lit(None).cast("timestamp")
    no_flag = F.lit(None).cast("boolean")
    placed = first.withColumns(
        {
            CORRECTS: F.when(~is_the_fact, the_fact),
            EFFECTIVE_FROM: F.col(AT),
            EFFECTIVE_TO: no_time,
            SOURCE_EFFECTIVE_TO: no_time,
            IS_CURRENT: no_flag,
            IS_SOURCE_CURRENT: no_flag,
        }
    )
    return unpacked(placed).selectExpr(*timeline_columns(schema), *carried)
