"""Statements as they land: copies inside the batch collapsed, what they leave unsaid filled in from everything before.

What was said before is told by the held versions of a key where these stand for all that can still be inherited, and
by the key's evidence elsewhere. Which of the two it is, is decided key by key.
"""

from datetime import datetime
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.held_statements import as_assertions, heard_from, stands_for_all, versions_tell
from karat.bronze.identity import attribute_hash
from karat.bronze.inheritance import leaves_unsaid, nobodys_word, with_inheritance
from karat.bronze.new_evidence import REOPENS, SILENT, SPAN, EvidenceState
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import from_micros, moment
from karat.temporal.order import ORDER_FILE, in_arrival
from karat.temporal.statements import ROLE, SAID, SPEAKS, in_order
from karat.temporal.windows import all_of

NEEDS_EVIDENCE: Final = "__karat_needs_evidence"
"""Working: of a key about which something is left unsaid: whether only its evidence tells what was said before."""
HEARD_FROM: Final = "__karat_heard_from"
"""Working: a time before which nothing said about the key by then can be inherited any more, in microseconds; null: none."""
ARRIVED_FROM: Final = "__karat_arrived_from"
"""Working: what came before this moment is bounded by `HEARD_FROM`, in microseconds; null: nothing is."""
BOUNDS: Final = (HEARD_FROM, ARRIVED_FROM)
_ARRIVES: Final = "__karat_arrives"
_TELLS: Final = "__karat_tells"
_NOT_INHERITED: Final = (
    *(c.SOURCE_TYPE, c.SOURCE_PATH, c.BATCH_SEQ, c.ENTITY_TYPE, c.INHERITED, c.ATTR_HASH),
    *(c.HASH_VERSION, c.COPIES, c.EXTRA, c.PAYLOAD, c.EXTRACTION_VERSION),
)
"""Columns of an assertion from which nobody inherits."""


def collapsed_copies(rows: DataFrame) -> DataFrame:
    """Rows of the same content, file and key counted once. Grain: one row per statement and file."""
    same = Window.partitionBy(c.RECORD_HASH).orderBy(c.SOURCE_SYSTEM)
    counted = rows.withColumns({c.COPIES: F.count(F.lit(1)).over(all_of(same)), "__karat_copy": F.row_number().over(same)})
    return counted.where(F.col("__karat_copy") == 1).drop("__karat_copy")


def complete_as_said(arriving: DataFrame) -> DataFrame:
    """The rows with nothing inherited. Grain: unchanged."""
    return arriving.withColumn(c.INHERITED, nobodys_word())


def prior_versions(concerned: DataFrame, before: EvidenceState, schema: EntitySchema, *, all_evidence: bool) -> DataFrame:
    """Of the concerned versions those of keys that are left silent on something, each with how much its key's versions tell.

    Grain: one row per version that ends at or after the first new statement about its key.
    """
    near = concerned.where(SILENT)
    if all_evidence or not versions_tell(before, schema):
        unbounded = {name: F.lit(None).cast("bigint") for name in BOUNDS}
        return near.withColumns({NEEDS_EVIDENCE: F.lit(True), **unbounded})
    of_key = Window.partitionBy(c.SK)
    is_bounded = ~F.col(REOPENS) & F.lit(before.arrivals_in_order)
    tells = {_TELLS: stands_for_all(schema, before)}
    bounds = {HEARD_FROM: F.unix_micros(heard_from()), ARRIVED_FROM: F.unix_micros(c.INGEST_TS)}
    least = {name: F.when(is_bounded, F.min(name).over(of_key)) for name in BOUNDS}
    needs = F.col(REOPENS) | ~F.min(_TELLS).over(of_key)
    return near.withColumns({**tells, **bounds}).withColumns({NEEDS_EVIDENCE: needs, **least}).drop(_TELLS)


def keys_needing_evidence(
    silent: DataFrame, prior: DataFrame, before: EvidenceState, schema: EntitySchema, *, all_evidence: bool
) -> DataFrame:
    """The keys whose versions do not tell what was said before, each with `BOUNDS`. Grain: one row per key."""
    unbounded = [F.lit(None).cast("bigint").alias(name) for name in BOUNDS]
    if all_evidence or not versions_tell(before, schema):
        return silent.select(c.SK, *unbounded)
    untold = prior.where(F.col(NEEDS_EVIDENCE) & ~F.col(REOPENS))
    bounds = [F.first(name).alias(name) for name in BOUNDS]
    return silent.where(REOPENS).select(c.SK, *unbounded).unionByName(untold.groupBy(c.SK).agg(*bounds))


