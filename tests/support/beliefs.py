"""Projects with beliefs: declared from plain values, and set against the reference, which reads the same evidence without Spark."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from karat.config.load import load
from karat.inspect.history import ready, schema_of
from karat.inspect.rows import rows_where
from karat.reference import belief_history, restatements

Row = Mapping[str, Any]
RULES: list[dict[str, Any]] = [
    {
        "version": 1,
        "in_force_from": "2026-01-01",
        "groups": {
            "status": {"attributes": ["status"], "by": "precedence", "sources": {"CORE": 2, "CRM": 1}},
            "contact": {"attributes": ["name", "address"], "by": "recency", "sources": ["CRM", "CORE"]},
        },
        "delete": {"sources": ["CRM"]},
    }
]


def declare(folder: Path, rules: list[dict[str, Any]], name: str = "customer") -> None:
    """The belief of an entity of the same name, or of customers."""
    declared = {"kind": "belief", "name": name, "entity": "customer", "rules": rules}
    (folder / f"belief-{name}.yml").write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")


def expected_history(folder: Path, known_at: datetime, name: str = "customer") -> list[Row]:
    """What the reference believes of the evidence as it was known then."""
    config = load(folder)
    belief = next(belief for belief in config.beliefs if belief.name == name)
    rows = [ready(row) for row in rows_where(config, belief.entity.assertions, "1 = 1")]
    return belief_history(rows, schema_of(belief.entity), belief.rules, known_at=known_at)


def expected_receipts(folder: Path, before: datetime, after: datetime, name: str = "customer") -> list[Row]:
    """What the reference says was restated between two moments of knowledge."""
    config = load(folder)
    belief = next(belief for belief in config.beliefs if belief.name == name)
    rows = [ready(row) for row in rows_where(config, belief.entity.assertions, "1 = 1")]
    return restatements(rows, schema_of(belief.entity), belief.rules, before=before, after=after)


def table_rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """A silver table's rows as the reference has them: bytes plain, without what only tables have."""
    config = load(folder)
    belief = config.beliefs[0]
    name = type(belief.table)("silver", table.removeprefix("silver."))
    only_ours = {"sk", "because_hash"}
    rows = rows_where(config, name, "1 = 1")
    return [{column: _plain(value) for column, value in row.items() if column not in only_ours} for row in rows]


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a cell holds)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value] or ({} if value == [] else value)
    return value


def in_order(rows: list[Any]) -> list[Any]:
    """By key, then in time."""
    return sorted(rows, key=lambda row: (row["bk"], str(row["valid_from"])))
