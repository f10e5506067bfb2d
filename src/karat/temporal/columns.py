"""The columns Karat owns, and the one way a column of any name is spoken of.

Working columns share the prefix `__karat_` and never reach a table.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

PK_HASH: Final = "_pk_hash"
"""Identifies the entity: hash of the business key within its source system."""

DIFF_HASH: Final = "_diff_hash"
"""Identifies the state: hash of the tracked columns."""

START: Final = "__karat_start"
"""Working: the row's own time, where a version of it would begin."""

REASON: Final = "__karat_reason"
"""Working: why a row is refused; null for an admitted one."""

ACT: Final = "__karat_act"
"""Working: what a row does to the target: insert, update, delete, or refuse."""

MATCH_KEY: Final = "__karat_match_key"
"""Working: hash of the held row an act is about; null for a row that only inserts."""

MATCH_START: Final = "__karat_match_start"
"""Working: start of the held version an act is about."""

MATCH_STATE: Final = "__karat_match_state"
"""Working: state hash of the held version an act is about."""

Names = tuple[str, ...]


def quoted(name: str) -> str:
    """A column's name as SQL text: dots, spaces and quotes in it are just letters."""
    return "`" + name.replace("`", "``") + "`"


def col(name: str, side: str | None = None) -> Column:
    """The column of exactly this name, of one side of a join where it is given."""
    return F.col(quoted(name) if side is None else f"{side}.{quoted(name)}")
