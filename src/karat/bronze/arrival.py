"""Statements as they land: copies inside the batch collapsed, what they leave unsaid filled in from everything before.

What was said before is told by the held versions of a key where these stand for all that can still be inherited, and
by the key's evidence elsewhere. Which of the two it is, is decided key by key.
"""

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.identity import attribute_hash
from karat.bronze.inheritance import leaves_something_unsaid, nobodys_word, with_inheritance
from karat.bronze.known_words import as_assertions, heard_from, stands_for_all, versions_tell
from karat.bronze.new_evidence import EvidenceState, reopens
from karat.temporal.columns import (
    AT,
    ATTR_HASH,
    BATCH_SEQ,
    BK,
    COPIES,
    ENTITY_TYPE,
    EVENT_TS,
    EXTRA,
    EXTRACTION_VERSION,
    HASH_VERSION,
    INHERITED,
    PAYLOAD,
    RECORD_HASH,
    SK,
    SNAPSHOT_TS,
    SOURCE_EFFECTIVE_TO,
    SOURCE_FILE,
    SOURCE_PATH,
    SOURCE_SYSTEM,
    SOURCE_TYPE,
    STATEMENT_HASH,
    TIME_BASIS,
    col,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment
from karat.temporal.order import ORDER_FILE, in_arrival
from karat.temporal.statements import ROLE, SAID, SPEAKS, in_order
from karat.temporal.windows import all_of

NEEDS_EVIDENCE: Final = "__karat_needs_evidence"
"""Working: of a key about which something is left unsaid: whether only its evidence tells what was said before."""
HEARD_FROM: Final = "__karat_heard_from"
"""Working: a time before which nothing said about the key can be inherited any more, in microseconds; null: none."""
_ARRIVES: Final = "__karat_arrives"
_REOPENS: Final = "__karat_reopens"
_SINCE: Final = "__karat_since"
_TELLS: Final = "__karat_tells"
PRIOR: Final = (NEEDS_EVIDENCE, HEARD_FROM, _REOPENS, _SINCE)
"""The working columns of prior versions."""
_NOT_INHERITED: Final = (
    *(SOURCE_TYPE, SOURCE_PATH, BATCH_SEQ, ENTITY_TYPE, INHERITED, ATTR_HASH),
    *(HASH_VERSION, COPIES, EXTRA, PAYLOAD, EXTRACTION_VERSION),
)
"""Columns of an assertion from which nobody inherits."""


def collapsed_copies(rows: DataFrame) -> DataFrame:
    """Rows of the same content, file and key counted once. Grain: one row per statement and file."""
    same = Window.partitionBy(RECORD_HASH).orderBy(SOURCE_SYSTEM)
    counted = rows.withColumns({COPIES: F.count(F.lit(1)).over(all_of(same)), "__karat_copy": F.row_number().over(same)})
    return counted.where(F.col("__karat_copy") == 1).drop("__karat_copy")


def leaves_unsaid(schema: EntitySchema) -> Column:
    """Whether a statement about a key that takes part is silent on any attribute: a partial, or a delete."""
    return leaves_something_unsaid(schema) & takes_part()


def takes_part() -> Column:
    """Whether a row is a statement about a key, in an entity that has a timeline."""
    return F.col(BK).isNotNull() & F.col(TIME_BASIS).isNotNull()


def complete_as_said(arriving: DataFrame) -> DataFrame:
    """The rows with nothing inherited. Grain: unchanged."""
    return arriving.withColumn(INHERITED, nobodys_word())


def unsaid_keys(arriving: DataFrame, before: EvidenceState, schema: EntitySchema) -> DataFrame:
    """The keys about which something is left unsaid, with the first time anything new speaks of. Grain: one row per key."""
    found = {
        SK: col(SK),
        _REOPENS: F.max(F.coalesce(reopens(before), F.lit(False))),
        _SINCE: F.min(F.least(F.col(EVENT_TS), F.col(SNAPSHOT_TS))),
        "__karat_silent": F.max(leaves_unsaid(schema)),
    }
    about_keys = arriving.where(takes_part()).groupBy(SK)
    per_key = about_keys.agg(*(value.alias(name) for name, value in found.items() if name != SK))
    return per_key.where("__karat_silent").drop("__karat_silent")


def prior_versions(held: DataFrame, keys: DataFrame, before: EvidenceState, schema: EntitySchema, *, all_evidence: bool) -> DataFrame:
    """The held versions of these keys that later statements may inherit from, each with how much its key's versions tell.

    Grain: one row per version that ends at or after the first new statement about its key.
    """
    near = held.join(keys, SK, "inner").where(F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) >= F.col(_SINCE)))
    if all_evidence or not versions_tell(before, schema):
        return near.withColumns({NEEDS_EVIDENCE: F.lit(True), HEARD_FROM: F.lit(None).cast("bigint")})
    of_key = Window.partitionBy(SK)
    marked = near.withColumns({_TELLS: stands_for_all(schema, before), HEARD_FROM: F.unix_micros(heard_from(schema))})
    # one version that does not say since when its source is heard leaves the key without a bound
    is_bounded = F.count(HEARD_FROM).over(of_key) == F.count(F.lit(1)).over(of_key)
    bound = F.when(is_bounded & ~F.col(_REOPENS), F.min(HEARD_FROM).over(of_key))
    needs = F.col(_REOPENS) | ~F.min(_TELLS).over(of_key)
    return marked.withColumns({NEEDS_EVIDENCE: needs, HEARD_FROM: bound}).drop(_TELLS)


