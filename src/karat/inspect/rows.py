"""Rows of a local lake table as plain Python values, by condition. No JVM."""

from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from karat.config.names import TableName, local_path
from karat.config.resolved import Config
from karat.errors import ConfigError, SourceUnavailable

Row = dict[str, Any]


def exists(config: Config, table: TableName) -> bool:
    """Whether the table exists."""
    return bool(DeltaTable.is_deltatable(_address(config, table)))


def rows_where(config: Config, table: TableName, condition: str) -> list[Row]:
    """The rows for which the SQL condition holds; every value in the condition must come through `literal`."""
    return _asked(config, table, f"SELECT * FROM held WHERE {condition}")  # noqa: S608


def counts_by(config: Config, table: TableName, column: str) -> dict[str, int]:
    """The number of rows for each value of one of Karat's own columns, in the order of the values."""
    found = _asked(config, table, f"SELECT {column} AS value, count(*) AS rows FROM held GROUP BY {column} ORDER BY {column}")  # noqa: S608
    return {row["value"]: row["rows"] for row in found}


def _asked(config: Config, table: TableName, sql: str) -> list[Row]:
    """The result of a query, in which the table is called `held`."""
    address = _address(config, table)
    try:
        found = QueryBuilder().register("held", DeltaTable(address)).execute(sql).read_all()
    except DeltaError as failure:
        message = f"{table} cannot be read: {failure}"
        raise SourceUnavailable(message, remedy="run the project first, or look at the table with Spark") from None
    names = found.schema.names
    columns = [found.column(name).to_pylist() for name in names]
    return [{name: _plain(value) for name, value in zip(names, values, strict=True)} for values in zip(*columns, strict=True)]


def literal(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def _address(config: Config, table: TableName) -> str:
    lake = local_path(config.lake)
    if config.settings.catalog is not None or lake is None:
        message = f"{table} is not on a local disk: it cannot be read without Spark yet"
        raise ConfigError(message, remedy="query the table itself with Spark")
    return f"{lake}/{table.schema}/{table.table}"


def _plain(value: Any) -> Any:  # noqa: ANN401  (whatever a cell holds)
    """Times aware in UTC; Arrow's maps, which come as pairs, as mappings."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        pairs = [item for item in value if isinstance(item, tuple) and len(item) == 2]  # noqa: PLR2004  (key and value)
        if value and len(pairs) == len(value):
            return {name: _plain(item) for name, item in pairs}
        return [_plain(item) for item in value]
    return value
