"""The timeline brought up to date with the evidence: one MERGE of what differs, carrying the evidence's version it has consumed."""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from karat.bronze.continuation import EARLIEST, WOKEN, Past, continued, is_late, is_tangled, spans, still_matters
from karat.bronze.difference import differences, timeline_form
from karat.bronze.shape import timeline_schema
from karat.bronze.terms import Terms
from karat.bronze.timeline import timeline
from karat.config.resolved import Entity
from karat.execute.acts import settled_acts, write
from karat.execute.delta import DeltaTables
from karat.execute.evidence import about, of_sources
from karat.execute.kept import kept
from karat.execute.pace import interpreted
from karat.state.commits import Commit, Written
from karat.temporal.columns import BK, IS_SOURCE_CURRENT, SK, SOURCE_EFFECTIVE_TO, SOURCE_SYSTEM, TIME_BASIS, col
from karat.temporal.moments import from_micros, moment


@dataclass(frozen=True)
class Arrivals:
    """What has joined the evidence since the timeline last looked."""

    rows: DataFrame
    """Assertion rows."""
    silenced: tuple[str, ...]
    """Sources that spoke about everything they have: all their keys are concerned."""
    past: Past = field(default_factory=Past)
    few: bool = True
    """Whether its keys can be broadcast; if not, nearly everything is concerned and is made anew from the evidence."""
    very_few: bool = False
    """Whether they are so few that compiling would take longer than it saves."""


@dataclass(frozen=True)
class Ground:
    """Where the timeline stands: the entity with its terms and tables."""

    entity: Entity
    terms: Terms
    tables: DeltaTables

    @property
    def evidence(self) -> DataFrame:
        """All assertions."""
        return self.tables.read(self.entity.assertions)

    @property
    def held(self) -> DataFrame:
        """All versions."""
        return self.tables.read(self.entity.timeline).select(*map(col, timeline_schema(self.terms).names))

    def differences(self, fresh: DataFrame, held: DataFrame) -> DataFrame:
        """What is to be written, as far as the entity wants to know."""
        return differences(fresh, held, self.terms, lazy=self.entity.declared.sightings == "lazy")


def advance(arrivals: Arrivals, ground: Ground, commit: Commit) -> Written:
    """What the arrivals change, in one commit; no commit when they change nothing."""
    changes = changes_of(arrivals, ground)
    with interpreted(arrivals.rows.sparkSession, few=arrivals.very_few and not arrivals.silenced):
        settled = settled_acts(changes, timeline_form(ground.terms))
    return write(settled, ground.entity.timeline, ground.tables, commit)


def changes_of(arrivals: Arrivals, ground: Ground) -> DataFrame:
    """The acts that bring the held versions up to date with the arrivals. Grain: one row per version that differs."""
    if arrivals.few and not arrivals.silenced:
        return _continued(arrivals, ground)
    return _made_anew(arrivals, ground)


def _made_anew(arrivals: Arrivals, ground: Ground) -> DataFrame:
    """Every key concerned, from its whole evidence."""
    keys = arrivals.rows.where(F.col(BK).isNotNull()).select(SK)
    if arrivals.silenced:
        of_theirs = F.col(BK).isNotNull() & F.col(SOURCE_SYSTEM).isin(*arrivals.silenced)
        keys = keys.unionByName(ground.evidence.where(of_theirs).select(SK))
    return _from_evidence(keys.distinct(), ground, few=False)


def _continued(arrivals: Arrivals, ground: Ground) -> DataFrame:
    """Keys from the versions they have where these tell enough, the others from their evidence."""
    new = arrivals.rows.where(F.col(BK).isNotNull() & F.col(TIME_BASIS).isNotNull())
    with interpreted(arrivals.rows.sparkSession, few=arrivals.very_few):
        span = kept(spans(new, arrivals.past))
    live = kept(_live(span, ground))
    with interpreted(arrivals.rows.sparkSession, few=arrivals.very_few):
        look = _look(live, span, ground.terms)
    relevant, some_tangled = live, look.tangled
    if look.late:
        relevant = kept(live.unionByName(_closed(span, ground, look.earliest)))
        some_tangled = look.woken or bool(relevant.agg(F.max(is_tangled(ground.terms))).collect()[0][0])
    columns = [col(name) for name in timeline_schema(ground.terms).names]
    if not some_tangled:
        return ground.differences(continued(relevant, new, ground.terms), relevant.select(*columns))
    woken = span.where(F.col(WOKEN)).select(SK)
    tangled = kept(relevant.where(is_tangled(ground.terms)).select(SK).unionByName(woken).distinct())
    held, clean = (rows.join(F.broadcast(tangled), SK, "left_anti") for rows in (relevant, new))
    told = ground.differences(continued(held, clean, ground.terms), held.select(*columns))
    return told.unionByName(_from_evidence(tangled, ground))


@dataclass(frozen=True)
class Look:
    """What one look at the live versions of a batch's keys tells."""

    late: bool
    """Whether anything new is as early as what was already absorbed: then closed versions are needed too."""
    earliest: int
    """Where the first late key's statements begin, in microseconds since 1970."""
    tangled: bool
    woken: bool


def _look(live: DataFrame, span: DataFrame, terms: Terms) -> Look:
    """Everything the way forward depends on, from one aggregate."""
    beside = span.select(SK, EARLIEST, WOKEN).join(live.drop(EARLIEST, WOKEN), SK, "left")
    found = beside.agg(
        F.min(F.when(is_late(), F.unix_micros(EARLIEST))).alias("earliest"),
        F.max(F.coalesce(is_tangled(terms), F.col(WOKEN))).alias("tangled"),
        F.max(WOKEN).alias("woken"),
    ).collect()[0]
    return Look(found["earliest"] is not None, found["earliest"] or 0, bool(found["tangled"]), bool(found["woken"]))


def _live(span: DataFrame, ground: Ground) -> DataFrame:
    """The live versions of the keys, beside their spans; all versions of facts, which have no end."""
    held = ground.held if ground.terms.is_transaction else ground.held.where(F.col(IS_SOURCE_CURRENT) == F.lit(True))
    return held.join(F.broadcast(span), SK, "inner")


def _closed(span: DataFrame, ground: Ground, earliest: int) -> DataFrame:
    """The closed versions that end after the first new statement; the literal keeps files of older ones unopened."""
    recent = F.col(SOURCE_EFFECTIVE_TO) >= moment(from_micros(earliest))
    held = ground.held.where((F.col(IS_SOURCE_CURRENT) == F.lit(False)) & recent)
    return held.join(F.broadcast(span), SK, "inner").where(still_matters())


def _from_evidence(keys: DataFrame, ground: Ground, *, few: bool = True) -> DataFrame:
    evidence = ground.evidence
    history = about(evidence, keys, few=few)
    history = history.unionByName(of_sources(evidence)) if ground.terms.swept else history
    held = about(ground.held, keys, few=few)
    if few:  # little of much: the search through the tables is one thing, what is made of its finds another
        history, held = kept(history), kept(held)
    return ground.differences(timeline(history, ground.terms), held)