def keys_needing_evidence(
    keys: DataFrame, prior: DataFrame, before: EvidenceState, schema: EntitySchema, *, all_evidence: bool
) -> DataFrame:
    """The keys whose versions do not tell what was said before, each with `HEARD_FROM`. Grain: one row per key."""
    unbounded = F.lit(None).cast("bigint").alias(HEARD_FROM)
    if all_evidence or not versions_tell(before, schema):
        return keys.select(SK, unbounded)
    untold = prior.where(F.col(NEEDS_EVIDENCE) & ~F.col(_REOPENS)).groupBy(SK).agg(F.first(HEARD_FROM).alias(HEARD_FROM))
    return keys.where(_REOPENS).select(SK, unbounded).unionByName(untold)


def words_of_versions(prior: DataFrame, schema: EntitySchema) -> DataFrame:
    """What held versions say about the keys for which they tell all. Grain: one row per statement, shaped as an assertion."""
    return as_assertions(prior.where(~F.col(NEEDS_EVIDENCE)).drop(*PRIOR), schema)


def words_of_evidence(assertions: DataFrame, keys: DataFrame, since: datetime | None) -> DataFrame:
    """What is on record about these keys from a time on, and about whole sources. Grain: as the evidence."""
    told = assertions.drop(*_NOT_INHERITED)
    bounded = told if since is None else told.where(F.col(EVENT_TS) >= moment(since))
    of_keys = bounded.where(F.col(BK).isNotNull()).join(keys, SK, "left_semi")
    return of_keys.unionByName(told.where(F.col(BK).isNull()))


def reconstructed(arriving: DataFrame, prior: DataFrame, of_sources: DataFrame, schema: EntitySchema) -> DataFrame:
    """The arriving rows with what they left unsaid, taken from the prior assertions about their keys and from each other.

    `arriving` are about keys and take part; `of_sources` are the arriving statements about whole sources. Grain:
    unchanged.
    """
    fresh = arriving.withColumns({INHERITED: nobodys_word(), _ARRIVES: F.lit(True)})
    known = [name for name in prior.columns if name in fresh.columns]
    heard = prior.select(*map(col, known)).where(F.col(TIME_BASIS).isNotNull())
    everything = fresh.unionByName(heard.withColumn(_ARRIVES, F.lit(False)), allowMissingColumns=True)
    of_all_time = of_sources.unionByName(heard, allowMissingColumns=True).where(F.col(BK).isNull())
    sources = _timed(of_all_time, SOURCE_SYSTEM).where(SPEAKS)
    fill = F.col(_ARRIVES) & (F.col(ROLE) == SAID) & leaves_unsaid(schema)
    state = F.when(fill, attribute_hash(schema)).otherwise(F.col(ATTR_HASH))
    return (
        in_order(_timed(everything.where(F.col(BK).isNotNull()), BK), sources, schema)
        .transform(with_inheritance, schema, fill, copies=True)
        .where(F.col(_ARRIVES) & (F.col(ROLE) == SAID))
        .select(*(state.alias(name) if name == ATTR_HASH else col(name) for name in fresh.columns if name != _ARRIVES))
    )


def _timed(rows: DataFrame, subject: str) -> DataFrame:
    """Ready to be ordered; a copy of a statement that was heard before is heard no second time. Grain: unchanged."""
    arrival = in_arrival(subject, STATEMENT_HASH)
    first_file = F.min(SOURCE_FILE).over(all_of(arrival))
    return rows.withColumns({AT: F.col(EVENT_TS), ORDER_FILE: first_file, SPEAKS: F.row_number().over(arrival) == 1})
