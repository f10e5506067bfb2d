"""What arriving statements leave unsaid, looked up in the tables and filled in before they are appended to the evidence."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import (
    collapsed_copies,
    complete_as_said,
    heard_since,
    keys_needing_evidence,
    prior_versions,
    reconstructed,
    statements_of_evidence,
    statements_of_versions,
)
from karat.bronze.batch_stats import BatchStats
from karat.bronze.concerned import Concerned
from karat.bronze.context import StageContext
from karat.bronze.new_evidence import SILENT
from karat.bronze.schema import assertion_columns
from karat.temporal.columns import BK, COPIES, SK
from karat.temporal.statements import takes_part


def with_unsaid_filled_in(admitted: DataFrame, stats: BatchStats, concerned: Concerned, context: StageContext) -> DataFrame:
    """The admitted rows as assertions. Grain: one row per statement and file."""
    one = F.lit(1).cast("bigint")
    arriving = collapsed_copies(admitted) if stats.copies else admitted.withColumn(COPIES, one)
    columns = assertion_columns(context.schema)
    if not stats.unsaid:
        return complete_as_said(arriving).selectExpr(*columns)
    silent = concerned.keys.where(SILENT)
    about = arriving.where(takes_part())
    source_level = bool(concerned.new.source_level or context.before.source_level)
    of_sources = arriving.where(F.col(BK).isNull()) if source_level else None
    snapshots = concerned.new.snapshots or context.before.snapshots
    words = _words(silent, stats, concerned, context)
    filled = reconstructed(about.join(silent, SK, "left_semi"), words, of_sources, context.schema, snapshots=snapshots)
    others = complete_as_said(about.join(silent, SK, "left_anti"))
    rest = complete_as_said(arriving.where(~takes_part()))
    return filled.unionByName(others).unionByName(rest).selectExpr(*columns)


def _words(silent: DataFrame, stats: BatchStats, concerned: Concerned, context: StageContext) -> DataFrame:
    """What was said before about the silent keys: by their versions where these tell it, by the evidence elsewhere."""
    before = replace(context.before, shows_apart=context.before.shows_apart | stats.shows_apart)
    all_evidence = bool(concerned.new.source_level)
    prior = prior_versions(concerned.versions, before, context.schema, all_evidence=all_evidence)
    by_versions = statements_of_versions(prior, context.schema)
    needing = keys_needing_evidence(silent, prior, before, context.schema, all_evidence=all_evidence)
    count, since = heard_since(needing, context.assertions())
    if not count:
        return by_versions
    source_level = bool(concerned.new.source_level or context.before.source_level)
    by_evidence = statements_of_evidence(context.assertions(), needing.select(SK), since, source_level=source_level)
    return by_evidence.unionByName(by_versions, allowMissingColumns=True)
