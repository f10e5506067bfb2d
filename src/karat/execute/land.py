"""One entity brought up to date: what its feeds say joins the evidence in one commit, then the timeline follows in another.

A crash between the two leaves the timeline behind; the next run lets it catch up from the evidence before it reads anything new.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.arrival import collapsed_copies
from karat.bronze.continuation import Past
from karat.bronze.identity import HASH_FORMAT, identified, with_hashes
from karat.bronze.shape import assertion_columns
from karat.bronze.standing import tell_enough
from karat.contract.columns import GATE, KIND
from karat.errors import InternalError
from karat.execute.acts import Acts, write
from karat.execute.advance import FEW, FEW_TO_INTERPRET, Arrivals, Carried, carried_on, is_carried_on, settled_changes
from karat.execute.beforehand import filled_in, near_versions, prior_in_evidence, prior_of, told_by, untold_by
from karat.execute.beside import beside
from karat.execute.evidence import prepare
from karat.execute.gather import Gathered, gather
from karat.execute.kept import kept
from karat.execute.outcome import Outcome
from karat.execute.pace import interpreted
from karat.execute.refused import keep_refused
from karat.execute.site import Site, past_of, remembered, site_of
from karat.execute.snapshots import Complete, completeness, without_suspicious
from karat.execute.spoken import Spoken
from karat.execute.tally import Tally, tally_of
from karat.execute.world import World
from karat.plan.stages import Land
from karat.state.commits import Commit, Written
from karat.telemetry.events import Rows
from karat.temporal.columns import BATCH_SEQ, BK, COPIES, ENTITY_TYPE, HASH_VERSION, INGEST_TS, RUN_ID, SOURCE_SYSTEM, TIME_BASIS
from karat.temporal.moments import moment, roughly
from karat.temporal.sketch import FEW_KEYS

ROWS_PER_PARTITION = 50_000


def land(stage: Land, world: World) -> Outcome:
    """Let the timeline catch up, read what is new, land it, and let the timeline follow. Nothing new: nothing written."""
    site = site_of(stage.entity, world)
    behind = catch_up(site, stage.since)
    news = gather(site.entity, site.previous.position, site.tables, world.stamp.started_at)
    if news.rows is None:
        changed = bool(behind.inserted or behind.updated or behind.deleted)
        rows = Rows(0, 0, 0, 0, 0, behind.inserted, behind.updated, behind.deleted)
        return news.concluded(Outcome("succeeded" if changed else "unchanged", rows, position=_consumed(site), notes=news.notes))
    with interpreted(site.tables.session, few=news.is_small):
        batch = kept(news.rows)
    rows, suspicions = land_batch(admissible(batch, site), news, site)
    return news.concluded(Outcome("succeeded", rows, position=_consumed(site), notes=(*news.notes, *suspicions)))


def catch_up(site: Site, mirrored: str | None) -> Written:
    """The timeline brought up to what the evidence held before this run; nothing when it is there already."""
    tables, entity = site.tables, site.entity
    if not tables.exists(entity.assertions):
        return Written()
    prepare(entity, site.terms, tables, site.commit())
    latest = tables.version(entity.assertions)
    reached = tables.checkpoint(entity.timeline, str(entity.timeline))
    consumed = int(reached.position.get("assertions", 0))
    # A batch that changes nothing makes no commit: then only the mirror knows that it was consumed. It is believed beside a log
    # that has consumed something and was not set back; a timeline made anew starts from its own.
    mirror_counts = consumed > 0 and reached.trusted and not reached.set_back
    if consumed >= latest or (mirror_counts and mirrored == tables.moment_of(entity.assertions, latest)):
        return Written()
    rows = tables.appended(entity.assertions, consumed, latest)
    silenced = _silenced(rows)
    stamp = site.world.stamp
    commit = Commit(str(entity.timeline), reached.sequence + 1, stamp.run_id, site.world.config.hash, {"assertions": latest})
    return write(settled_changes(Arrivals(rows, silenced), site.ground), entity.timeline, tables, commit)


def admissible(batch: DataFrame, site: Site) -> DataFrame:
    """The batch with extracts refused that would delete too much; the entity's tables are there to ask."""
    prepare(site.entity, site.terms, site.tables, site.commit())
    return without_suspicious(batch, site.entity, site.terms, site.tables)


