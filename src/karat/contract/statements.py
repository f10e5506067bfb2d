"""Raw records to statements: what a feed hands over, one by one admitted, ignored or refused.

raw record           what the reader found: a line, a row
image                what it says of one row, out of its envelope           envelopes
values               what the feed's expressions make of the image          computing
meaning              what happened, how complete it is, what is asserted    meaning
statement            the values in their declared types, and its place in time
the gate             the first rule it breaks, if any                       rules
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.config.entity import FilesSource
from karat.config.resolved import Entity, FeedOf
from karat.contract.columns import (
    DOCUMENT,
    EVIDENCE,
    GATE,
    IMPLIED_SEQUENCE,
    IMPLIED_TIME,
    KIND,
    MEANING,
    PROVENANCE,
    REASON,
    RULE,
)
from karat.contract.computing import computed
from karat.contract.drift import Drift, drift_of
from karat.contract.envelopes import images
from karat.contract.fitting import cast_to, comparable, fits
from karat.contract.incoming import incoming
from karat.contract.meaning import LOAD_TYPE, OP, says, with_list, with_load_type, with_op, without_replaced
from karat.contract.reading import Reading
from karat.contract.rules import misfit_reason, rules, verdict
from karat.contract.times import is_in_range, time_of
from karat.contract.wanted import failure_of, setting, wanted_columns, wanted_settings
from karat.errors import ContractBreach
from karat.sources.raw import BROKEN, CHANGE, COMMITTED_AT, FIELDS, FIELDS_TYPE, FILE, GONE, PATH
from karat.temporal.columns import col, quoted
from karat.temporal.moments import moment
from karat.temporal.sql import NO_TEXT, Sql, literal, texts

TIME: Final = "__karat_time"
SNAPSHOT: Final = "__karat_snapshot"
VERDICT: Final = "__karat_verdict"


@dataclass(frozen=True)
class _Batch:
    rows: DataFrame
    reading: Reading


def statements(raw: DataFrame, entity: Entity, feed: FeedOf, ingest_ts: datetime, found: Drift | None = None) -> DataFrame:
    """What the records say, in the entity's own columns. Grain: one row per raw record, the ignored and refused ones too.

    `found` is what `drift` has said about the same records; without it the records are looked through for their columns here.
    """
    batch = _valued(raw, entity, feed, ingest_ts, found)
    reading = batch.reading
    rows = (
        batch.rows.transform(with_op, reading)
        .transform(without_replaced, reading)
        .transform(with_load_type, reading)
        .transform(with_list, reading)
        .transform(_with_said, reading)
        .transform(_with_fitted, reading)
        .transform(_with_times, reading)
    )
    if reading.feed.drift.type_changes == "fail":
        _fail_on_misfits(rows, reading)
    return rows.transform(_judged, reading).transform(_stated, reading)


def statement_columns(entity: Entity) -> tuple[str, ...]:
    """The columns of statements, in order."""
    return (*entity.key, *entity.attributes, *PROVENANCE, *MEANING, *EVIDENCE, *GATE)


def _valued(raw: DataFrame, entity: Entity, feed: FeedOf, ingest_ts: datetime, found: Drift | None) -> _Batch:
    image = images(raw, feed)
    found = found or drift_of(image, entity, feed)
    columns = incoming(image, found.names)
    wanted = {**wanted_columns(entity, feed.feed), **wanted_settings(feed.feed)}
    values = computed(image, wanted, columns, feed.feed)
    return _Batch(values.rows, Reading(entity, feed, ingest_ts, columns, found, wanted, values.types))


def _said(name: str) -> str:
    return f"__karat_said_{name}"


def _fitted(name: str) -> str:
    return f"__karat_fitted_{name}"


def _cast(name: str) -> str:
    return f"__karat_cast_{name}"


def _misfit(name: str) -> str:
    return f"__karat_misfit_{name}"


def _with_said(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with whether they say something about each attribute."""
    return rows.selectExpr("*", *(f"{says(reading, name)} AS {quoted(_said(name))}" for name in reading.entity.attributes))


