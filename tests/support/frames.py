"""Literal tables: what a test gives and what it expects, readable as a table."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def frame(spark: SparkSession, table: str) -> DataFrame:
    """A literal table: `name:type` headings, `|` between cells, `-` for null; scalar types only."""
    heading, *rows = ([cell.strip() for cell in line.split("|")] for line in table.strip().splitlines())
    columns = [name_type.split(":", 1) for name_type in heading]
    values = [[F.lit(None if cell == "-" else cell).cast("string") for cell in row] for row in rows]
    names = [name for name, _ in columns]
    structs = [F.struct(*(cell.alias(name) for name, cell in zip(names, row, strict=True))) for row in values]
    # Literals rather than createDataFrame: no Python worker has to start for a handful of cells.
    text = spark.range(1).select(F.inline(F.array(*structs)))
    return text.select(*(F.col(f"`{name}`").cast(type_).alias(name) for name, type_ in columns))


def rows_of(rows: DataFrame, *columns: str) -> list[tuple[object, ...]]:
    """The rows as sorted tuples of the named columns, nulls first."""
    chosen = rows.select(*(F.col(f"`{name}`") for name in columns)) if columns else rows
    return sorted((tuple(row) for row in chosen.collect()), key=lambda row: tuple((cell is not None, str(cell)) for cell in row))
