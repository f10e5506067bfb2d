"""A transaction is a fact: it is there once, however often it is told; other content under its id is a correction beside it."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.schema import HELD, OPENS, REBUILDS, timeline_columns
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.riding import unpacked
from karat.temporal.windows import all_of


def facts(statements: DataFrame, schema: EntitySchema, carried: c.Names = ()) -> DataFrame:
    """The first telling of each content, with how often it was told, and with `carried` columns of that telling.

    Among tellings that stand for held facts, those that come second now are there too. Grain: one row per transaction and
    distinct content.
    """
    in_turn = Window.partitionBy(c.BK, c.ATTR_HASH).orderBy(c.PLACE)
    told = all_of(in_turn)
    rides_along = {
        name: F.when(F.col(c.IS_DELETED), F.first(c.col(name)).over(told)).otherwise(F.last(c.col(name)).over(told))
        for name in (*sorted(schema.untracked), c.INHERITED)
    }
    first = statements.withColumns(
        {
            c.FIRST_SEEN: F.min(c.FIRST_SEEN).over(told),
            c.LAST_SEEN: F.max(c.LAST_SEEN).over(told),
            c.SEEN_COUNT: F.sum(c.SEEN_COUNT).over(told),
            c.LAST_EVENT_TS: F.max(F.coalesce(F.col(c.LAST_EVENT_TS), F.col(c.AT))).over(told),
            **rides_along,
            **({REBUILDS: F.max(REBUILDS).over(told)} if REBUILDS in statements.columns else {}),
            OPENS: F.row_number().over(in_turn) == 1,
        }
    )
    first = first.where(F.col(OPENS) | F.col(HELD).isNotNull() if HELD in statements.columns else F.col(OPENS))
    tellings = Window.partitionBy(c.BK, OPENS).orderBy(c.PLACE)
    the_fact = F.first(c.RECORD_HASH).over(tellings)
    is_the_fact = F.row_number().over(tellings) == 1
    no_time = F.lit(None).cast("timestamp")
    no_flag = F.lit(None).cast("boolean")
    placed = first.withColumns(
        {
            c.CORRECTS: F.when(~is_the_fact, the_fact),
            c.EFFECTIVE_FROM: F.col(c.AT),
            c.EFFECTIVE_TO: no_time,
            c.SOURCE_EFFECTIVE_TO: no_time,
            c.IS_CURRENT: no_flag,
            c.IS_SOURCE_CURRENT: no_flag,
        }
    )
    return unpacked(placed).selectExpr(*timeline_columns(schema), *carried)
