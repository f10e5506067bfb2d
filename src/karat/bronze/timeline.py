"""A timeline is a pure function from assertions to periods.

statement      what a source said once, however many copies of it arrived
version        the stretch during which one state, said by one source, stood; it absorbs repeats and re-observations
entity chain   all versions of a key in order: `effective_from`, `effective_to`, `is_current`
source chain   the versions of one source among them: `source_effective_to`, `is_source_current`

    CRM  Active @1 ──────────┐            effective 1 to 2      source 1 to 4
    CORE Restricted @2 ──────┼─────┐      effective 2 to 4      source 2 on
    CRM  Closed @4 ──────────┘     └──    effective 4 on    source 4 on
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.facts import facts
from karat.bronze.identity import attribute_hash
from karat.bronze.inheritance import SPEAKS, leaves_something_unsaid, with_inheritance
from karat.bronze.shape import timeline_columns
from karat.temporal.columns import (
    AT,
    ATTR_HASH,
    BK,
    COPIES,
    CORRECTS,
    EFFECTIVE_FROM,
    EFFECTIVE_TO,
    EVENT_TS,
    FIRST_SEEN,
    INGEST_TS,
    INHERITED,
    IS_CURRENT,
    IS_DELETED,
    IS_SOURCE_CURRENT,
    LAST_EVENT_TS,
    LAST_SEEN,
    PLACE,
    SEEN_COUNT,
    SOURCE_EFFECTIVE_TO,
    SOURCE_FILE,
    SOURCE_SYSTEM,
    STATEMENT_HASH,
    TIME_BASIS,
    Names,
    col,
)
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.order import ORDER_FILE, in_arrival, in_place, in_place_by_source
from karat.temporal.source_level import FOLLOWS, ROLE, as_facts, in_order, is_snapshot
from karat.temporal.windows import all_of, before

VERSION = "__karat_version"
"""Working: the number of the version a statement belongs to, within its entity."""
OPENS = "__karat_opens"
SETTLED = "__karat_settled"
"""Working: the end of a held version that lies before anything new, and so stands whatever follows it among the rows at hand."""
AGAIN = "__karat_again"
"""Working: whether a snapshot row merely shows again what its source last said."""


def timeline(assertions: DataFrame, terms: EntitySchema) -> DataFrame:
    """Every version, from nothing but the assertions. Grain: one row per version of an entity (of a transaction: per distinct content)."""
    told = statements(assertions, terms).transform(_reconstructed, terms)
    return facts(told, terms) if terms.is_transaction else versions(told, terms)


def statements(assertions: DataFrame, terms: EntitySchema) -> DataFrame:
    """What counts of the assertions: each thing said once, however often it arrived, with what follows from statements of whole sources.

    `AT` is when it takes effect, `PLACE` its number in its entity's order. Grain: one row per statement and key.
    """
    authoritative = assertions.where(F.col(TIME_BASIS).isNotNull())
    said_of_keys = authoritative.where(F.col(BK).isNotNull()).transform(distinct_statements, (BK, STATEMENT_HASH))
    if terms.is_transaction:
        return in_order(said_of_keys, None, as_facts(terms))
    if not terms.swept:
        return in_order(said_of_keys, None, terms)
    of_sources = authoritative.where(F.col(BK).isNull()).transform(distinct_statements, (SOURCE_SYSTEM, STATEMENT_HASH))
    return in_order(said_of_keys, of_sources, terms)


def distinct_statements(rows: DataFrame, identity: Names) -> DataFrame:
    """Copies counted once: the first arrival's row, with how often and when the statement was seen. Grain: one row per statement."""
    arrival = in_arrival(*identity)
    same = all_of(arrival)
    counted = rows.withColumns(
        {
            "__karat_arrival": F.row_number().over(arrival),
            FIRST_SEEN: F.min(INGEST_TS).over(same),
            LAST_SEEN: F.max(INGEST_TS).over(same),
            SEEN_COUNT: F.sum(COPIES).over(same),
            ORDER_FILE: F.min(SOURCE_FILE).over(same),
            AT: F.col(EVENT_TS),
            SPEAKS: F.lit(True),
            LAST_EVENT_TS: F.lit(None).cast("timestamp"),
            SETTLED: F.lit(None).cast("timestamp"),
        }
    )
    return counted.where(F.col("__karat_arrival") == 1).drop("__karat_arrival")


