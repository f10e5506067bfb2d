"""The timeline brought up to date with the evidence: what a batch changes of the versions that are held, ready to be written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from karat.bronze.again import keys_with_news
from karat.bronze.continuation import EARLIEST, SAID_OF_IT, WOKEN, Past, continued, is_tangled, spans, still_matters
from karat.bronze.difference import differences, timeline_form
from karat.bronze.shape import assertions_schema, timeline_schema
from karat.bronze.standing import tell_enough
from karat.bronze.timeline import timeline
from karat.config.resolved import Entity
from karat.execute.acts import Acts, settled_acts
from karat.execute.beside import beside, through
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.execute.picked import of_keys, picked
from karat.execute.survey import Survey, heard_from, surveyed
from karat.lake.delta import DeltaTables
from karat.temporal.columns import BK, COPIES, SK, SOURCE_EFFECTIVE_TO, SOURCE_SYSTEM, TIME_BASIS, col
from karat.temporal.difference import only_inserts
from karat.temporal.entity_schema import EntitySchema
from karat.temporal.moments import moment, roughly
from karat.temporal.sketch import FEW_KEYS, Bitmaps, may_be_among
from karat.temporal.sql import Sql

FEW = 500_000
"""Up to here a batch's keys are broadcast."""
FEW_NAMED = 200
"""Keys that can be named in a search or a condition of Spark's: more of them take longer to plan than they save."""
FEW_TO_INTERPRET = 100_000
"""Up to here compiling would take longer than it saves."""


@dataclass(frozen=True)
class InOrder:
    """What is known of a batch all of which is later than anything on record: nobody's evidence need be asked."""

    copies: int
    """Rows of the batch that say what another one says."""
    count: int
    """How many of its statements count."""


@dataclass(frozen=True)
class Arrivals:
    """What has joined the evidence since the timeline last looked."""

    rows: DataFrame
    """Assertion rows."""
    silenced: tuple[str, ...]
    """Sources that spoke about everything they have: all their keys are concerned."""
    past: Past = field(default_factory=Past)
    count: int | None = None
    """Of how many keys at most; None: unknown, taken to be many."""
    since: datetime | None = None
    """The first time it speaks of."""
    near: DataFrame | None = None
    """The held versions that can matter to it, and few others, where they were looked up already: see `versions_near`."""
    reached: datetime | None = None
    """The latest time anybody has spoken of, where a search by Spark is to be bounded roughly."""
    in_order: InOrder | None = None
    """Where it is known to be later than anything on record, and the versions near it were looked up."""

    @property
    def few(self) -> bool:
        """Whether its keys can be broadcast; if not, nearly everything is concerned and is made anew from the evidence."""
        return self.count is not None and self.count <= FEW

    @property
    def are_named(self) -> bool:
        """Whether its keys are so few that they can be named in a search."""
        return self.count is not None and self.count <= FEW_KEYS

    @property
    def may_be_first(self) -> bool:
        """Whether it is worth asking if anything is held at all: then nothing has to be looked up or compared."""
        return not self.are_named

    @property
    def very_few(self) -> bool:
        """Whether they are so few that compiling would take longer than it saves."""
        return self.count is not None and self.count <= FEW_TO_INTERPRET


@dataclass(frozen=True)
class Ground:
    """Where the timeline stands: the entity with its terms and tables."""

    entity: Entity
    terms: EntitySchema
    tables: DeltaTables
    evidence_is_written: Callable[[], object] = field(default=lambda: None)
    """Returns when all of it is."""

    @property
    def evidence(self) -> DataFrame:
        """All assertions."""
        self.evidence_is_written()
        return self.tables.read(self.entity.assertions)

    @property
    def held(self) -> DataFrame:
        """All versions."""
        return self.tables.read(self.entity.timeline).select(*map(col, timeline_schema(self.terms).names))

    def differences(self, fresh: DataFrame, held: DataFrame) -> DataFrame:
        """What is to be written, as far as the entity wants to know."""
        return differences(fresh, held, self.terms, lazy=self.is_lazy)

    @property
    def is_lazy(self) -> bool:
        """Whether a version that was merely seen again stays as it is."""
        return self.entity.declared.sightings == "lazy"


@dataclass(frozen=True)
class Carried:
    """The versions of a batch's keys carried on, as far as they tell."""

    survey: Survey
    keys: DataFrame
    """Whom it is about."""
    tangled: DataFrame | None
    """The keys whose evidence must be asked; None: nobody's."""
    relevant: DataFrame
    """The held versions that matter, beside their keys' spans."""
    followed: DataFrame
    """The acts, if nobody's evidence must be asked."""


