"""A belief as others read it: the first rows as plain values, and the whole as one CSV file or as Parquet."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.lake.materialized import materialized
from karat.temporal.columns import BECAUSE, BK, col, quoted

AS_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSxxx",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
Plain = dict[str, Any]
"""A row as JSON tells it."""


@dataclass(frozen=True)
class Told:
    """What a frame holds: its columns, the first rows by key, and how many there are."""

    columns: tuple[str, ...]
    first: list[Plain]
    count: int


def written(believed: DataFrame, file: Path | None, shown: int) -> Told:
    """The frame, computed once: written to the file if there is one, counted, and its first rows."""
    columns = tuple(believed.columns)
    if file is not None and file.suffix.lower() == ".csv":
        return _as_csv(believed, columns, file, shown)
    with materialized(believed) as rows:
        if file is not None:
            rows.write.parquet(f"file://{file.absolute()}")
        first = [json.loads(row[0]) for row in _as_json(rows.orderBy(BK).limit(shown)).collect()]
        return Told(columns, first, rows.count())


def _as_csv(believed: DataFrame, columns: tuple[str, ...], file: Path, shown: int) -> Told:
    """One file with a heading, by key, written row by row as they come: it is there whole or not at all."""
    unfinished = file.with_name(f".{file.name}.part")
    first: list[Plain] = []
    count = 0
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as lines:
            writer = csv.writer(lines)
            writer.writerow(columns)
            for row in _plain_rows(believed):
                writer.writerow([_cell(row[name]) for name in columns])
                first += [row] if count < shown else []
                count += 1
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return Told(columns, first, count)


def _plain_rows(believed: DataFrame) -> Iterator[Plain]:
    """Partition by partition: the driver never holds more than one."""
    for row in _as_json(believed.orderBy(BK)).toLocalIterator():
        yield json.loads(row[0])


def _as_json(rows: DataFrame) -> DataFrame:
    """Each row as one text, in the order given: times with their offset, hashes in hex, decimals with all their places."""
    cells = [_legible(field).alias(field.name) for field in rows.schema]
    return rows.select(F.to_json(F.struct(*cells), AS_JSON))


def _legible(field: T.StructField) -> Column:
    if isinstance(field.dataType, T.BinaryType):
        return F.lower(F.hex(col(field.name)))
    if isinstance(field.dataType, T.DecimalType):
        return col(field.name).cast("string")
    if field.name == BECAUSE:
        whose = (
            "named_struct('source_system', w.source_system, 'source_event_ts', w.source_event_ts, 'record_hash', lower(hex(w.record_hash)))"
        )
        return F.expr(f"transform_values({quoted(BECAUSE)}, (attribute, w) -> {whose})")
    return col(field.name)


def _cell(value: Any) -> str:  # noqa: ANN401  (whatever JSON holds)
    """A value in CSV: nothing for null, structures as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
