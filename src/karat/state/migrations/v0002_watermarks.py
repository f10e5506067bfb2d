"""Version 2: how far each stage has consumed its source."""

from sqlalchemy import Column, Connection, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.schema import CreateTable


def upgrade(connection: Connection) -> None:
    """One new table, empty: positions are written again by the next run of each stage."""
    watermarks = Table(
        "karat_watermarks",
        MetaData(),
        Column("stage", String(255), primary_key=True),
        Column("position", Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False),
        Column("run_id", String(64), nullable=False),
        Column("updated_at", String(32), nullable=False),
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
    )
    connection.execute(CreateTable(watermarks, if_not_exists=True))