def settled_changes(arrivals: Arrivals, ground: Ground, carried: Carried | None = None) -> Acts:
    """What the arrivals change, computed and ready to be written."""
    if carried is not None:
        changes = _continued(arrivals, carried, ground)
    elif arrivals.may_be_first and ground.held.isEmpty():
        changes = only_inserts(timeline(_all_said(arrivals.rows, ground), ground.terms), timeline_form(ground.terms))
    else:
        arrivals = with_news(arrivals, ground)
        if arrivals.count == 0:
            return Acts(arrivals.rows, timeline_form(ground.terms), ())
        changes = changes_of(arrivals, ground)
    with interpreted(arrivals.rows.sparkSession, few=arrivals.very_few and not arrivals.silenced):
        return settled_acts(changes, timeline_form(ground.terms))


def versions_near(ground: Ground, keys: Bitmaps, since: datetime | None) -> DataFrame:
    """The held versions of these keys, and of few others, that can matter to statements from a time on. Grain: as the timeline's."""
    return _since(ground, since, may_be_among(SK, keys))


def with_news(arrivals: Arrivals, ground: Ground) -> Arrivals:
    """The arrivals without keys about which nothing new is said, where that leaves no trace. A daily extract mostly repeats itself."""
    if arrivals.count is None or arrivals.silenced or not _news_can_be_told(ground):
        return arrivals
    new = arrivals.rows.where(takes_part())
    keys = kept(keys_with_news(new, ground.held if arrivals.near is None else arrivals.near, ground.terms))
    count = keys.count()
    rows = about(new, keys, few=count <= FEW)
    return replace(arrivals, rows=kept(rows), count=min(count, arrivals.count))


def changes_of(arrivals: Arrivals, ground: Ground) -> DataFrame:
    """The acts that bring the held versions up to date with the arrivals. Grain: one row per version that differs."""
    if arrivals.few and not arrivals.silenced:
        return _continued(arrivals, carried_on(arrivals, ground), ground)
    return _made_anew(arrivals, ground)


def is_carried_on(arrivals: Arrivals, ground: Ground) -> bool:
    """Whether versions that were looked up already are all that has to be asked first."""
    return arrivals.near is not None and not arrivals.silenced and not _news_can_be_told(ground)


def carried_on(arrivals: Arrivals, ground: Ground) -> Carried:
    """The versions of the batch's keys carried on, and whose evidence must be asked; the batch is computed by then."""
    if arrivals.in_order is not None and arrivals.near is not None and arrivals.since is not None:
        return _carried_in_order(arrivals, arrivals.in_order, arrivals.near, arrivals.since, ground)
    session, terms = arrivals.rows.sparkSession, ground.terms
    columns = [col(name) for name in timeline_schema(terms).names]
    with interpreted(session, few=arrivals.very_few):
        span = kept(spans(arrivals.rows, arrivals.past, takes_part()))
    with interpreted(session, few=arrivals.very_few and arrivals.near is not None):  # else the whole table is searched
        near = kept(_beside(arrivals, span, ground))
    with interpreted(session, few=arrivals.very_few):
        relevant = near if terms.is_transaction else near.where(still_matters())
        tells = arrivals.near is not None and tell_enough(arrivals.past, terms)
        # mostly nobody's is, and what then follows takes as long to plan as to find out
        with beside(session, lambda: surveyed(near, span, terms, arrivals.since if tells else None, few=arrivals.are_named)) as survey:
            followed = kept(ground.differences(continued(relevant, arrivals.rows.where(takes_part()), terms), relevant.select(*columns)))
    keys = span.where(F.col(EARLIEST).isNotNull()).select(SK)
    woken = span.where(F.col(WOKEN)).select(SK)
    tangled = relevant.where(is_tangled(terms)).select(SK).unionByName(woken).distinct() if survey().some_tangled else None
    return Carried(survey(), keys, tangled, relevant, followed)


def _carried_in_order(arrivals: Arrivals, known: InOrder, near: DataFrame, since: datetime, ground: Ground) -> Carried:
    """The live versions carried on: nothing new falls before or between what they stand for, and those of other keys stay as they are."""
    session, terms = arrivals.rows.sparkSession, ground.terms
    with interpreted(session, few=arrivals.very_few):
        live = through(session, near).withColumn(EARLIEST, moment(since)).where(still_matters())
        new = arrivals.rows.where(takes_part())
        followed = kept(ground.differences(continued(live, new, terms), live.drop(EARLIEST)))
    survey = Survey(known.copies, known.count, some_tangled=False, tangled=(), heard_from=partial(heard_from, near, terms, since))
    return Carried(survey, new.select(SK), None, live, followed)


