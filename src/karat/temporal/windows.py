"""Windows over rows, laid so that Spark sorts no more often than it must."""

from pyspark.sql import Window, WindowSpec


def all_of(window: WindowSpec) -> WindowSpec:
    """Every row of a partition, seen from each of them. In an order that another window has, so that Spark sorts for both at once."""
    return window.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def before(window: WindowSpec) -> WindowSpec:
    """Everything earlier than the row itself."""
    return window.rowsBetween(Window.unboundedPreceding, -1)
