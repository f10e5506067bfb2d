"""Refused rows, read from the quarantine tables. No JVM."""

from karat.config.resolved import Config
from karat.inspect.history import entity_named
from karat.inspect.rows import Row, exists, rows_where


def refused_rows(config: Config, name: str | None) -> list[Row]:
    """The refused rows of one entity, or of all, with the entity's name; oldest first."""
    entities = config.entities if name is None else (entity_named(config, name),)
    found = [
        {"entity": entity.name, **row}
        for entity in entities
        if exists(config, entity.quarantine)
        for row in rows_where(config, entity.quarantine, "1 = 1")
    ]
    return sorted(found, key=lambda row: (row["entity"], row["ingest_ts"], row["source_path"] or "", row["quarantine_id"]))
