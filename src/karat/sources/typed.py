"""Records with typed columns: parquet files and rows of tables."""

from collections.abc import Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.errors import ContractBreach
from karat.sources.paths import file_column, literal_path, path_column
from karat.sources.raw import BROKEN, FIELDS, FILE, LINE, PATH, ROW, no_text, typed_record

_CLASHES = ("CANNOT_MERGE_SCHEMAS", "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE", "COLUMN_ALREADY_EXISTS")


def read_parquet(session: SparkSession, paths: Sequence[str], feed: str) -> DataFrame:
    """Rows of parquet files, a column that some files lack null in theirs, as a raw frame. Grain: one row per row."""
    files = [literal_path(path) for path in paths]
    try:
        rows = session.read.option("mergeSchema", "true").parquet(*files)
    except (PySparkException, Py4JJavaError) as failure:
        if any(clash in str(failure) for clash in _CLASHES):
            raise _clash(session, files, feed) from failure
        raise
    fields, row = typed_record(rows)
    return rows.select(
        no_text().alias(LINE),
        fields.alias(FIELDS),
        row.alias(ROW),
        path_column().alias(PATH),
        file_column().alias(FILE),
        no_text().alias(BROKEN),
    )


def table_records(rows: DataFrame, table: str) -> DataFrame:
    """Rows of a table as a raw frame. Grain: one row per row."""
    fields, row = typed_record(rows)
    return rows.select(
        no_text().alias(LINE),
        fields.alias(FIELDS),
        row.alias(ROW),
        F.lit(table).alias(PATH),
        no_text().alias(FILE),
        no_text().alias(BROKEN),
    )


def _clash(session: SparkSession, files: Sequence[str], feed: str) -> ContractBreach:
    """The columns that the files do not agree about; looked for only after Spark has given up."""
    types: dict[str, set[str]] = {}
    for file in files:
        for field in session.read.parquet(file).schema:
            types.setdefault(field.name.lower(), set()).add(f"{field.name} {field.dataType.simpleString()}")
    clashes = {name: sorted(said) for name, said in types.items() if len(said) > 1}
    shown = "; ".join(" and ".join(said) for said in clashes.values())
    message = f"the files of feed {feed} do not agree about column {', '.join(clashes)}: {shown}"
    remedy = "write the column with one type, or give the files of each type a feed of their own"
    return ContractBreach(message, remedy=remedy, feed=feed, columns=clashes)
