"""A lake table as a feed: what it has beyond where the evidence's last commit says it was read to."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from karat.config.entity import TableSource
from karat.config.resolved import FeedOf
from karat.errors import InternalError
from karat.lake.delta import DeltaTables
from karat.sources.changes import changed_records, highest, records_between


def read_table(feed: FeedOf, entry: Mapping[str, Any], tables: DeltaTables) -> tuple[DataFrame, Mapping[str, Any]] | None:
    """The raw records that are new, and where the feed stands afterwards; None when the table has not moved."""
    source, name = feed.feed.source, feed.table
    if not isinstance(source, TableSource) or name is None:
        message = f"feed {feed.feed.name} does not read a table"
        raise InternalError(message)
    rows = tables.read(name)  # an unknown table says so before anything else is asked of it
    version = tables.version(name)
    stands_at = {"version": version, "since": tables.made_at(name)}
    is_same_table = entry.get("since") == stands_at["since"]
    if is_same_table and entry.get("version") == version:
        return None
    if source.watermark is None:
        lower = entry.get("version") if is_same_table else None
        return changed_records(tables.session, tables.address(name), str(name), lower, version), stands_at
    lower = entry.get("watermark")
    upper = highest(rows, source.watermark)
    return records_between(rows, str(name), source.watermark, lower, upper), {**stands_at, "watermark": upper or lower}
