"""The columns of statements: those that reach bronze tables, and the working ones on the way there."""

from typing import Final

KIND: Final = "__karat_kind"
"""Working: `row`, `ignored` (a tombstone, a heartbeat) or `refused`."""

REASON: Final = "__karat_reason"
"""Working: why a row is refused; null for the others."""

RULE: Final = "__karat_rule"
"""Working: the short name of the rule that refuses it."""

ORIGINAL: Final = "__karat_original"
"""Working: the record as it came, its line or its fields as JSON: of refused rows, and of snapshots, which may be refused as a whole."""

NAMES: Final = "__karat_names"
"""Working: the names of the record's fields as one text, where a drift policy needs those of the whole batch."""

MISFIT: Final = "__karat_misfit"
"""Working: why a value does not fit its attribute, where the policy is to fail the feed for it."""

IMPLIED_OP: Final = "__karat_implied_op"
"""Working: what the envelope says happened."""

IMPLIED_TIME: Final = "__karat_implied_time"
"""Working: when the envelope says it happened."""

IMPLIED_SEQUENCE: Final = "__karat_implied_sequence"
"""Working: where the envelope says it stands in its source's log."""

DOCUMENT: Final = "__karat_document"
"""Working: the document a payload feed takes its attributes from."""

PROVENANCE: Final = ("source_system", "source_type", "source_path", "source_file", "feed", "source_event_ts", "source_sequence_id")
MEANING: Final = ("op", "load_type", "precedence_rank", "is_deleted", "asserted_columns", "time_basis", "snapshot_ts")
EVIDENCE: Final = ("extra", "payload", "extraction_version")
GATE: Final = (KIND, REASON, RULE, ORIGINAL, NAMES, MISFIT)
