"""A user's expression, tried row by row: where it cannot be computed the row is told so, and the batch goes on.

Under ANSI a single `cast('abc' as int)` ends a job, and Spark has no `try(...)` for any expression. But `try_to_binary` is one: it answers
null for whatever its argument raises. It stands inside a lambda because Spark computes expressions that occur twice ahead of all
others, outside every try; into lambdas it does not look.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F


def attempted(compute: Callable[[], Column]) -> Column:
    """An array: of the one value, or of none where computing it raises."""

    def succeeds(_: Column) -> Column:
        return F.try_to_binary(F.struct(compute()).cast("string"), F.lit("utf-8")).isNotNull()

    return F.transform(F.filter(F.array(F.lit(0)), succeeds), lambda _: compute())


def outcome(attempt: Column) -> Column:
    """The value of an attempt; null where it failed."""
    return F.get(attempt, F.lit(0))


def failed(attempt: Column) -> Column:
    """Whether the attempt failed; false for a null, which was never made."""
    return F.coalesce(F.size(attempt) == 0, F.lit(False))
