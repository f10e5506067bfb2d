"""The claims example tells the story its README promises, and lands it once."""

import importlib.util
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from deltalake import DeltaTable, QueryBuilder

from karat.config.load import load
from karat.scaffold import create_project

EXAMPLE = Path(__file__).parents[2] / "examples" / "claims"
DAYS = (1, 2, 3)
TABLES = ("claimants", "policies", "claims", "providers", "payments")
KEYS = {"claimants": "claimant_id", "policies": "policy_id", "claims": "claim_id", "providers": "provider_id", "payments": "payment_id"}
LOOKBACK = {"2 HOURS": timedelta(hours=2), "1 DAY": timedelta(days=1)}
SETTINGS = {
    "catalog",
    "schema_bronze",
    "schema_silver",
    "control_table",
    "audit_table",
    "default_watermark_column",
    "default_lookback_interval",
    "default_dedup_order_columns",
    "scd2_end_date_value",
    "workspace_file_path",
    "log_level",
}


def lines(day: int, table: str) -> list[str]:
    return (EXAMPLE / "data" / f"day{day}" / f"{table}.ndjson").read_text(encoding="utf-8").splitlines()


def rows(day: int, table: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines(day, table)]


def arrived(row: dict[str, object]) -> datetime:
    return datetime.fromisoformat(str(row["ingestion_ts"]))


def declaration() -> dict[str, object]:
    curation: dict[str, object] = json.loads((EXAMPLE / "silver" / "curation.json").read_text(encoding="utf-8"))
    return curation


def declared_tables() -> list[dict[str, object]]:
    tables = declaration()["tables"]
    assert isinstance(tables, list)
    return tables


def landing() -> ModuleType:
    """`land.py`, which lives outside the package."""
    spec = importlib.util.spec_from_file_location("claims_land", EXAMPLE / "land.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored(table: Path) -> Iterator[dict[str, object]]:
    batches = QueryBuilder().register("landed", DeltaTable(str(table))).execute("SELECT * FROM landed").read_all().to_batches()
    for batch in batches:
        yield from batch.to_struct_array().to_pylist()


@pytest.mark.parametrize("day", DAYS)
@pytest.mark.parametrize("table", TABLES)
def test_every_file_is_short_typed_and_holds_an_exact_duplicate(day: int, table: str) -> None:
    fields = {*landing().FIELDS[table], "source_system", "ingestion_ts", "_kafka_offset"}
    assert 6 <= len(rows(day, table)) <= 15
    assert all(set(row) == fields for row in rows(day, table))
    assert all(row["source_system"] in {"AdminSystem", "CRM"} for row in rows(day, table))
    assert all(isinstance(row["_kafka_offset"], int) for row in rows(day, table))
    assert all(datetime(2026, 3, 2, tzinfo=UTC) <= arrived(row) < datetime(2026, 3, 5, tzinfo=UTC) for row in rows(day, table))
    assert len(set(lines(day, table))) < len(lines(day, table))


@pytest.mark.parametrize("table", TABLES)
def test_an_offset_names_one_message_and_none_is_lost(table: str) -> None:
    messages = {line for day in DAYS for line in lines(day, table)}
    assert sorted(int(json.loads(line)["_kafka_offset"]) for line in messages) == list(range(len(messages)))


def test_one_row_of_all_has_no_key_and_it_comes_on_day_two() -> None:
    without = [(day, table) for day in DAYS for table in TABLES for row in rows(day, table) if row[KEYS[table]] is None]
    assert without == [(2, "claims")]


def test_late_rows_lie_below_the_watermark_and_inside_the_lookback() -> None:
    late = []
    for declared in declared_tables():
        table = str(declared["source_table"]).removeprefix("bronze.")
        for day in DAYS[1:]:
            watermark = max(arrived(row) for earlier in range(1, day) for row in rows(earlier, table))
            behind = [row for row in rows(day, table) if arrived(row) <= watermark]
            assert all(arrived(row) > watermark - LOOKBACK[str(declared["lookback_interval"])] for row in behind)
            late += [(day, row[KEYS[table]]) for row in behind]
    assert late == [(3, "P2003"), (2, "CLM7004"), (3, "PAY9005")]


def test_the_story_of_one_claim_one_move_and_one_correction() -> None:
    claim = [str(row["status"]).upper() for day in DAYS for row in rows(day, "claims") if row["claim_id"] == "CLM7001"]
    assert list(dict.fromkeys(claim)) == ["SUBMITTED", "IN REVIEW", "APPROVED"]
    homes = {
        (str(row["source_system"]), day): row["city"] for day in DAYS for row in rows(day, "claimants") if row["claimant_id"] == "C1001"
    }
    assert homes == {
        ("AdminSystem", 1): "Duluth",
        ("CRM", 1): "Duluth",
        ("AdminSystem", 2): "Madison",
        ("CRM", 3): "Madison",
    }
    paid = [
        row["amount"]
        for day in DAYS
        for row in rows(day, "payments")
        if (row["payment_id"], row["source_system"]) == ("PAY9001", "AdminSystem")
    ]
    assert paid == ["7,570.00", "7,750.00", "7,750.00"]


def test_the_declaration_carries_every_setting_and_five_tables() -> None:
    settings = declaration()["settings"]
    assert isinstance(settings, dict)
    assert set(settings) == SETTINGS
    kept = {str(table["target_table"]): table["scd_type"] for table in declared_tables()}
    assert kept == {"silver.claimants": 2, "silver.policies": 2, "silver.claims": 2, "silver.providers": 1, "silver.payments": 1}
    assert [table["target_table"] for table in declared_tables() if "transformation_sql_path" not in table] == ["silver.providers"]


def test_every_transformation_reads_the_view_and_keeps_what_curation_needs() -> None:
    for declared in declared_tables():
        if "transformation_sql_path" in declared:
            sql = (EXAMPLE / str(declared["transformation_sql_path"]).removeprefix("${workspace.file_path}/")).read_text(encoding="utf-8")
            columns = set(re.findall(r"(?:AS )?(\w+),?(?:\s+--.*)?$", sql, re.MULTILINE))
            tracked = declared.get("track_columns", [])
            assert isinstance(tracked, list)
            needed = {KEYS[str(declared["source_table"]).removeprefix("bronze.")], "source_system", "ingestion_ts", "_kafka_offset"}
            assert "FROM source_incremental" in sql
            assert needed | set(tracked) <= columns


def test_the_project_is_valid_as_it_stands() -> None:
    assert sorted(str(table.target) for table in load(EXAMPLE).curated) == sorted(f"silver.{table}" for table in TABLES)


def test_a_day_lands_once(tmp_path: Path) -> None:
    project = tmp_path / "claims"
    create_project(project, "claims")
    land = landing().land
    for day in DAYS:
        assert land(project, day) == {table: len(rows(day, table)) for table in TABLES}
    assert land(project, 1) == dict.fromkeys(TABLES, 0)
    assert land(project, 3) == dict.fromkeys(TABLES, 0)
    for table in TABLES:
        said = [{**row, "ingestion_ts": arrived(row)} for day in DAYS for row in rows(day, table)]
        kept = list(stored(project / "lake" / "bronze" / table))
        assert sorted(kept, key=repr_of) == sorted(said, key=repr_of)
        assert DeltaTable(str(project / "lake" / "bronze" / table)).metadata().configuration["delta.enableChangeDataFeed"] == "true"


def repr_of(row: dict[str, object]) -> str:
    """An order for rows with nulls in them; the time zone's own name must not count."""
    return repr([value.astimezone(UTC) if isinstance(value, datetime) else value for _, value in sorted(row.items())])
