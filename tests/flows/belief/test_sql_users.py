"""The rules and queries of docs/how-to/beliefs.md, exactly as printed there, on a small lake: nobody needs Karat to read a belief."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from karat import Project
from tests.support.beliefs import declare
from tests.support.entities import CUSTOMER, drop, entity_project

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "beliefs.md"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HEADED = re.compile(r"(?:--|#) (.+) \((.+)\)\n")
SET_UP = "set up"


def event(key: str, op: str, at: str, **said: str) -> dict[str, str]:
    return {"customer_id": key, "op": op, "source_event_ts": f"2026-{at}:00Z", **said}


SAID = {
    "crm/3-march.ndjson": [
        event("C123", "c", "03-01T09:00", name="Jane Carter", address="12 Market Street", status="Active"),
        event("C126", "c", "03-01T10:15", name="Tomas Rivera", address="31 Station Road", status="Active"),
        event("C128", "c", "03-01T11:00", name="Akira Sato", address="2 Bridge Street", status="Active"),
        event("C126", "d", "03-03T08:00"),
        event("C123", "u", "03-03T09:00", address="18 King Street"),
        event("C128", "u", "03-03T13:00", status="Active"),
    ],
    "core/3-march.ndjson": [
        event("C132", "c", "03-01T06:00", name="Noah Bell", status="Active"),
        event("C123", "u", "03-02T10:00", status="Restricted"),
        event("C132", "d", "03-02T14:00"),
        event("C128", "u", "03-03T10:30", status="Restricted"),
    ],
}
LATE = [event("C123", "u", "03-02T18:00", status="Active")]
PAYMENTS = """
    SELECT * FROM (VALUES
        ('P1', 'C123', {zoned} '2026-03-02 12:00:00Z'),
        ('P2', 'C123', {zoned} '2026-03-02 20:00:00Z'),
        ('P3', 'C999', {zoned} '2026-03-02 12:00:00Z')
    ) AS payment (payment_id, customer_id, booked_at)
"""
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "who is there now": [
        ("C123", "Jane Carter", "18 King Street", "Active"),
        ("C126", "Tomas Rivera", "31 Station Road", "Active"),
        ("C128", "Akira Sato", "2 Bridge Street", "Restricted"),
    ],
    "whose word the status is": [
        ("C123", "Active", "CORE", "03-02 18:00", "4-march.ndjson"),
        ("C126", "Active", "CRM", "03-01 10:15", "3-march.ndjson"),
        ("C128", "Restricted", "CORE", "03-03 10:30", "3-march.ndjson"),
        ("C132", "Active", "CORE", "03-01 06:00", "3-march.ndjson"),
    ],
    "whose word the status was": [
        ("C123", "03-01 09:00", "Active", "CRM"),
        ("C123", "03-02 10:00", "Restricted", "CORE"),
        ("C123", "03-02 18:00", "Active", "CORE"),
        ("C123", "03-03 09:00", "Active", "CORE"),
        ("C126", "03-01 10:15", "Active", "CRM"),
        ("C128", "03-01 11:00", "Active", "CRM"),
        ("C128", "03-03 10:30", "Restricted", "CORE"),
        ("C132", "03-01 06:00", "Active", "CORE"),
        ("C132", "03-02 14:00", "Active", "CORE"),
    ],
    "who was there at noon of 2 March": [
        ("C123", "12 Market Street", "Restricted", "CORE"),
        ("C126", "31 Station Road", "Active", "CRM"),
        ("C128", "2 Bridge Street", "Active", "CRM"),
        ("C132", None, "Active", "CORE"),
    ],
    "payments with the status of their time": [("P1", "Restricted"), ("P2", "Active"), ("P3", None)],
    "what was restated": [
        ("C123", "03-02 18:00", None, "status", "Restricted", "Active", "statement", "CORE", 2, 2),
        ("C126", "03-03 08:00", None, "is_deleted", "true", "false", "rule", None, 1, 2),
    ],
    "who disagrees": [("C128", "status", "CORE", "Restricted", True), ("C128", "status", "CRM", "Active", False)],
    "the evening of 2 March, as known on 4 March": [
        ("C123", "Restricted", False, 1),
        ("C126", "Active", False, 1),
        ("C128", "Active", False, 1),
        ("C132", "Active", True, 1),
    ],
}


@dataclass(frozen=True)
class Snippet:
    """Something to run, as the page has it: what it asks, and of whom."""

    title: str
    engine: str
    text: str


def fenced(language: str) -> list[str]:
    return [text for told, text in FENCED.findall(PAGE.read_text(encoding="utf-8")) if told == language]


def snippets() -> Iterator[Snippet]:
    for text in (*fenced("python"), *fenced("sql")):
        heading = HEADED.match(text)
        assert heading, f"no title and engine above: {text}"
        yield from (Snippet(heading[1], engine, text) for engine in heading[2].split(", "))


QUERIES = [snippet for snippet in snippets() if snippet.title != SET_UP]


@pytest.fixture(scope="module")
def reader(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a reader of the page has at hand after setting up: names to their values."""
    folder = entity_project(tmp_path_factory.mktemp("readers"), CUSTOMER)
    first, second = map(yaml.safe_load, fenced("yaml"))
    declare(folder, [*first["rules"], *second])
    project = Project.open(folder, spark=spark)
    for file, rows in SAID.items():
        drop(folder, file, rows)
    assert project.run(now=datetime(2026, 3, 3, 22, tzinfo=UTC)).ok
    assert project.run(now=datetime(2026, 3, 4, 18, tzinfo=UTC)).ok  # nothing new, but another rule
    drop(folder, "core/4-march.ndjson", LATE)
    assert project.run(now=datetime(2026, 3, 4, 22, tzinfo=UTC)).ok
    names: dict[str, Any] = {"lake": str(folder / "lake"), "spark": spark.newSession(), "project": project}
    for snippet in snippets():
        if snippet.title == SET_UP:
            exec(snippet.text, names)  # noqa: S102  (it is our own page)
    names["duck"].sql(f"CREATE TABLE payment AS {PAYMENTS.format(zoned='TIMESTAMPTZ')}")
    names["spark"].sql(PAYMENTS.format(zoned="TIMESTAMP")).createOrReplaceTempView("payment")
    return names


