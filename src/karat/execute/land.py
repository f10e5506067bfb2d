"""One entity brought up to date: what its feeds say joins the evidence in one commit, then the timeline follows in another.

A crash between the two leaves the timeline behind; the next run lets it catch up from the evidence before it reads anything new.
"""

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.identity import told_apart
from karat.errors import InternalError
from karat.execute.acts import Acts, write
from karat.execute.advance import FEW, Arrivals, Carried, Ground, carried_on, settled_changes
from karat.execute.ahead import logs_read_ahead
from karat.execute.beside import beside
from karat.execute.evidence import prepare
from karat.execute.gather import Gathered, gather
from karat.execute.kept import kept, write_as_kept
from karat.execute.pace import interpreted
from karat.execute.ready import Ready, made_ready
from karat.execute.refused import keep_refused
from karat.execute.site import Site, past_of, remembered, site_of
from karat.execute.snapshots import completeness, without_suspicious
from karat.execute.spoken import Spoken
from karat.execute.tally import Tally, tally_of
from karat.lake.context import RunContext
from karat.lake.outcome import Outcome
from karat.plan.stages import Land
from karat.state.commits import Commit, Written
from karat.telemetry.events import Rows
from karat.temporal.columns import BK, SK, SOURCE_SYSTEM, TIME_BASIS

ROWS_PER_PARTITION = 50_000


@dataclass(frozen=True)
class Follows:
    """What follows from a batch."""

    acts: Acts
    copies: int
    """Rows of the batch that say what another one says."""
    carried: Carried | None = None
    """The versions of its keys carried on, where these were all that had to be asked first."""


def land(stage: Land, world: RunContext) -> Outcome:
    """Let the timeline catch up, read what is new, land it, and let the timeline follow. Nothing new: nothing written."""
    site = site_of(stage.entity, world)
    behind = catch_up(site, stage.since)
    news = gather(site.entity, site.previous.position, site.tables, world.stamp.started_at)
    if news.rows is None:
        changed = bool(behind.inserted or behind.updated or behind.deleted)
        rows = Rows(0, 0, 0, 0, 0, behind.inserted, behind.updated, behind.deleted)
        return news.concluded(Outcome("succeeded" if changed else "unchanged", rows, position=_consumed(site), notes=news.notes))
    with interpreted(site.tables.session, few=news.is_small):
        batch = kept(told_apart(news.rows, site.terms))
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
    if not site.tables.exists(site.entity.assertions):  # else it was prepared before it caught up
        prepare(site.entity, site.terms, site.tables, site.commit())
    return without_suspicious(batch, site.entity, site.terms, site.tables)


def land_batch(batch: DataFrame, news: Gathered, site: Site) -> tuple[Rows, tuple[str, ...]]:
    """Refused rows of a batch told apart to quarantine, the others to the evidence and on to the timeline; every row read is accounted for.

    Returns the account, and what is suspicious without being wrong.
    """
    tally = _counted(batch, news, site)
    if (tally.refused or news.empty) and not site.replayed:  # what a replay refuses is on record already
        keep_refused(batch, news.empty, site.entity, site.tables, site.commit(started_at=site.world.stamp.started_at.isoformat()))
    complete = completeness(batch, site.entity)
    past = past_of(site, tally, complete)
    site = replace(site, terms=replace(site.terms, swept=bool(past.sweeps), shown_apart=bool(past.shows_apart)))
    with logs_read_ahead(site.tables, [site.entity.timeline]):
        ready = made_ready(batch, complete, past, tally, site)
    commit = site.commit(
        feeds=news.entries(site.entity, site.tables, site.commit()),
        sources=sorted(site.terms.sources),
        replayed=list(site.replayed),
        **remembered(past, tally, site),
    )
    rows = ready.arrivals.rows
    rows = rows.coalesce(1 + tally.read // ROWS_PER_PARTITION) if tally.read <= FEW else rows
    with beside(site.tables.session, partial(site.tables.append, rows, site.entity.assertions, commit)) as appended:
        # what follows from the batch is mostly known without the rest of the evidence, and is written after it
        follows = _follows(ready, replace(site.ground, evidence_is_written=appended))
        landed = appended().inserted - (complete.rows if complete else 0)
    _balanced(tally, landed, follows.copies)
    written = _followed(follows.acts, site)
    _handed_on(ready, follows.carried, tally, site)
    counts = Rows(tally.read, landed, follows.copies, tally.refused, tally.ignored, written.inserted, written.updated, written.deleted)
    return counts, site.watch.notes(tally.watched)


def _counted(batch: DataFrame, news: Gathered, site: Site) -> Tally:
    """The batch counted, and the stage's session set up for one of its size."""
    session = site.tables.session
    write_as_kept(session)
    with interpreted(session, few=news.is_small):
        tally = tally_of(batch, site.terms, site.watch.counted(), few=news.is_small)
    if tally.read <= FEW:
        session.conf.set("spark.sql.shuffle.partitions", str(1 + tally.read // ROWS_PER_PARTITION))
    return tally


def _follows(ready: Ready, ground: Ground) -> Follows:
    """What follows from the batch, computed."""
    if ready.repeated is not None:
        return Follows(ready.repeated.acts, ready.repeated.copies)
    if ready.copies is not None:
        return Follows(settled_changes(ready.arrivals, ground), ready.copies)
    carried = carried_on(ready.arrivals, ground)
    return Follows(settled_changes(ready.arrivals, ground, carried), carried.survey.copies, carried)


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


def _handed_on(ready: Ready, carried: Carried | None, tally: Tally, site: Site) -> None:
    """What a belief about this entity would otherwise have to search for; of a batch that says nothing new, that it need not."""
    since, after = ready.arrivals.since, site.previous.sequence
    if since is None or (carried is None and ready.repeated is None):
        return
    keys = ready.arrivals.rows.select(SK) if carried is None else carried.keys
    count, heard_from = (0, lambda: None) if carried is None else (carried.survey.count, carried.survey.heard_from)
    looks_back = not site.knows_how_far or site.terms.swept or site.terms.shown_apart or site.watch.has_reached(since)
    spoken = Spoken(after, after + 1, keys, tally.keys, tally.named, count, since, heard_from, looks_back, ready.arrivals.reached)
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
