"""Paths as Spark takes and tells them, and as they were listed."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F


def literal_path(path: str) -> str:
    """A path that Spark takes as it stands, whatever letters of a glob are in it."""
    return reduce(lambda text, letter: text.replace(letter, f"\\{letter}"), "{}[]*?", path.replace("\\", "\\\\"))


def path_column() -> Column:
    """The file's path as it was listed: a local one without a scheme."""
    return F.regexp_replace(_decoded(F.col("_metadata.file_path")), "^file:/+", "/")


def file_column() -> Column:
    """The file's name."""
    return F.substring_index(path_column(), "/", -1)


def _decoded(address: Column) -> Column:
    # `url_decode` takes a plus for a blank, which a path's plus is not
    return F.url_decode(F.replace(address, F.lit("+"), F.lit("%2B")))