def _with_fitted(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with each value in its declared type, null where it does not fit; step by step, so that nothing is cast twice."""
    names = (*reading.entity.key, *reading.entity.attributes)
    values = {name: comparable(rows, reading.value(name), reading.types[name], reading.ddl(name)) for name in names}
    cast = rows.select("*", *(cast_to(*values[name], reading.ddl(name)).alias(_cast(name)) for name in names))
    fitted = []
    for name in names:
        found, held = values[name]
        value = quoted(_cast(name))
        fitted.append(f"if({fits(found, value, held, reading.ddl(name))}, {value}, NULL) AS {quoted(_fitted(name))}")
    settled = cast.selectExpr(*map(quoted, rows.columns), *fitted)
    return settled.selectExpr("*", *(f"{_does_not_fit(reading, name)} AS {quoted(_misfit(name))}" for name in names))


def _does_not_fit(reading: Reading, name: str) -> Sql:
    """Whether there is a value that does not fit, or that could not be computed; of an attribute only where it is said."""
    misfit = f"({quoted(failure_of(name))} OR ({reading.value(name)} IS NOT NULL AND {quoted(_fitted(name))} IS NULL))"
    return misfit if name in reading.entity.key else f"{misfit} AND {quoted(_said(name))}"


def _with_times(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with the moment they speak of and, those of an extract, the extract's."""
    timed = rows.select("*", _time(rows, reading).alias(TIME))
    name = setting("snapshot_of")
    as_of = F.expr(time_of(reading.value(name), reading.types[name]) if name in reading.wanted else TIME)
    is_snapshot = (F.col(LOAD_TYPE) == "FULL") & F.col(OP).isNull()
    return timed.select("*", F.when(is_snapshot, as_of).alias(SNAPSHOT))


def _time(rows: DataFrame, reading: Reading) -> Column:
    if reading.entity.declared.time_basis == "platform" and not reading.is_evidence_only:
        return moment(reading.ingest_ts)
    name = setting("event_time")
    if name not in reading.wanted:
        return F.when(F.expr(is_in_range(IMPLIED_TIME)), F.col(IMPLIED_TIME))
    told = F.expr(time_of(reading.value(name), reading.types[name]))
    asks_the_feed = {"_commit_timestamp", "_change_type"} & set(reading.columns.referenced(reading.wanted[name]))
    if CHANGE not in rows.columns or asks_the_feed:
        return told
    # a row that is gone carries the time it was last written; it is gone since the commit
    return F.when(F.col(CHANGE).isin(*GONE), F.col(COMMITTED_AT)).otherwise(told)


def _judged(rows: DataFrame, reading: Reading) -> DataFrame:
    """Rows with the gate's answer."""
    held = rules(reading, lambda name: quoted(_misfit(name)), TIME, SNAPSHOT)
    heard = rows.selectExpr("*", f"if({KIND} = 'row', {verdict(held)}, NULL) AS {VERDICT}")
    kept = [quoted(name) for name in rows.columns if name != KIND]
    kind = f"if({VERDICT}.reason IS NOT NULL, 'refused', {KIND}) AS {KIND}"
    return heard.selectExpr(*kept, f"{VERDICT}.reason AS {REASON}", f"{VERDICT}.rule AS {RULE}", kind)


def _stated(rows: DataFrame, reading: Reading) -> DataFrame:
    """The statement itself."""
    entity, feed = reading.entity, reading.feed
    basis = F.lit(None if reading.is_evidence_only else entity.declared.time_basis)
    sequence = F.expr(reading.text(setting("sequence")) if reading.wants("sequence") else IMPLIED_SEQUENCE)
    asserted = ", ".join(f"if({_asserts(reading, name)}, {literal(name)}, NULL)" for name in entity.attributes)
    columns = {
        **{name: col(_fitted(name)) for name in entity.key},
        **{name: F.expr(f"if({_asserts(reading, name)}, {quoted(_fitted(name))}, NULL)") for name in entity.attributes},
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
        "extra": _extra(reading),
        "payload": F.col(DOCUMENT),
        "extraction_version": F.lit(feed.extraction_version).cast("string"),
    }
    gate = {name: F.col(name) for name in GATE}
    named = {**columns, **gate}
    return rows.select(*(named[name].alias(name) for name in statement_columns(entity)))


def _asserts(reading: Reading, name: str) -> Sql:
    """Whether a row says something about an attribute that the attribute can hold."""
    said = quoted(_said(name))
    return f"{said} AND NOT {quoted(_misfit(name))}" if reading.keeps_misfits else said


def _extra(reading: Reading) -> Column:
    """Fields nobody declared, and values their attribute could not hold; null when there are none."""
    feed, kept = reading.feed, F.create_map().cast(FIELDS_TYPE)
    if feed.drift.new_columns != "ignore" and not (feed.envelope == "payload" and feed.document is None):
        kept = _undeclared(reading)
    names = (*reading.entity.key, *reading.entity.attributes) if reading.is_evidence_only else reading.entity.attributes
    if reading.keeps_misfits:
        entries = (f"if({quoted(_misfit(name))}, struct({literal(name)} AS key, {reading.text(name)} AS value), NULL)" for name in names)
        misfits = F.expr(f"map_from_entries(array_compact(array({', '.join(entries)})))")
        kept = F.map_concat(misfits, F.map_filter(kept, lambda name, _: ~F.map_contains_key(misfits, name)))
    return F.when((F.size(kept) > 0) & F.col(BROKEN).isNull(), kept)


def _undeclared(reading: Reading) -> Column:
    """The fields of a record that nothing speaks of, or that another one of the same name in another case spoke for."""
    used, columns = reading.drift.used, reading.columns
    if not used:
        return F.col(FIELDS)
    referenced = sorted({name for expression in reading.wanted.values() for name in columns.referenced(expression)})
    doubled = [columns.unheard(name) for name in referenced if len(columns.found(name)) > 1]
    is_unheard = "false"
    if doubled:
        unheard = f"array_except(flatten(array({', '.join(doubled)})), {texts(referenced)})"
        is_unheard = f"array_contains({unheard}, name)"
    return F.expr(f"map_filter({FIELDS}, (name, value) -> name NOT IN ({', '.join(map(literal, used))}) OR {is_unheard})")


def _fail_on_misfits(rows: DataFrame, reading: Reading) -> None:
    """The policy `fail` for values that do not fit: one look for the first of them."""
    reasons = " ".join(f"WHEN {quoted(_misfit(name))} THEN {misfit_reason(reading, name)}" for name in reading.entity.attributes)
    reason = f"CASE {reasons} ELSE {NO_TEXT} END" if reasons else NO_TEXT
    readable = rows.where((F.col(KIND) == "row") & F.col(BROKEN).isNull())
    found = readable.selectExpr(f"{reason} AS reason").where("reason is not null").first()
    if found is not None:
        message = f"feed {reading.feed.name}: {found['reason']}"
        remedy = "mend the source, change the declared type, or set drift.type_changes of the feed to quarantine or keep"
        raise ContractBreach(message, remedy=remedy, feed=reading.feed.name)
