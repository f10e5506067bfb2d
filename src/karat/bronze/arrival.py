"""Statements as they land: copies inside the batch collapsed, what they left unsaid filled in from everything before them."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.identity import attribute_hash
from karat.bronze.inheritance import SPEAKS, leaves_something_unsaid, nobodys_word, with_inheritance
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
    SOURCE_FILE,
    SOURCE_PATH,
    SOURCE_SYSTEM,
    SOURCE_TYPE,
    STATEMENT_HASH,
    TIME_BASIS,
    col,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.order import ORDER_FILE, in_arrival
from karat.temporal.source_level import ROLE, SAID, as_facts, in_order
from karat.temporal.windows import all_of

ARRIVES = "__karat_arrives"
"""Working: whether the row is of this batch, rather than on record."""
UNHEARD = (SOURCE_TYPE, SOURCE_PATH, BATCH_SEQ, ENTITY_TYPE, INHERITED, ATTR_HASH, HASH_VERSION, COPIES, EXTRA, PAYLOAD, EXTRACTION_VERSION)
"""Columns of an assertion that nobody inherits."""


def collapsed_copies(rows: DataFrame) -> DataFrame:
    """Rows of the same content, file and key counted once. Grain: one row per statement and file."""
    same = Window.partitionBy(RECORD_HASH).orderBy(SOURCE_SYSTEM)
    counted = rows.withColumns({COPIES: F.count(F.lit(1)).over(all_of(same)), "__karat_copy": F.row_number().over(same)})
    return counted.where(F.col("__karat_copy") == 1).drop("__karat_copy")


def leaves_unsaid(terms: EntitySchema) -> Column:
    """Whether a statement about a key is silent on any attribute: a partial, or a delete."""
    return leaves_something_unsaid(terms) & F.col(BK).isNotNull() & F.col(TIME_BASIS).isNotNull()


def complete_as_said(arriving: DataFrame) -> DataFrame:
    """The rows when none of them leaves anything unsaid."""
    return arriving.withColumn(INHERITED, nobodys_word())


def heard(prior: DataFrame) -> DataFrame:
    """What of prior assertions can be inherited or decides by whom; whole documents, which may be large, are left where they are."""
    return prior.drop(*UNHEARD)


def reconstructed(arriving: DataFrame, prior: DataFrame, terms: EntitySchema) -> DataFrame:
    """The arriving rows with what they left unsaid, taken from the prior assertions about their keys and from each other.

    Grain: one row per arriving row. `prior` are rows of the assertions table, at least as much of them as is `heard`.
    """
    fresh = arriving.withColumns({INHERITED: nobodys_word(), ARRIVES: F.lit(True)})
    unknown = [name for name in prior.columns if name not in fresh.columns]
    everything = fresh.unionByName(prior.drop(*unknown).withColumn(ARRIVES, F.lit(False)), allowMissingColumns=True)
    takes_part = F.col(TIME_BASIS).isNotNull()
    about_keys = _timed(everything.where(takes_part & F.col(BK).isNotNull()), BK)
    of_sources = _timed(everything.where(takes_part & F.col(BK).isNull()), SOURCE_SYSTEM) if terms.swept else None
    fill = F.col(ARRIVES) & (F.col(ROLE) == SAID) & leaves_unsaid(terms)
    state = F.when(fill, attribute_hash(terms)).otherwise(F.col(ATTR_HASH))
    filled = (
        in_order(about_keys, of_sources, as_facts(terms) if terms.is_transaction else terms)
        .transform(with_inheritance, terms, fill, copies=True)
        .where(F.col(ARRIVES) & (F.col(ROLE) == SAID))
        .select(*(state.alias(name) if name == ATTR_HASH else col(name) for name in fresh.columns if name != ARRIVES))
    )
    aside = fresh.where(~takes_part | F.col(BK).isNull()).drop(ARRIVES)
    return filled.unionByName(aside)


def _timed(rows: DataFrame, subject: str) -> DataFrame:
    """Ready to be ordered; a copy of a statement that was heard before is heard no second time."""
    arrival = in_arrival(subject, STATEMENT_HASH)
    first_file = F.min(SOURCE_FILE).over(all_of(arrival))
    return rows.withColumns({AT: F.col(EVENT_TS), ORDER_FILE: first_file, SPEAKS: F.row_number().over(arrival) == 1})
