"""Changed rows to states: what a source says of a member, from when on, in the order of its commits.

One commit may show a row as gone and as there: an update as Delta's change feed tells it, or a row that was replaced. So the rows of a
commit about one natural key are settled together: where any of them is there afterwards, the others say nothing.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.gold.schema import AT, CHANGE, COMMIT, COMMITTED_AT, DELETE, KIND, ORDER, UPSERT
from karat.temporal.columns import Names, col
from karat.temporal.windows import all_of

THERE = ("insert", "update_postimage")
"""The change types of rows that are there after their commit."""


def settled(changes: DataFrame, keys: Names) -> DataFrame:
    """Of each key and commit the rows that are there afterwards, else one that says it is gone. Grain: one row per state, or per delete."""
    of_commit = Window.partitionBy(*map(col, keys), COMMIT).orderBy(F.col(CHANGE))
    is_there = F.col(CHANGE).isin(*THERE)
    marked = changes.withColumns(
        {
            KIND: F.when(is_there, F.lit(UPSERT)).otherwise(F.lit(DELETE)),
            "__karat_any": F.max(is_there).over(all_of(of_commit)),
            "__karat_place": F.row_number().over(of_commit),
        }
    )
    kept = marked.where(F.when(F.col("__karat_any"), F.col(KIND) == UPSERT).otherwise(F.col("__karat_place") == 1))
    return kept.drop("__karat_any", "__karat_place", CHANGE)


def dated(changes: DataFrame, effective_at: str | None) -> DataFrame:
    """Each state with the time from which it holds: its own where it has one, else its commit's. A delete holds from its commit on."""
    own = (
        F.col(COMMITTED_AT)
        if effective_at is None
        else F.when(F.col(KIND) == DELETE, F.col(COMMITTED_AT)).otherwise(col(effective_at).cast("timestamp"))
    )
    return changes.withColumns({AT: own, ORDER: F.col(COMMIT)}).drop(COMMIT, COMMITTED_AT)


def without_key(keys: Sequence[str]) -> Column:
    """Whether a row lacks a part of its natural key."""
    lacks = F.lit(False)
    for name in keys:
        lacks = lacks | col(name).isNull()
    return lacks
