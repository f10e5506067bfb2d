"""`gold.kimball_watermarks`: for each target and source the version that is in the target, as its own commits say.

The table is a mirror, written once a run after the data. Its commit carries what it says, so a run in which nothing moved reads one log and
no rows; a run that was killed before it wrote the mirror is made up for by the next one.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.names import TableName
from karat.lake.context import RunContext
from karat.lake.tables import Layout
from karat.temporal.moments import moment

WATERMARKS: Final = T.StructType(
    [
        T.StructField("target_table", T.StringType()),
        T.StructField("source_table", T.StringType()),
        T.StructField("last_processed_version", T.LongType()),
        T.StructField("updated_at", T.TimestampType()),
    ]
)
Versions = Mapping[str, Mapping[str, int]]
"""Target to source to version."""


def watermark_table(context: RunContext) -> TableName:
    """The name of the mirror."""
    return TableName("gold", "kimball_watermarks", None, context.config.settings.catalog)


def write_watermarks(context: RunContext, read: Versions) -> None:
    """The mirror says afterwards what the targets have read; one commit, or none where it says so already."""
    name, tables = watermark_table(context), context.tables()
    stage = str(name)
    state = tables.state(name, stage)
    known: dict[str, dict[str, int]] = dict(state.checkpoint.position.get("targets", {}))
    new = {target: dict(sources) for target, sources in read.items() if sources and known.get(target) != dict(sources)}
    if not new:
        return
    if not state.exists:
        tables.create(name, WATERMARKS, Layout(), context.commit(stage, 0))
        state = tables.state(name, stage)
    rows = [
        F.struct(F.lit(target), F.lit(source), F.lit(version).cast("bigint"), moment(context.stamp.started_at))
        for target, sources in new.items()
        for source, version in sources.items()
    ]
    told = tables.session.range(1).select(F.inline(F.array(*rows))).toDF(*WATERMARKS.names)
    kept = tables.read(name, state.version).where(~F.col("target_table").isin(*new))
    commit = context.commit(stage, state.next_number, targets={**known, **new})
    tables.overwrite(kept.unionByName(told).coalesce(1), name, commit)
