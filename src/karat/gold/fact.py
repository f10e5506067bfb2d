"""Changed rows to the facts that a table should hold: one row for each grain, the latest one."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.config.resolved import OrderBy
from karat.config.star import Fact
from karat.gold.schema import DELETE, KIND, ORDER, UPSERT
from karat.temporal.columns import REASON, Names, col

_PLACE = "__karat_place"


def with_duplicates_refused(states: DataFrame, columns: Names, fact: Fact) -> DataFrame:
    """Rows of one grain and one commit that say different things have a reason, where the declaration refuses them. Grain: unchanged."""
    if not fact.quarantines_duplicates:
        return states
    content = F.xxhash64(F.to_json(F.struct(*map(col, columns)), {"ignoreNullFields": "false"}))
    same = Window.partitionBy(*map(col, fact.grain), ORDER, KIND)
    differ = (F.min(content).over(same) != F.max(content).over(same)) & (F.col(KIND) == UPSERT)
    reason = F.lit(f"duplicate grain: several rows of one {', '.join(fact.grain)} in one batch")
    return states.withColumn(REASON, F.coalesce(F.col(REASON), F.when(differ, reason)))


def latest_of_each_grain(states: DataFrame, columns: Names, fact: Fact) -> DataFrame:
    """What became of each grain: its latest row, or that it is gone. Grain: one row per grain."""
    of_grain = Window.partitionBy(*map(col, fact.grain))
    gone = F.max(F.when(F.col(KIND) == DELETE, F.col(ORDER))).over(of_grain)
    counts = (F.col(KIND) == DELETE) | gone.isNull() | (F.col(ORDER) >= gone)
    content = F.to_json(F.struct(*map(col, columns)), {"ignoreNullFields": "false"})
    first = of_grain.orderBy(F.col(KIND), *ordering(fact.order), F.col(ORDER).desc(), content)
    ranked = states.withColumn("__karat_counts", counts).where("__karat_counts").withColumn(_PLACE, F.row_number().over(first))
    return ranked.where(F.col(_PLACE) == 1).drop("__karat_counts", _PLACE)


def ordering(order: Sequence[OrderBy]) -> list[Column]:
    """The declared order as Spark's."""
    found = []
    for each in order:
        column = col(each.column)
        if each.descending:
            found.append(column.desc_nulls_first() if each.nulls_first else column.desc_nulls_last())
        else:
            found.append(column.asc_nulls_last() if each.nulls_first is False else column.asc_nulls_first())
    return found


def merged_with_held(new: DataFrame, held: DataFrame, columns: Names, fact: Fact) -> DataFrame:
    """New rows as they are to be written: milestones that were known stay known, and no older row takes the place of a newer one.

    Grain: one row per new row that counts.
    """
    if fact.load != "accumulating" and not fact.order:
        return new
    known = held.select(*(col(name).alias(f"held_{name}") for name in columns))
    same = F.lit(True)
    for name in fact.grain:
        same = same & (col(name) == col(f"held_{name}"))
    joined = new.join(known, same, "left")
    is_held = col(f"held_{fact.grain[0]}").isNotNull()
    milestones = {name.lower() for name in fact.milestones}
    values = {name: F.coalesce(col(name), col(f"held_{name}")) for name in columns if name.lower() in milestones}
    if not fact.order:
        return joined.withColumns(values).select(*new.columns)
    older = is_held & (F.col(KIND) == UPSERT) & _comes_after(fact.order)
    if fact.load != "accumulating":
        return joined.where(~F.coalesce(older, F.lit(False))).select(*new.columns)
    late = {
        name: F.when(older, F.coalesce(col(f"held_{name}"), col(name)) if name.lower() in milestones else col(f"held_{name}")).otherwise(
            values.get(name, col(name))
        )
        for name in columns
        if name not in fact.grain
    }
    return joined.withColumns(late).select(*new.columns)


def _comes_after(order: Sequence[OrderBy]) -> Column:
    """Whether the new row comes after the held one in the declared order, in which the first counts."""
    after = F.lit(False)
    for each in reversed(order):
        new, held = col(each.column), col(f"held_{each.column}")
        later = new < held if each.descending else new > held
        only_held = new.isNull() & held.isNotNull()
        after = F.when(new.eqNullSafe(held), after).otherwise(F.coalesce(later, only_held))
    return after


def first_of_each_grain(states: DataFrame, held: DataFrame, fact: Fact) -> DataFrame:
    """Of rows to append those whose grain is not there yet. Grain: one row per grain."""
    new = states.where(F.col(KIND) == UPSERT)
    return new.join(held.select(*map(col, fact.grain)), list(fact.grain), "left_anti").select(*map(col, states.columns))


def of_these_periods(held: DataFrame, fresh: DataFrame, fact: Fact) -> DataFrame:
    """Held rows of the periods that the fresh rows speak of. Grain: unchanged."""
    if fact.period is None:
        return held
    return held.join(fresh.select(col(fact.period)).distinct(), fact.period, "left_semi").select(*map(col, held.columns))
