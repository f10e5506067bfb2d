"""Version 3: what loads of the star count beside rows read and written."""

from sqlalchemy import Connection, inspect, text

_COUNTS = ("rows_closed", "rows_skeletons", "rows_bytes")


def upgrade(connection: Connection) -> None:
    """Three new columns, 0 in every row that is there; one that is already there was added by the same step, interrupted."""
    known = {column["name"] for column in inspect(connection).get_columns("karat_stages")}
    for name in _COUNTS:
        if name not in known:
            connection.execute(text(f"ALTER TABLE karat_stages ADD COLUMN {name} BIGINT DEFAULT 0 NOT NULL"))
