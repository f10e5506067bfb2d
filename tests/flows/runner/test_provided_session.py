"""A session that was handed in keeps its own settings, and the tables are the same as in one of ours."""

from pathlib import Path

from tests.support.entities import CRM, drop, entity_project, held
from tests.support.processes import script, succeeds

ORDER = {
    "kind": "entity",
    "name": "order",
    "key": {"order_id": "bigint"},
    "attributes": {"note": "string", "paid_at": "timestamp", "day": "date", "amount": "decimal(12,2)"},
    "feeds": [{**CRM, "map": {"note": "concat(note, '\\n', \"x\")", "day": "to_date(day, 'yyyy-MM-dd')"}}],
}
ROWS = [
    {"order_id": 1, "note": "a", "paid_at": "2026-03-29T01:30:00", "day": "2026-03-29", "amount": 1.5, "op": "c"},
    {"order_id": 2, "note": "a\\b", "paid_at": "1700-01-01T00:00:00", "day": "1582-10-10", "amount": "7.05", "op": "c"},
]
HASHED = ("order_id", "note", "paid_at", "day", "amount", "effective_from", "attr_hash", "statement_hash", "record_hash")


def test_a_session_with_its_own_settings_gives_the_same_hashes(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        entity_project(folder, ORDER, karat={"lake": f"file://{folder}/lake"})
        drop(folder, "crm/1.ndjson", [{**row, "source_event_ts": "2026-04-01T00:00:00"} for row in ROWS])
    succeeds(ours, "run")
    started = script(theirs, "tests.support.strange_session")
    assert started.ended() == 0, started.said()
    found = held(theirs, "bronze.order", *HASHED[:-1])
    assert len(found) == len(ROWS)
    assert found == held(ours, "bronze.order", *HASHED[:-1])
