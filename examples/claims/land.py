"""Plays the streaming ingestion: appends one day's messages to the bronze tables, without Spark.

    python land.py DAY [--project DIR]

Bronze keeps what was said, as it was said: every field is text, duplicates stay, nothing is refused. Only the two
columns of the ingestion itself have types. A day is landed once: its name is recorded in the same commit as its rows,
so landing it again adds nothing.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import yaml
from arro3.core import Array, DataType, Field, Schema, Table
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

DAYS = (1, 2, 3)
FIELDS = {
    "claimants": ["claimant_id", "first_name", "last_name", "date_of_birth", "email", "phone", "street", "city", "state", "postal_code"],
    "policies": ["policy_id", "claimant_id", "plan_code", "status", "daily_benefit", "elimination_days", "issued_on"],
    "claims": [
        "claim_id",
        "policy_id",
        "claimant_id",
        "provider_id",
        "care_type",
        "diagnosis_code",
        "status",
        "amount_claimed",
        "amount_approved",
    ],
    "providers": ["provider_id", "name", "provider_type", "phone", "city", "state"],
    "payments": ["payment_id", "claim_id", "payee", "amount", "status", "paid_on"],
}
"""The text columns of each table; every table also has `source_system`, `ingestion_ts` and `_kafka_offset`."""


def land(project: Path, day: int) -> dict[str, int]:
    """How many rows each bronze table gained; 0 where the day had been landed before."""
    lake = lake_of(project)
    return {table: append_day(project / "data" / f"day{day}" / f"{table}.ndjson", lake / "bronze" / table, day) for table in FIELDS}


def lake_of(project: Path) -> Path:
    """The lake's folder; a relative one starts at the project."""
    settings = yaml.safe_load((project / "karat.yml").read_text(encoding="utf-8"))
    return project / str(settings["lake"])


def append_day(messages: Path, table: Path, day: int) -> int:
    """Append one file of messages in one commit, unless a commit of this day is there already."""
    landing = f"claims/day{day}"
    if DeltaTable.is_deltatable(str(table)) and DeltaTable(str(table)).transaction_version(landing) is not None:
        return 0
    rows = [json.loads(line) for line in messages.read_text(encoding="utf-8").splitlines()]
    write_deltalake(
        str(table),
        arrow_table(rows, FIELDS[messages.stem]),
        mode="append",
        configuration={"delta.enableChangeDataFeed": "true"},
        commit_properties=CommitProperties(app_transactions=[Transaction(landing, 1)]),
    )
    return len(rows)


def arrow_table(rows: list[dict[str, object]], fields: list[str]) -> Table:
    """Messages as an Arrow table with an explicit schema: text, a UTC timestamp in microseconds, a long."""
    texts = {name: Array([row[name] for row in rows], type=DataType.string()) for name in [*fields, "source_system"]}
    times = Array([microseconds(str(row["ingestion_ts"])) for row in rows], type=DataType.int64())
    columns = {
        **texts,
        "ingestion_ts": times.cast(DataType.timestamp("us", tz="UTC")),
        "_kafka_offset": Array([row["_kafka_offset"] for row in rows], type=DataType.int64()),
    }
    schema = Schema([Field(name, column.type, nullable=True) for name, column in columns.items()])
    return Table.from_arrays(list(columns.values()), schema=schema)


def microseconds(text: str) -> int:
    """Microseconds since 1970 of an ISO time, in whole numbers: a float would round them."""
    since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def main() -> None:
    """Land the day named on the command line and say what arrived."""
    parser = argparse.ArgumentParser(description="Append one day's messages to the bronze tables.")
    parser.add_argument("day", type=int, choices=DAYS)
    parser.add_argument("--project", type=Path, default=Path(__file__).parent, help="the project's folder (default: this one)")
    arguments = parser.parse_args()
    for table, rows in land(arguments.project, arguments.day).items():
        print(f"bronze.{table}: {rows} rows" if rows else f"bronze.{table}: day {arguments.day} is there already")


if __name__ == "__main__":
    main()
