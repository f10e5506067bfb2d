"""What arriving statements leave unsaid, looked up in the tables and filled in before they are appended to the evidence."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import (
    HEARD_FROM,
    collapsed_copies,
    complete_as_said,
    keys_needing_evidence,
    prior_versions,
    reconstructed,
    takes_part,
    unsaid_keys,
    words_of_evidence,
    words_of_versions,
)
from karat.bronze.batch_stats import BatchStats
from karat.bronze.context import StageContext
from karat.bronze.schema import assertion_columns
from karat.lake.materialized import materialized
from karat.temporal.columns import BK, COPIES, SK, SOURCE_EFFECTIVE_TO
from karat.temporal.moments import from_micros, moment


@contextmanager
def with_unsaid_filled_in(admitted: DataFrame, stats: BatchStats, context: StageContext, *, source_level: bool) -> Iterator[DataFrame]:
    """The admitted rows as assertions, usable inside the block. Grain: one row per statement and file.

    `source_level` says whether the batch has statements about whole sources.
    """
    one = F.lit(1).cast("bigint")
    arriving = collapsed_copies(admitted) if stats.copies else admitted.withColumn(COPIES, one)
    columns = assertion_columns(context.schema)
    if not stats.unsaid:
        yield complete_as_said(arriving).selectExpr(*columns)
        return
    before = replace(context.before, shows_apart=context.before.shows_apart | stats.shows_apart)
    with materialized(unsaid_keys(arriving, before, context.schema)) as keys:
        held = context.versions()
        if stats.earliest is not None and not context.schema.is_transaction:  # a literal keeps files of older versions closed
            held = held.where(F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) >= moment(stats.earliest)))
        with materialized(prior_versions(held, keys, before, context.schema, all_evidence=source_level)) as prior:
            needing = keys_needing_evidence(keys, prior, before, context.schema, all_evidence=source_level)
            words = _words(prior, needing, context)
            silent = keys.select(SK)
            about = arriving.where(takes_part())
            filled = reconstructed(about.join(silent, SK, "left_semi"), words, arriving.where(F.col(BK).isNull()), context.schema)
            others = complete_as_said(arriving.where(takes_part()).join(silent, SK, "left_anti"))
            rest = complete_as_said(arriving.where(~takes_part()))
            yield filled.unionByName(others).unionByName(rest).selectExpr(*columns)


def _words(prior: DataFrame, needing: DataFrame, context: StageContext) -> DataFrame:
    """What was said before about the silent keys: by their versions where these tell it, by the evidence elsewhere."""
    by_versions = words_of_versions(prior, context.schema)
    bounded = F.count(HEARD_FROM) == F.count(F.lit(1))
    row = needing.agg(F.count(F.lit(1)).alias("keys"), F.when(bounded, F.min(HEARD_FROM)).alias("since")).collect()[0]
    if not row["keys"]:
        return by_versions
    since = None if row["since"] is None else from_micros(row["since"])
    by_evidence = words_of_evidence(context.assertions(), needing.select(SK), since)
    return by_evidence.unionByName(by_versions, allowMissingColumns=True)