def land_batch(batch: DataFrame, news: Gathered, site: Site) -> tuple[Rows, tuple[str, ...]]:
    """Refused rows to quarantine, the others to the evidence and on to the timeline; every row read is accounted for.

    Returns the account, and what is suspicious without being wrong.
    """
    tally = _counted(batch, news, site)
    if (tally.refused or news.empty) and not site.replayed:  # what a replay refuses is on record already
        keep_refused(batch, news.empty, site.entity, site.tables, site.commit(started_at=site.world.stamp.started_at.isoformat()))
    complete = completeness(batch, site.entity)
    past = past_of(site, tally, complete)
    site = replace(site, terms=replace(site.terms, swept=bool(past.sweeps), shown_apart=bool(past.shows_apart)))
    swept = tuple(sorted({*tally.truncates, *(complete.until if complete else ())}))
    session = site.tables.session
    since = tally.earliest and roughly(tally.earliest, site.reached(tally))
    elsewhere, asked = replace(site.ground, tables=site.tables.apart()), bool(tally.unsaid) and tell_enough(past, site.terms)
    with beside(session, lambda: None if swept else near_versions(tally, since, elsewhere, now=not asked)) as near:
        stamped = _stamped(batch, complete, site)
        if asked and tally.read <= FEW_KEYS:  # otherwise nobody waits for the versions
            with interpreted(session):
                stamped = kept(stamped, now=True)
        landing = _landing(stamped, near, past, tally, site)
        arrivals = Arrivals(landing, swept, past, tally.read, since, near())
        carried = carried_on(arrivals, site.ground) if is_carried_on(arrivals, site.ground) else None
        copies = _copies(landing, tally) if carried is None else carried.survey.copies
    commit = site.commit(
        feeds=news.entries(site.entity, site.tables, site.commit()),
        sources=sorted(site.terms.sources),
        replayed=list(site.replayed),
        **remembered(past, tally, site),
    )
    written = landing.coalesce(1 + tally.read // ROWS_PER_PARTITION) if tally.read <= FEW else landing
    with beside(session, partial(site.tables.append, written, site.entity.assertions, commit)) as appended:
        # what follows from the batch is mostly known without the rest of the evidence, and is written after it
        acts = settled_changes(arrivals, replace(site.ground, evidence_is_written=appended), carried)
        landed = appended().inserted - (complete.rows if complete else 0)
    _balanced(tally, landed, copies)
    followed = _followed(acts, site)
    _handed_on(carried, arrivals, tally, site)
    rows = Rows(tally.read, landed, copies, tally.refused, tally.ignored, followed.inserted, followed.updated, followed.deleted)
    return rows, site.watch.notes(tally.watched)


def _counted(batch: DataFrame, news: Gathered, site: Site) -> Tally:
    """The batch counted, and the stage's session set up for one of its size."""
    session = site.tables.session
    session.conf.set("spark.sql.adaptive.enabled", "false")
    # what is merged is kept: computed once, the same however often Delta looks
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")
    with interpreted(session, few=news.is_small):
        tally = tally_of(batch, site.terms, site.watch.counted(), few=news.is_small)
    if tally.read <= FEW:
        session.conf.set("spark.sql.shuffle.partitions", str(1 + tally.read // ROWS_PER_PARTITION))
    return tally


def _landing(stamped: DataFrame, near: Callable[[], DataFrame | None], past: Past, tally: Tally, site: Site) -> DataFrame:
    """What lands, computed on first use."""
    if not tally.unsaid:
        return _whole(stamped, None, tally, site)
    held, prior = near(), None
    if held is not None and tell_enough(past, site.terms):
        # mostly nothing is missing, and what follows then takes as long to put together as to find out
        with beside(held.sparkSession, partial(untold_by, held, tally, past, site.terms)) as untold:
            told = _whole(stamped, told_by(held, tally, site.terms), tally, site)
        if not untold().keys:
            return told
        prior = prior_of(held, untold(), tally, site.ground)
    return _whole(stamped, prior_in_evidence(stamped, tally, site.ground) if prior is None else prior, tally, site)


def _copies(landing: DataFrame, tally: Tally) -> int:
    """How many rows say what another one says; the batch is computed by then."""
    with interpreted(landing.sparkSession, few=tally.read <= FEW_TO_INTERPRET):
        return int(landing.agg(F.sum(F.col(COPIES) - 1)).collect()[0][0] or 0)


def _stamped(batch: DataFrame, complete: Complete | None, site: Site) -> DataFrame:
    """The admitted rows with who they are about and when they came. Grain: one row per statement and file, and per snapshot."""
    said = batch.where(F.col(KIND) == "row")
    if complete:
        said = said.unionByName(complete.frame)
    # an attribute that is no longer declared is on record still: nobody speaks of it any more
    retired = {name: F.lit(None).cast(kind) for name, kind in site.terms.attributes.items() if name not in said.columns}
    return (
        said.drop(*GATE)
        .withColumns(retired)
        .transform(identified, site.terms)
        .transform(with_hashes, site.terms)
        .transform(collapsed_copies)
        .withColumns(
            {
                INGEST_TS: moment(site.world.stamp.started_at),
                RUN_ID: F.lit(site.world.stamp.run_id),
                BATCH_SEQ: F.lit(site.previous.sequence + 1),
                ENTITY_TYPE: F.lit(site.entity.declared.type),
                HASH_VERSION: F.lit(HASH_FORMAT),
            }
        )
    )


def _whole(stamped: DataFrame, prior: DataFrame | None, tally: Tally, site: Site) -> DataFrame:
    """The rows as assertions, what they left unsaid filled in. Grain: unchanged."""
    with interpreted(site.tables.session, few=tally.read <= FEW_TO_INTERPRET):
        return kept(filled_in(stamped, prior, tally, site.terms).selectExpr(*assertion_columns(site.terms)))


def _followed(acts: Acts, site: Site) -> Written:
    """The timeline after this batch; it notes the evidence's version it has now consumed."""
    tables, name = site.tables, str(site.entity.timeline)
    last = tables.checkpoint(site.entity.timeline, name)
    position = {"assertions": tables.version(site.entity.assertions)}
    commit = Commit(name, last.sequence + 1, site.world.stamp.run_id, site.world.config.hash, position)
    return write(acts, site.entity.timeline, tables, commit)


def _silenced(rows: DataFrame) -> tuple[str, ...]:
    found = rows.where(F.col(BK).isNull() & F.col(TIME_BASIS).isNotNull()).select(SOURCE_SYSTEM).distinct().collect()
    return tuple(sorted(row[SOURCE_SYSTEM] for row in found))


def _handed_on(carried: Carried | None, arrivals: Arrivals, tally: Tally, site: Site) -> None:
    """What a belief about this entity would otherwise have to search for."""
    if carried is None or arrivals.since is None:
        return
    after, survey = site.previous.sequence, carried.survey
    spoken = Spoken(after, after + 1, carried.keys, tally.keys, tally.named, survey.count, arrivals.since, survey.heard_from)
    site.world.spoken[str(site.entity.timeline)] = spoken


def _balanced(tally: Tally, landed: int, copies: int) -> None:
    """Every row that was read landed, was a copy, was refused or was ignored; otherwise something was lost, and that is said."""
    if tally.read != landed + copies + tally.refused + tally.ignored:
        counts = f"read {tally.read}, landed {landed}, copies {copies}, quarantined {tally.refused}, ignored {tally.ignored}"
        message = f"the counts of this batch do not balance: {counts}"
        raise InternalError(message, remedy="report this; the evidence has what landed, the next run lets the timeline catch up")


def _consumed(site: Site) -> str | None:
    """The evidence's version the timeline now stands at, for the mirror."""
    if not site.tables.exists(site.entity.assertions):
        return None
    return site.tables.moment_of(site.entity.assertions, site.tables.version(site.entity.assertions))