@pytest.mark.parametrize("snippet", QUERIES, ids=[f"{query.title}, {query.engine}" for query in QUERIES])
def test_what_the_page_asks_is_answered(reader: dict[str, Any], snippet: Snippet) -> None:
    assert plain(answer(snippet, reader)) == EXPECTED[snippet.title]


def test_nothing_on_the_page_goes_untested() -> None:
    assert {query.title for query in QUERIES} == EXPECTED.keys()
    asked = {title: {query.engine for query in QUERIES if query.title == title} for title in EXPECTED}
    everywhere = ("who is there now", "who was there at noon of 2 March", "what was restated", "who disagrees")
    assert [asked[title] for title in everywhere] == [{"Spark SQL", "DuckDB", "Polars"}] * len(everywhere)


def test_the_files_hold_rows_that_do_not_count(reader: dict[str, Any]) -> None:
    """Else nothing here would show that readers respect deletion vectors."""
    table = DeltaTable(f"{reader['lake']}/silver/customer_history")
    in_files = duckdb.read_parquet(table.file_uris()).aggregate("count(*)").fetchall()[0][0]
    assert in_files > len(EXPECTED["whose word the status was"])


def answer(snippet: Snippet, names: dict[str, Any]) -> Iterable[tuple[Any, ...]]:
    match snippet.engine:
        case "Spark SQL":
            return rows_of(names["spark"].sql(snippet.text))
        case "DuckDB":
            return rows_of(pl.DataFrame(names["duck"].sql(snippet.text)))
        case _:
            exec(snippet.text, names)  # noqa: S102  (it is our own page)
            return rows_of(names["answer"])


def rows_of(found: DataFrame | pl.DataFrame | pl.LazyFrame) -> Iterable[tuple[Any, ...]]:
    if isinstance(found, DataFrame):
        return found.collect()
    return found.lazy().collect().rows()


def plain(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Times as text of UTC: Spark hands them out in the process's own zone."""
    return [tuple(f"{cell.astimezone(UTC):%m-%d %H:%M}" if isinstance(cell, datetime) else cell for cell in row) for row in rows]
