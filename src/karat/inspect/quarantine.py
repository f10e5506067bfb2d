"""Refused rows, read from the quarantine tables. No JVM."""

from karat.config.names import TableName
from karat.config.resolved import Config
from karat.inspect.history import entity_named, star_named
from karat.inspect.rows import Row, exists, rows_where


def refused_rows(config: Config, name: str | None) -> list[Row]:
    """The refused rows of one entity or one table of the star, or of all, with its name; oldest first."""
    found = [
        {"entity": owner, **row}
        for owner, table in _quarantines(config, name)
        if exists(config, table)
        for row in rows_where(config, table, "1 = 1")
    ]
    return sorted(found, key=lambda row: (row["entity"], row["ingest_ts"], row["source_path"] or "", row["quarantine_id"]))


def _quarantines(config: Config, name: str | None) -> list[tuple[str, TableName]]:
    """Who refuses rows, and where they are; an entity by its name, a table of the star as gold.NAME."""
    if name is None:
        entities = [(entity.name, entity.quarantine) for entity in config.entities]
        return [*entities, *((str(star.table), star.quarantine) for star in config.star)]
    if name.startswith("gold."):
        star = star_named(config, name)
        return [(str(star.table), star.quarantine)]
    entity = entity_named(config, name)
    return [(entity.name, entity.quarantine)]
