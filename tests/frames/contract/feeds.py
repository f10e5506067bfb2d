"""An entity with one feed, and the statements of whatever its files hold."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from karat.config.declared.entity import EntityDeclaration
from karat.config.declared.grading import graded
from karat.config.names import TableName
from karat.config.resolved import Entity, FeedOf
from karat.contract.drift import DriftFound, drift_aggregates, drift_found
from karat.contract.statements import statements
from karat.sources.files import listed, read_files

INGESTED = datetime(2026, 4, 1, tzinfo=UTC)
ATTRIBUTES = {"name": "string", "address": "string", "status": "string"}


def entity_with(feed: dict[str, Any], **settings: Any) -> tuple[Entity, FeedOf]:  # noqa: ANN401
    """A customer, spoken of by one feed; `settings` are the entity's own."""
    source = {"kind": "files", "path": "unused", "format": "json"}
    given = {"name": "crm", "source_system": "CRM", "precedence_rank": 1, "from": source, **feed}
    if given.get("envelope") not in {"debezium", "goldengate"}:
        given.setdefault("event_time", "ts")
    declaration = {"kind": "entity", "name": "customer", "key": ["id"], "attributes": ATTRIBUTES, "feeds": [given], **settings}
    declared = EntityDeclaration.model_validate(declaration)
    feed_of = FeedOf(declared.feeds[0], graded(declared.feeds[0]), None, "")
    return Entity(declared, TableName("bronze", "customer"), (feed_of,)), feed_of


def files(form: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"kind": "files", "path": "unused", "format": form, "options": options}


def lines(path: Path, *rows: object) -> Path:
    """A file with a line per row: texts and bytes as they are, anything else as JSON."""
    whole = [
        row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)).encode() for row in rows
    ]
    path.write_bytes(b"\n".join(whole) + b"\n")
    return path


def raw_of(spark: SparkSession, feed: FeedOf, path: Path) -> DataFrame:
    return read_files(spark, feed, listed(str(path), spark))


def found_drift(rows: DataFrame, entity: Entity) -> DriftFound:
    """What the aggregates over a batch say about its drift."""
    wanted = drift_aggregates(entity)
    counted = rows.agg(F.count(F.lit(1)).alias("rows"), *(count.alias(name) for name, count in wanted.items())).collect()[0]
    return drift_found(entity, counted.asDict())


def stated(spark: SparkSession, path: Path, feed: dict[str, Any], **settings: Any) -> list[Row]:  # noqa: ANN401
    """Every statement of the files at a path; raises where a policy is to fail the feed."""
    entity, feed_of = entity_with(feed, **settings)
    rows = statements(raw_of(spark, feed_of, path), entity, feed_of, INGESTED)
    if drift_aggregates(entity):
        for _, breach in found_drift(rows, entity).failures:
            raise breach
    return rows.collect()


def by(rows: list[Row], column: str = "id") -> dict[object, Row]:
    """The rows by the value of a column."""
    return {row[column]: row for row in rows}
