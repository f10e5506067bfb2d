"""The columns Karat owns, and the one way to refer to a column of any name.

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

ACTION: Final = "__karat_action"
"""Working: what a row does to the target: insert, update, delete, or refuse."""

MATCH_KEY: Final = "__karat_match_key"
"""Working: hash of the held row an act is about; null for a row that only inserts."""

MATCH_START: Final = "__karat_match_start"
"""Working: start of the held version an act is about."""

MATCH_STATE: Final = "__karat_match_state"
"""Working: state hash of the held version an act is about."""

BK: Final = "bk"
"""The business key as one text; null for a statement of the source itself, about no single key."""
SK: Final = "sk"
"""sha2-256 of the business key: joins, and nothing else."""
SOURCE_SYSTEM: Final = "source_system"
SOURCE_TYPE: Final = "source_type"
SOURCE_PATH: Final = "source_path"
SOURCE_FILE: Final = "source_file"
FEED: Final = "feed"
EVENT_TS: Final = "source_event_ts"
"""When the source says it was so."""
SEQUENCE: Final = "source_sequence_id"
INGEST_TS: Final = "ingest_ts"
"""When the platform learned it."""
RUN_ID: Final = "ingest_run_id"
BATCH_SEQ: Final = "batch_seq"
OP: Final = "op"
LOAD_TYPE: Final = "load_type"
ENTITY_TYPE: Final = "entity_type"
RANK: Final = "precedence_rank"
IS_DELETED: Final = "is_deleted"
ASSERTED: Final = "asserted_columns"
"""The attributes a statement itself spoke of."""
INHERITED: Final = "inherited"
"""For each attribute not said: whose word it is."""
ATTR_HASH: Final = "attr_hash"
STATEMENT_HASH: Final = "statement_hash"
RECORD_HASH: Final = "record_hash"
HASH_VERSION: Final = "hash_version"
TIME_BASIS: Final = "time_basis"
SNAPSHOT_TS: Final = "snapshot_ts"
COPIES: Final = "copies"
EXTRA: Final = "extra"
PAYLOAD: Final = "payload"
EXTRACTION_VERSION: Final = "extraction_version"

EFFECTIVE_FROM: Final = "effective_from"
"""Start of the period, inclusive."""
EFFECTIVE_TO: Final = "effective_to"
"""End of the period, exclusive; null while it is open."""
IS_CURRENT: Final = "is_current"
SOURCE_EFFECTIVE_TO: Final = "source_effective_to"
"""End of the period within what the same source said."""
IS_SOURCE_CURRENT: Final = "is_source_current"
FIRST_SEEN: Final = "first_seen_ts"
LAST_SEEN: Final = "last_seen_ts"
SEEN_COUNT: Final = "seen_count"
LAST_EVENT_TS: Final = "last_event_ts"
"""Event time of the last statement a version absorbed."""
CORRECTS: Final = "corrects"
"""Of a transaction's correction: record hash of the fact it corrects."""

VALID_FROM: Final = "valid_from"
"""Start of a period in which a belief holds, inclusive."""
VALID_TO: Final = "valid_to"
RULE_VERSION: Final = "rule_version"
BECAUSE: Final = "because"
"""For each believed attribute: the statement it rests on."""
BECAUSE_HASH: Final = "because_hash"
"""sha2-256 of `because`: rows are compared by it, so that `because`, the widest column by far, need not be read."""

TRUNCATE: Final = "t"
"""The op of a source's statement that everything it had is gone."""
ABSENT: Final = "absent"
"""The op of a source's statement that a snapshot was complete, and of the deletes that follow from it."""
DELETE: Final = "d"

AT: Final = "__karat_at"
"""Working: the instant a statement takes effect; its event time, or its snapshot's."""
PLACE: Final = "__karat_place"
"""Working: a statement's number in its entity's order, from 1."""

Names = tuple[str, ...]


def quoted(name: str) -> str:
    """A column's name as SQL text: dots, spaces and quotes in it are just letters."""
    return "`" + name.replace("`", "``") + "`"


def col(name: str, side: str | None = None) -> Column:
    """The column of exactly this name, of one side of a join where it is given."""
    return F.col(quoted(name) if side is None else f"{side}.{quoted(name)}")