def heard_since(needing: DataFrame, assertions: DataFrame) -> tuple[int, datetime | None]:
    """How many keys need evidence, and a time before which none of it counts any more; None if a key has no such time.

    What came after the versions may speak of a time before them: from there on all evidence counts, deletes above all.
    """
    least = [F.when(F.count(name) == F.count(F.lit(1)), F.min(name)).alias(name) for name in BOUNDS]
    row = needing.agg(F.count(F.lit(1)).alias("keys"), *least).collect()[0]
    if row[HEARD_FROM] is None or row[ARRIVED_FROM] is None:
        return row["keys"], None
    came_after = assertions.where(F.col(c.INGEST_TS) >= moment(from_micros(row[ARRIVED_FROM])))
    earliest = came_after.join(needing.select(c.SK), c.SK, "left_semi").agg(F.min(F.unix_micros(c.EVENT_TS))).collect()[0][0]
    return row["keys"], from_micros(min(row[HEARD_FROM], row[HEARD_FROM] if earliest is None else earliest))


def statements_of_versions(prior: DataFrame, schema: EntitySchema) -> DataFrame:
    """What held versions say about the keys for which they tell all. Grain: one row per statement, shaped as an assertion."""
    return as_assertions(prior.where(~F.col(NEEDS_EVIDENCE)).drop(*SPAN, NEEDS_EVIDENCE, *BOUNDS), schema)


def statements_of_evidence(assertions: DataFrame, keys: DataFrame, since: datetime | None, *, source_level: bool) -> DataFrame:
    """What is on record about these keys from a time on, and about whole sources if asked for. Grain: as the evidence."""
    told = assertions.drop(*_NOT_INHERITED)
    bounded = told if since is None else told.where(F.col(c.EVENT_TS) >= moment(since))
    of_keys = bounded.where(F.col(c.BK).isNotNull()).join(keys, c.SK, "left_semi")
    return of_keys.unionByName(told.where(F.col(c.BK).isNull())) if source_level else of_keys


def reconstructed(
    arriving: DataFrame, prior: DataFrame, of_sources: DataFrame | None, schema: EntitySchema, *, snapshots: bool
) -> DataFrame:
    """The arriving rows with what they left unsaid, taken from the prior assertions about their keys and from each other.

    `arriving` are about keys and take part; `of_sources` are the arriving statements about whole sources, None where there
    neither are nor were any; `snapshots` says whether there may be rows of snapshots. Grain: unchanged.
    """
    fresh = arriving.withColumns({c.INHERITED: nobodys_word(), _ARRIVES: F.lit(True)})
    known = [name for name in prior.columns if name in fresh.columns]
    heard = prior.select(*map(c.col, known)).where(F.col(c.TIME_BASIS).isNotNull())
    everything = fresh.unionByName(heard.withColumn(_ARRIVES, F.lit(False)), allowMissingColumns=True)
    sources = None
    if of_sources is not None:
        of_all_time = of_sources.unionByName(heard, allowMissingColumns=True).where(F.col(c.BK).isNull())
        sources = _timed(of_all_time, c.SOURCE_SYSTEM).where(SPEAKS)
    fill = F.col(_ARRIVES) & (F.col(ROLE) == SAID) & leaves_unsaid(schema)
    state = F.when(fill, attribute_hash(schema)).otherwise(F.col(c.ATTR_HASH))
    return (
        in_order(_timed(everything.where(F.col(c.BK).isNotNull()), c.BK), sources, schema, presence=snapshots)
        .transform(with_inheritance, schema, fill, copies=True)
        .where(F.col(_ARRIVES) & (F.col(ROLE) == SAID))
        .select(*(state.alias(name) if name == c.ATTR_HASH else c.col(name) for name in fresh.columns if name != _ARRIVES))
    )


def _timed(rows: DataFrame, subject: str) -> DataFrame:
    """Ready to be ordered; a copy of a statement that was heard before is heard no second time. Grain: unchanged."""
    arrival = in_arrival(subject, c.STATEMENT_HASH)
    first_file = F.min(c.SOURCE_FILE).over(all_of(arrival))
    return rows.withColumns({c.AT: F.col(c.EVENT_TS), ORDER_FILE: first_file, SPEAKS: F.row_number().over(arrival) == 1})