def _made_anew(arrivals: Arrivals, ground: Ground) -> DataFrame:
    """Every key concerned, from its whole evidence."""
    keys = arrivals.rows.where(F.col(BK).isNotNull()).select(SK)
    if arrivals.silenced:
        of_theirs = F.col(BK).isNotNull() & F.col(SOURCE_SYSTEM).isin(*arrivals.silenced)
        keys = keys.unionByName(ground.evidence.where(of_theirs).select(SK))
    return _from_evidence(keys.distinct(), ground, few=False)


def _continued(arrivals: Arrivals, carried: Carried, ground: Ground) -> DataFrame:
    """Keys from the versions they have where these tell enough, the others from their evidence."""
    if carried.tangled is None:
        return carried.followed
    if carried.survey.tangled:
        anew = _picked_anew(carried.survey.tangled, ground)
        if anew is not None:  # what follows for a key does not depend on others
            return carried.followed.where(~F.col(SK).isin(*carried.survey.tangled)).unionByName(anew)
    tangled = kept(carried.tangled)
    columns = [col(name) for name in timeline_schema(ground.terms).names]
    held, clean = (rows.join(F.broadcast(tangled), SK, "left_anti") for rows in (carried.relevant, arrivals.rows.where(takes_part())))
    told = ground.differences(continued(held, clean, ground.terms), held.select(*columns))
    return told.unionByName(_from_evidence(tangled, ground))


def _beside(arrivals: Arrivals, span: DataFrame, ground: Ground) -> DataFrame:
    """The versions of the batch's keys that may end at or after its first statement about them, beside their spans."""
    span = span.where(F.col(EARLIEST).isNotNull()).drop(COPIES, SAID_OF_IT)
    if arrivals.near is not None:  # few on both sides by now: a merge join in one partition is a stage, a broadcast would be a job
        return span.hint("merge").join(arrivals.near, SK, "inner")  # by the settings of the session the span is of
    since = arrivals.since and roughly(arrivals.since, arrivals.reached)
    found = _since(ground, since).join(F.broadcast(span), SK, "inner")
    return found if ground.terms.is_transaction else found.where(still_matters())


def _since(ground: Ground, since: datetime | None, near: Sql | None = None) -> DataFrame:
    """The versions that end at or after a time.

    By the end alone, in one look: the live ones, which are kept apart, have none, and the literal keeps files of older ones unopened.
    Facts have no end.
    """
    held = ground.held if near is None else ground.held.where(near)
    if ground.terms.is_transaction or since is None:
        return held
    return held.where(F.col(SOURCE_EFFECTIVE_TO).isNull() | (F.col(SOURCE_EFFECTIVE_TO) >= moment(since)))


def _news_can_be_told(ground: Ground) -> bool:
    """Whether statements that say nothing new leave no trace."""
    return ground.is_lazy and not ground.terms.is_transaction and not ground.terms.propagate


def takes_part() -> Column:
    """Of an assertion: whether it is about a key and counts."""
    return F.col(BK).isNotNull() & F.col(TIME_BASIS).isNotNull()


def _all_said(rows: DataFrame, ground: Ground) -> DataFrame:
    """All that is said of keys, and what sources have ever said about everything: that may be older than the first key."""
    return rows.where(F.col(BK).isNotNull()).unionByName(of_sources(ground.evidence)) if ground.terms.swept else rows


def _picked_anew(named: Sequence[bytes], ground: Ground) -> DataFrame | None:
    """What differs for keys from their whole evidence, where they are few and can be picked out."""
    if len(named) > FEW_NAMED:
        return None
    terms, entity = ground.terms, ground.entity
    ground.evidence_is_written()
    said_of_it = of_keys(named, or_of_none=terms.swept)
    history = picked(ground.tables, entity.assertions, said_of_it, assertions_schema(terms))
    held = None if history is None else picked(ground.tables, entity.timeline, of_keys(named), timeline_schema(terms))
    return None if history is None or held is None else ground.differences(timeline(history, terms), held)


def _from_evidence(keys: DataFrame, ground: Ground, *, few: bool = True) -> DataFrame:
    evidence = ground.evidence
    history = about(evidence, keys, few=few)
    history = history.unionByName(of_sources(evidence)) if ground.terms.swept else history
    held = about(ground.held, keys, few=few)
    if few:  # little of much: the search through the tables is one thing, what is made of its finds another
        history, held = kept(history), kept(held)
    return ground.differences(timeline(history, ground.terms), held)