def versions(told: DataFrame, terms: EntitySchema) -> DataFrame:
    """Statements complete and in their order to versions with both chains. Grain: one row per version."""
    by_source = in_place_by_source(terms.sources)
    return (
        told.transform(_with_versions, terms)
        .transform(collapsed, terms)
        .withColumns(
            {
                EFFECTIVE_TO: F.coalesce(F.col(SETTLED), F.lead(EFFECTIVE_FROM).over(in_place())),
                SOURCE_EFFECTIVE_TO: F.lead(EFFECTIVE_FROM).over(by_source),
                # whether there is a next version, not whether its start is known
                IS_CURRENT: F.col(SETTLED).isNull() & F.lead(PLACE).over(in_place()).isNull(),
                IS_SOURCE_CURRENT: F.lead(PLACE).over(by_source).isNull(),
                CORRECTS: F.lit(None).cast("binary"),
            }
        )
        .selectExpr(*timeline_columns(terms))
    )


def collapsed(told: DataFrame, terms: EntitySchema) -> DataFrame:
    """The statement that opened each version, with what the version has absorbed since. Grain: one row per version."""
    absorbed = all_of(Window.partitionBy(BK, VERSION).orderBy(PLACE))
    rides_along = {
        # a repeated delete says nothing, so it changes nothing of what the first one carried
        name: F.when(F.col(IS_DELETED), col(name)).otherwise(F.last(col(name)).over(absorbed))
        for name in (*sorted(terms.untracked), INHERITED)
    }
    return (
        told.withColumns(
            {
                FIRST_SEEN: F.min(FIRST_SEEN).over(absorbed),
                LAST_SEEN: F.max(LAST_SEEN).over(absorbed),
                SEEN_COUNT: F.sum(SEEN_COUNT).over(absorbed),
                LAST_EVENT_TS: F.last(F.coalesce(F.col(LAST_EVENT_TS), F.col(AT))).over(absorbed),
                **rides_along,
            }
        )
        .where(F.col(OPENS))
        .withColumn(EFFECTIVE_FROM, F.col(AT))
    )


def _reconstructed(told: DataFrame, terms: EntitySchema) -> DataFrame:
    """Unsaid attributes as they were reconstructed on arrival, or anew where they propagate; deletes that follow always anew."""
    if not terms.propagate and not terms.swept:
        return told
    follows = F.col(ROLE) == FOLLOWS
    fill = follows | leaves_something_unsaid(terms) if terms.propagate else follows
    filled = with_inheritance(told, terms, fill)
    return filled.withColumn(ATTR_HASH, F.when(fill, attribute_hash(terms)).otherwise(F.col(ATTR_HASH)))


def _with_versions(told: DataFrame, terms: EntitySchema) -> DataFrame:
    """Each statement with the version it belongs to and whether it opens it.

    A snapshot row that repeats what its own source last said belongs to that source's version, whatever others said in between;
    any other statement opens a version unless source and state are those of the version before it.
    """
    by_source = in_place_by_source(terms.sources)
    again = is_snapshot() & F.col(ATTR_HASH).eqNullSafe(F.lag(ATTR_HASH).over(by_source)) & F.lag(PLACE).over(by_source).isNotNull()
    marked = told.withColumn(AGAIN, again)
    state = F.when(~F.col(AGAIN), F.struct(SOURCE_SYSTEM, ATTR_HASH))
    to_here = before(in_place())
    opens = ~F.col(AGAIN) & ~state.eqNullSafe(F.last(state, ignorenulls=True).over(to_here))
    numbered = marked.withColumn(OPENS, opens).withColumn(
        VERSION, F.sum(F.col(OPENS).cast("int")).over(in_place().rowsBetween(Window.unboundedPreceding, Window.currentRow))
    )
    own = F.last(F.when(~F.col(AGAIN), F.col(VERSION)), ignorenulls=True).over(
        by_source.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return numbered.withColumn(VERSION, own)
