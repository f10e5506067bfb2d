"""A lake table as a feed: by its change feed, (lower, upper] in versions, or above a watermark, (lower, upper] in values of a column.

The first read takes the whole table as it is; a later one takes what was inserted, what rows became and which are gone.
"""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from karat.errors import ConfigError, SourceUnavailable
from karat.sources.raw import BROKEN, CHANGE, COMMIT, COMMITTED_AT, FIELDS, FILE, LINE, PATH, ROW, no_text, typed_record
from karat.sources.typed import table_records
from karat.temporal.columns import col

_NO_FEED = ("DELTA_MISSING_CHANGE_DATA",)
_VACUUMED = (
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "FILE_NOT_EXIST",
    "DELTA_VERSION_NOT_CONTIGUOUS",
    "DELTA_VERSION_INVALID",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_CANNOT_RECREATE_LOG",
    "VersionNotFound",
)
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")


def changed_records(session: SparkSession, address: str, table: str, lower: int | None, upper: int) -> DataFrame:
    """What changed after version `lower`, up to and including `upper`, as a raw frame; all there is at `upper` when there is no `lower`.

    `address` is a path or a name of the catalog, `table` what people call it. Grain: one row per row inserted or deleted, two per row
    changed: as it was and as it is, since only both tell whether its key has changed.
    """
    if lower is None or lower >= upper:
        snapshot = table_records(_read(session, address, {"versionAsOf": str(upper)}), table)
        return snapshot if lower is None else snapshot.where(F.lit(False))
    changes = change_rows(session, address, table, lower, upper)
    fields, row = typed_record(changes, without=_FEED_COLUMNS)
    return changes.select(
        no_text().alias(LINE),
        fields.alias(FIELDS),
        row.alias(ROW),
        F.lit(table).alias(PATH),
        no_text().alias(FILE),
        no_text().alias(BROKEN),
        col("_change_type").alias(CHANGE),
        col("_commit_version").alias(COMMIT),
        col("_commit_timestamp").alias(COMMITTED_AT),
    )


def change_rows(session: SparkSession, address: str, table: str, lower: int | None, upper: int) -> DataFrame:
    """Delta's change feed after version `lower`, up to and including `upper`; from its beginning when there is no `lower`.

    Raises `ConfigError` where the table kept no feed, or no longer has the files of these versions. Grain: one row per row inserted or
    deleted, two per row changed.
    """
    first = 0 if lower is None else lower + 1
    feed = {"readChangeFeed": "true", "startingVersion": str(first), "endingVersion": str(upper)}
    try:
        changes = _read(session, address, feed)
        # Delta looks for the change files only when it is about to read them: ask now, while the answer can be explained
        changes.select("_change_type").isEmpty()
    except (PySparkException, Py4JJavaError) as failure:
        if any(sign in str(failure) for sign in _NO_FEED):
            raise _no_change_feed(table, first, upper) from failure
        if is_vacuumed(failure):
            raise vacuumed(table, first, upper) from failure
        raise
    return changes


def is_vacuumed(failure: BaseException) -> bool:
    """Whether files or log entries of the versions that were asked for are no longer there."""
    return any(sign in str(failure) for sign in _VACUUMED)


def vacuumed(table: str, first: int, last: int) -> SourceUnavailable:
    """What is told where changes were removed before they were read."""
    message = f"changes of {table} in versions {first} to {last} are no longer there: they were vacuumed before they were read"
    return SourceUnavailable(
        message, remedy="read it anew from the start (karat run --reload), and keep its files longer than runs lie apart"
    )


def highest(rows: DataFrame, watermark: str) -> str | None:
    """How far the table reaches in its watermark, as text; None when no row has one."""
    found = rows.agg(F.max(_column(rows, watermark)).cast("string").alias("highest")).first()
    return None if found is None else found["highest"]


def records_between(rows: DataFrame, table: str, watermark: str, lower: str | None, upper: str | None) -> DataFrame:
    """The rows above `lower` and up to `upper` as a raw frame; a row without a watermark belongs to no bound and is always read.

    Bounds are texts as `highest` gives them and are compared in the column's own type. Grain: one row per row.
    """
    mark, kind = _column(rows, watermark), rows.schema[_name(rows, watermark)].dataType
    inside = F.lit(True)
    if lower is not None:
        inside = mark > F.lit(lower).cast(kind)
    if upper is not None:
        inside = inside & (mark <= F.lit(upper).cast(kind))
    return table_records(rows.where(mark.isNull() | inside), table)


def _read(session: SparkSession, address: str, options: dict[str, str]) -> DataFrame:
    reader = session.read.format("delta").options(**options)
    return reader.load(address) if "/" in address else reader.table(address)


def _column(rows: DataFrame, watermark: str) -> Column:
    return col(_name(rows, watermark))


def _name(rows: DataFrame, watermark: str) -> str:
    for name in rows.columns:
        if name.lower() == watermark.lower():
            return name
    message = f"there is no column {watermark} to recognise new rows by"
    raise ConfigError(message, remedy=f"set `watermark` to one of: {', '.join(rows.columns)}")


def _no_change_feed(table: str, first: int, last: int) -> ConfigError:
    message = f"table {table} kept no change feed for versions {first} to {last}"
    remedy = (
        f"ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true) and read it anew from the start, "
        "or use mode: watermark with a column that grows"
    )
    return ConfigError(message, remedy=remedy, table=table)
