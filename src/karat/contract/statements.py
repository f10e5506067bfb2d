"""Raw records to statements: what a feed hands over, one by one admitted, ignored or refused.

raw record           what the reader found: a line, a row
image                what it says of one row, out of its envelope           envelopes
values               what the feed's expressions make of the image          computing
presence             which attributes it says anything about                presence
meaning              what happened, how complete it is                      meaning
statement            the values in their declared types, and its place in time
the gate             the first rule it breaks, if any                       rules

All of it is one chain of projections over one scan: nothing is read ahead, and no column is made that the statement does not need.
"""

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.config.declared.entity import FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.columns import (
    DOCUMENT,
    EVIDENCE,
    GATE,
    IMPLIED_SEQUENCE,
    IMPLIED_TIME,
    KIND,
    MEANING,
    MISFIT,
    NAMES,
    ORIGINAL,
    PROVENANCE,
    REASON,
    RULE,
)
from karat.contract.computing import computed
from karat.contract.drift import Drift, document_setting, drift_of, is_json, is_tabular, needs_names
from karat.contract.envelopes import images
from karat.contract.fitting import cast_to, comparable, fits
from karat.contract.incoming import field_names, incoming, with_declared_names
from karat.contract.meaning import LOAD_TYPE, OP, may_be_snapshots, with_meaning, without_replaced
from karat.contract.presence import FIELD_LIST, UNDECLARED, from_fields, says
from karat.contract.reading import NEVER, Reading, cast_of, fitted_of, misfit_of, said_of
from karat.contract.rules import misfit_reason, rules, verdict
from karat.contract.times import is_in_range, told_time
from karat.contract.wanted import setting, wanted_columns, wanted_settings
from karat.sources.raw import BROKEN, CHANGE, COMMITTED_AT, FIELDS, FIELDS_TYPE, FILE, GONE, LINE, PATH, is_typed
from karat.temporal.columns import quoted
from karat.temporal.moments import moment
from karat.temporal.sql import NO_TEXT, Sql, literal

TIME: Final = "__karat_time"
SNAPSHOT: Final = "__karat_snapshot"
VERDICT: Final = "__karat_verdict"
_TOLD: Final = "__karat_told"
_TOLD_SNAPSHOT: Final = "__karat_told_snapshot"


def statements(raw: DataFrame, entity: Entity, feed: FeedOf, ingest_ts: datetime) -> DataFrame:
    """What the records say, in the entity's own columns. Grain: one row per raw record, the ignored and refused ones too."""
    rows, reading = _valued(raw, entity, feed, ingest_ts)
    return (
        rows.transform(with_meaning, reading)
        .transform(without_replaced, reading)
        .transform(_with_said_and_cast, reading)
        .transform(_with_fitted, reading)
        .transform(_with_misfits, reading)
        .transform(_with_verdict, reading)
        .transform(_stated, reading)
    )


def statement_columns(entity: Entity) -> tuple[str, ...]:
    """The columns of statements, in order."""
    return (*entity.key, *entity.attributes, *PROVENANCE, *MEANING, *EVIDENCE, *GATE)


def _valued(raw: DataFrame, entity: Entity, feed: FeedOf, ingest_ts: datetime) -> tuple[DataFrame, Reading]:
    """The records with everything that is taken from their fields, and how they are read from here on."""
    image = images(raw, feed)
    wanted = {**wanted_columns(entity, feed.feed), **wanted_settings(feed.feed)}
    columns = incoming(image, wanted, document_setting(feed.feed))
    found = _drift_known_ahead(image, entity, feed)
    named = image if columns.types is not None else with_declared_names(image, columns)
    values = computed(named, wanted, columns, feed.feed, from_fields(entity, feed.feed, columns))
    return values.rows, Reading(entity, feed, ingest_ts, columns, found, wanted, values.types, values.may_fail)


def _drift_known_ahead(image: DataFrame, entity: Entity, feed: FeedOf) -> Drift:
    """What rows depend on: the columns that typed records lack, or that no complete line of JSON has.

    Only for the latter are the records gone through ahead, and only where the feed goes on without a column that is missing.
    """
    if is_typed(image):
        return drift_of(field_names(image), entity, feed, is_typed=True)
    goes_on = feed.feed.drift.missing_columns != "fail"
    return drift_of(field_names(image), entity, feed) if goes_on and is_tabular(feed.feed) and is_json(feed.feed) else Drift()


