"""The total order of statements: the same in every run, whatever order they arrived in.

Each tiebreaker has its reason:

    when it was said to be so       the truth's own axis
    rank, higher first              at one instant the authority speaks first, the others after it
    sequence, as a number           the source's own order; a statement without one comes last
    a delete after an upsert        at one instant, being gone is the later word
    file, run, time of arrival      a later run corrects an earlier one
    statement hash                  and whatever is left is at least always the same
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from karat.temporal import columns as c

ORDER_FILE: str = "__karat_order_file"
"""Working: the first name among the files that brought copies of a statement, so that arrival does not decide its place."""

SEQUENCE_ORDER: str = "__karat_sequence_order"
"""Working: the sequence as something to sort by. A column of its own, so that Spark sees that all windows have one order."""

_NUMBER = r"^-?[0-9]{1,38}(\.[0-9]+)?$"
_BORDERS = r"(?<=[0-9])(?=[^0-9])|(?<=[^0-9])(?=[0-9])"
_WIDTH = 40


def in_their_order(rows: DataFrame) -> DataFrame:
    """The statements about each entity with `PLACE`, their number in its order. Grain: unchanged."""
    return rows.withColumn(SEQUENCE_ORDER, sequence_order(F.col(c.SEQUENCE))).withColumn(c.PLACE, F.row_number().over(in_place()))


def in_place() -> WindowSpec:
    """An entity's statements in their order, as `PLACE` numbers them."""
    return Window.partitionBy(c.BK).orderBy(
        F.col(c.AT).asc(),
        F.col(c.RANK).desc(),
        F.col(SEQUENCE_ORDER).asc(),
        F.col(c.IS_DELETED).asc(),
        F.col(ORDER_FILE).asc_nulls_last(),
        F.col(c.RUN_ID).asc_nulls_last(),
        F.col(c.INGEST_TS).asc(),
        F.col(c.STATEMENT_HASH).asc(),
    )


def in_arrival(*partition: str) -> WindowSpec:
    """Copies of a statement in the order they came in, within the partition."""
    return Window.partitionBy(*partition).orderBy(
        F.col(c.INGEST_TS).asc(), F.col(c.RUN_ID).asc(), F.col(c.SOURCE_FILE).asc_nulls_last(), F.col(c.RECORD_HASH).asc()
    )


def in_place_by_source(sources: c.Names) -> WindowSpec:
    """One source's statements about an entity in their order; where there is only one, that is the entity's own order."""
    return Window.partitionBy(c.BK, c.SOURCE_SYSTEM).orderBy(c.PLACE) if len(sources) > 1 else in_place()


def sequence_order(sequence: Column) -> Column:
    """A sequence as something to sort by: numbers as numbers, other texts with their digits as numbers, none last."""
    is_number = F.rlike(sequence, F.lit(_NUMBER))
    whole = F.when(is_number, F.substring_index(sequence, ".", 1).try_cast("decimal(38,0)"))
    fraction = F.when(is_number & (F.instr(sequence, ".") > 0), F.rtrim(F.substring_index(sequence, ".", -1), F.lit("0")))
    padded = F.transform(
        F.split(sequence, _BORDERS),
        lambda run: F.when(F.rlike(run, F.lit("^[0-9]+$")) & (F.length(run) < _WIDTH), F.lpad(run, _WIDTH, "0")).otherwise(run),
    )
    natural = F.when(~is_number, F.array_join(padded, ""))
    return F.struct(sequence.isNull(), ~is_number, whole, F.coalesce(fraction, F.lit("")), natural)
