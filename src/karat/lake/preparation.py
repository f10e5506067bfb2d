"""A table is there, and has the columns that its rows need."""

from pyspark.sql import types as T

from karat.config.names import TableName
from karat.lake.delta import DeltaTables
from karat.lake.tables import Layout
from karat.state.commits import Commit

APPEND_ONLY = {"delta.appendOnly": "true"}
DELETION_VECTORS = {"delta.enableDeletionVectors": "true"}
"""A change marks a row as gone instead of rewriting its file."""


def ensure(name: TableName, schema: T.StructType, layout: Layout, tables: DeltaTables, commit: Commit) -> bool:
    """The table is there afterwards and has every column of the schema. Returns whether something had to be done."""
    if not tables.exists(name):
        tables.create(name, schema, layout, commit)
        return True
    held = set(tables.schema(name).names)
    missing = [field for field in schema if field.name not in held]
    if missing:
        tables.add_columns(name, missing)
    return bool(missing)