def _with_said_and_cast(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with whether they say something about each attribute, values cast to other types than they have, and the times told."""
    said = [F.expr(says(reading, name)).alias(said_of(name)) for name in reading.entity.attributes]
    cast = [cast_to(*_comparable(rows, reading, name), reading.ddl(name)).alias(cast_of(name)) for name in _other_types(reading)]
    name = setting("snapshot_of")
    snapshot = [F.expr(told_time(reading.value(name), reading.types[name])).alias(_TOLD_SNAPSHOT)] if name in reading.wanted else []
    return rows.select("*", *said, *cast, _told(rows, reading).alias(_TOLD), *snapshot)


def _with_fitted(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with each value in its declared type, null where it does not fit, and the moment they speak of."""
    fitted = []
    for name in _other_types(reading):
        value, held = _comparable(rows, reading, name)
        cast = quoted(cast_of(name))
        fitted.append(F.expr(f"if({fits(value, cast, held, reading.ddl(name))}, {cast}, NULL)").alias(fitted_of(name)))
    return rows.select("*", *fitted, F.expr(f"if({is_in_range(_TOLD)}, {_TOLD}, NULL)").alias(TIME), _snapshot(reading).alias(SNAPSHOT))


def _with_misfits(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with whether each value of another type than declared fits."""
    names = _other_types(reading)
    return rows.select("*", *(F.expr(_does_not_fit(reading, name)).alias(misfit_of(name)) for name in names)) if names else rows


def _other_types(reading: Reading) -> list[str]:
    """The key columns and attributes whose values are not texts wanted as texts."""
    return [name for name in (*reading.entity.key, *reading.entity.attributes) if not reading.is_text(name)]


def _comparable(rows: DataFrame, reading: Reading, name: str) -> tuple[Sql, T.DataType]:
    return comparable(rows, reading.value(name), reading.types[name], reading.ddl(name))


def _does_not_fit(reading: Reading, name: str) -> Sql:
    unfit = f"({reading.value(name)} IS NOT NULL AND {quoted(fitted_of(name))} IS NULL)"
    misfit = unfit if reading.failed(name) == NEVER else f"({reading.failed(name)} OR {unfit})"
    return misfit if name in reading.entity.key else f"({misfit} AND {quoted(said_of(name))})"


def _told(rows: DataFrame, reading: Reading) -> Column:
    """The time a row tells, in whatever year."""
    if reading.entity.declared.time_basis == "platform" and not reading.is_evidence_only:
        return moment(reading.ingest_ts)
    name = setting("event_time")
    if name not in reading.wanted:
        return F.col(IMPLIED_TIME)
    told = F.expr(told_time(reading.value(name), reading.types[name]))
    asks_the_feed = {"_commit_timestamp", "_change_type"} & set(reading.columns.referenced(reading.wanted[name]))
    if CHANGE not in rows.columns or asks_the_feed:
        return told
    # a row that is gone carries the time it was last written; it is gone since the commit
    return F.when(F.col(CHANGE).isin(*GONE), F.col(COMMITTED_AT)).otherwise(told)


def _snapshot(reading: Reading) -> Column:
    """The time of the extract a row is part of; null for one that is part of none."""
    if not may_be_snapshots(reading):
        return F.lit(None).cast("timestamp")
    told = _TOLD_SNAPSHOT if reading.wants("snapshot_of") else _TOLD
    is_snapshot = (F.col(LOAD_TYPE) == "FULL") & F.col(OP).isNull()
    return F.when(is_snapshot & F.expr(is_in_range(told)), F.col(told))


def _with_verdict(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with the gate's answer."""
    answer = f"if({KIND} = 'row', {verdict(rules(reading, TIME, SNAPSHOT))}, NULL)"
    return rows.select("*", F.expr(answer).alias(VERDICT))


def _stated(rows: DataFrame, reading: Reading) -> DataFrame:
    """The statement itself."""
    entity, feed = reading.entity, reading.feed
    basis = F.lit(None if reading.is_evidence_only else entity.declared.time_basis)
    sequence = F.expr(reading.text(setting("sequence")) if reading.wants("sequence") else IMPLIED_SEQUENCE)
    asserted = ", ".join(f"if({_asserts(reading, name)}, {literal(name)}, NULL)" for name in entity.attributes)
    columns = {
        **{name: F.expr(reading.fitted(name)) for name in entity.key},
        **{name: F.expr(f"if({_asserts(reading, name)}, {reading.fitted(name)}, NULL)") for name in entity.attributes},
        "source_system": F.lit(feed.source_system),
        "source_type": F.lit("file" if isinstance(feed.source, FilesSource) else "table"),
        "source_path": F.col(PATH),
        "source_file": F.col(FILE),
        "feed": F.lit(feed.name),
        "source_event_ts": F.col(TIME),
        "source_sequence_id": sequence,
        "op": F.col(OP),
        "load_type": F.col(LOAD_TYPE),
        "precedence_rank": F.lit(feed.precedence_rank).cast("int"),
        "is_deleted": F.coalesce(F.col(OP) == "d", F.lit(False)),
        "asserted_columns": F.expr(f"array_compact(array({asserted}))"),
        "time_basis": basis.cast("string"),
        "snapshot_ts": F.col(SNAPSHOT),
        "extra": _extra(rows, reading),
        "payload": F.col(DOCUMENT),
        "extraction_version": F.lit(feed.extraction_version).cast("string"),
        KIND: F.expr(f"if({VERDICT}.reason IS NOT NULL, 'refused', {KIND})"),
        REASON: F.col(f"{VERDICT}.reason"),
        RULE: F.col(f"{VERDICT}.rule"),
        ORIGINAL: _original(reading),
        NAMES: F.expr(FIELD_LIST if needs_names(feed) else NO_TEXT),
        MISFIT: F.expr(_misfit(reading)),
    }
    return rows.select(*(columns[name].alias(name) for name in statement_columns(entity)))


def _asserts(reading: Reading, name: str) -> Sql:
    """Whether a row says something about an attribute that the attribute can hold."""
    said = quoted(said_of(name))
    return f"{said} AND NOT {reading.misfit(name)}" if reading.keeps_misfits and reading.misfit(name) != NEVER else said


def _extra(rows: DataFrame, reading: Reading) -> Column:
    """Fields nobody declared, and values their attribute could not hold; null when there are none."""
    kept = F.col(UNDECLARED) if UNDECLARED in rows.columns else F.create_map().cast(FIELDS_TYPE)
    names = (*reading.entity.key, *reading.entity.attributes) if reading.is_evidence_only else reading.entity.attributes
    unfit = [name for name in names if reading.misfit(name) != NEVER]
    if reading.keeps_misfits and unfit:
        entries = (f"if({reading.misfit(name)}, struct({literal(name)} AS key, {reading.text(name)} AS value), NULL)" for name in unfit)
        misfits = F.expr(f"map_from_entries(array_compact(array({', '.join(entries)})))")
        kept = F.map_concat(misfits, F.map_filter(kept, lambda name, _: ~F.map_contains_key(misfits, name)))
    elif UNDECLARED not in rows.columns:
        return F.lit(None).cast(FIELDS_TYPE)
    return F.when((F.size(kept) > 0) & F.col(BROKEN).isNull(), kept)


def _original(reading: Reading) -> Column:
    """The record as it came, of rows that are refused or may be later, with the whole of their snapshot."""
    feed = reading.feed
    has_lines = feed.is_change_stream or (isinstance(feed.source, FilesSource) and feed.source.format in {"json", "text", "xml"})
    original = F.col(LINE) if has_lines else F.coalesce(F.col(LINE), F.to_json(F.col(FIELDS)))
    return original if feed.absence_means == "deleted" else F.when(F.col(f"{VERDICT}.reason").isNotNull(), original)


def _misfit(reading: Reading) -> Sql:
    """Why a value does not fit, where the policy is to fail the feed for it."""
    names = [name for name in reading.entity.attributes if reading.misfit(name) != NEVER]
    if reading.feed.drift.type_changes != "fail" or not names:
        return NO_TEXT
    reasons = " ".join(f"WHEN {reading.misfit(name)} THEN {misfit_reason(reading, name)}" for name in names)
    return f"if({KIND} = 'row' AND {BROKEN} IS NULL, CASE {reasons} END, NULL)"
