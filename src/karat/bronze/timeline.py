"""A timeline is a pure function from assertions to periods.

statement      what a source said once, however many copies of it arrived
version        the stretch during which one state, said by one source, stood; it absorbs repeats and re-observations
entity chain   all versions of a key in order: `effective_from`, `effective_to`, `is_current`
source chain   the versions of one source among them: `source_effective_to`, `is_source_current`

    CRM  Active @1 ──────────┐            effective 1 to 2      source 1 to 4
    CORE Restricted @2 ──────┼─────┐      effective 2 to 4      source 2 on
    CRM  Closed @4 ──────────┘     └──    effective 4 on        source 4 on
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from karat.bronze.facts import facts
from karat.bronze.identity import attribute_hash
from karat.bronze.inheritance import leaves_something_unsaid, with_inheritance
from karat.bronze.schema import HELD, OPENS, REBUILDS, riding_columns, timeline_columns
from karat.temporal import columns as c
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.order import in_place, in_place_by_source
from karat.temporal.riding import packed, unpacked
from karat.temporal.statements import FOLLOWS, ROLE, is_snapshot, statements
from karat.temporal.windows import all_of, before

VERSION: Final = "__karat_version"
"""Working: the number of the version a statement belongs to, within its entity."""
SETTLED: Final = "__karat_settled"
"""Working: the end of a held version that lies before anything new, and so stays whatever follows it."""
REPEATS: Final = "__karat_repeats"
"""Working: whether a snapshot row merely shows again what its source last said."""


def timeline(assertions: DataFrame, schema: EntitySchema, *, source_level: bool = True) -> DataFrame:
    """Every version, from nothing but the assertions. Grain: a version of an entity (of a transaction: a content).

    `source_level` says whether there may be statements about whole sources among the assertions.
    """
    if schema.propagate or source_level:
        told = statements(assertions, schema, source_level=source_level).transform(_reconstructed, schema)
    else:
        told = statements(packed(assertions, riding_columns(schema)), schema, source_level=False)
    if schema.is_transaction:
        return facts(told, schema)
    return versions(told.withColumn(SETTLED, F.lit(None).cast("timestamp")), schema)


def versions(told: DataFrame, schema: EntitySchema, carried: c.Names = (), *, snapshots: bool = True) -> DataFrame:
    """Statements, complete and in their order, to versions with both chains. Grain: one row per version.

    `carried` are columns of the statement that opened each version; where they have `OPENS`, statements that stand for
    held versions and open none are there too. `snapshots` says whether there may be rows of snapshots among the statements.
    """
    opened = Window.partitionBy(c.BK, OPENS).orderBy(c.PLACE)
    by_source = Window.partitionBy(c.BK, OPENS, c.SOURCE_SYSTEM).orderBy(c.PLACE) if len(schema.sources) > 1 else opened
    return (
        packed(told, riding_columns(schema))
        .transform(with_versions if snapshots else _with_versions_of_events, schema)
        .transform(opening_statements, schema)
        .withColumns(
            {
                c.EFFECTIVE_TO: F.coalesce(F.col(SETTLED), F.lead(c.EFFECTIVE_FROM).over(opened)),
                c.SOURCE_EFFECTIVE_TO: F.lead(c.EFFECTIVE_FROM).over(by_source),
                # whether there is a next version, not whether its start is known
                c.IS_CURRENT: F.col(SETTLED).isNull() & F.lead(c.PLACE).over(opened).isNull(),
                c.IS_SOURCE_CURRENT: F.lead(c.PLACE).over(by_source).isNull(),
                c.CORRECTS: F.lit(None).cast("binary"),
            }
        )
        .transform(unpacked)
        .selectExpr(*timeline_columns(schema), *carried)
    )


def with_versions(told: DataFrame, schema: EntitySchema) -> DataFrame:
    """Each statement with the version it belongs to and whether it opens it. Grain: unchanged.

    A snapshot row that repeats what its own source last said belongs to that source's version, whatever others said in
    between; any other statement opens a version unless source and state are those of the version before it.
    """
    by_source = in_place_by_source(schema.sources)
    same_state = F.col(c.ATTR_HASH).eqNullSafe(F.lag(c.ATTR_HASH).over(by_source))
    marked = told.withColumn(REPEATS, is_snapshot() & same_state & F.lag(c.PLACE).over(by_source).isNotNull())
    state = F.when(~F.col(REPEATS), F.struct(c.SOURCE_SYSTEM, c.ATTR_HASH))
    opens = ~F.col(REPEATS) & ~state.eqNullSafe(F.last(state, ignorenulls=True).over(before(in_place())))
    to_here = (Window.unboundedPreceding, Window.currentRow)
    number = F.sum(F.col(OPENS).cast("int")).over(in_place().rowsBetween(*to_here))
    numbered = marked.withColumn(OPENS, opens).withColumn(VERSION, number)
    own = F.last(F.when(~F.col(REPEATS), F.col(VERSION)), ignorenulls=True).over(by_source.rowsBetween(*to_here))
    return numbered.withColumn(VERSION, own)


def _with_versions_of_events(told: DataFrame, schema: EntitySchema) -> DataFrame:  # noqa: ARG001  (stands in for the function above)
    """The same where no statement is a row of a snapshot. Grain: unchanged."""
    state = F.struct(c.SOURCE_SYSTEM, c.ATTR_HASH)
    opens = ~state.eqNullSafe(F.lag(state).over(in_place()))
    to_here = in_place().rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return told.withColumn(OPENS, opens).withColumn(VERSION, F.sum(F.col(OPENS).cast("int")).over(to_here))


def opening_statements(told: DataFrame, schema: EntitySchema) -> DataFrame:
    """The statement that opened each version, with what the version has absorbed since. Grain: one row per version.

    Among statements that stand for held versions, those that open none any more stay as well.
    """
    absorbed = all_of(Window.partitionBy(c.BK, VERSION).orderBy(c.PLACE))
    sightings = {
        c.FIRST_SEEN: F.min(c.FIRST_SEEN).over(absorbed),
        c.LAST_SEEN: F.max(c.LAST_SEEN).over(absorbed),
        c.SEEN_COUNT: F.sum(c.SEEN_COUNT).over(absorbed),
        c.LAST_EVENT_TS: F.max(F.coalesce(F.col(c.LAST_EVENT_TS), F.col(c.AT))).over(absorbed),
    }
    # a repeated delete says nothing, so it changes nothing of what the first one carried
    rides_along = {
        name: F.when(F.col(c.IS_DELETED), c.col(name)).otherwise(F.last(c.col(name)).over(absorbed))
        for name in (*sorted(schema.untracked), c.INHERITED)
    }
    continues = REBUILDS in told.columns
    rebuilds = {REBUILDS: F.max(REBUILDS).over(absorbed)} if continues else {}
    seen = told.withColumns({**sightings, **rides_along, **rebuilds})
    kept = F.col(OPENS) | F.col(HELD).isNotNull() if continues else F.col(OPENS)
    return seen.where(kept).withColumn(c.EFFECTIVE_FROM, F.col(c.AT))


def _reconstructed(told: DataFrame, schema: EntitySchema) -> DataFrame:
    """Unsaid attributes as they were reconstructed on arrival, or anew where they propagate; deletes that follow anew."""
    if schema.is_transaction and not schema.propagate:
        return told
    follows = F.col(ROLE) == FOLLOWS
    fill = follows | leaves_something_unsaid(schema) if schema.propagate else follows
    filled = with_inheritance(told, schema, fill)
    return filled.withColumn(c.ATTR_HASH, F.when(fill, attribute_hash(schema)).otherwise(F.col(c.ATTR_HASH)))
