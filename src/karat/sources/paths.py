"""Paths as Spark takes and tells them, and as they were listed."""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F


def literal_path(path: str) -> str:
    """A path that Spark takes as it stands, whatever letters of a glob are in it."""
    return reduce(lambda text, letter: text.replace(letter, f"\\{letter}"), "{}[]*?", path.replace("\\", "\\\\"))


def path_column() -> Column:
    """The file's path as it was listed: a local one without a scheme."""
    address = F.col("_metadata.file_path")
    decoded = F.when(address.contains("%"), _decoded(address)).otherwise(address)
    return F.when(address.startswith("file:"), F.regexp_replace(decoded, "^file:/+", "/")).otherwise(decoded)


def file_column() -> Column:
    """The file's name."""
    # letters that a URL would write otherwise are all that has to be decoded, and a slash is none of them
    name = F.substring_index(F.col("_metadata.file_path"), "/", -1)
    return F.when(name.contains("%"), _decoded(name)).otherwise(name)


def _decoded(address: Column) -> Column:
    # `url_decode` takes a plus for a blank, which a path's plus is not
    return F.url_decode(F.replace(address, F.lit("+"), F.lit("%2B")))
