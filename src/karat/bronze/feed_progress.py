"""What is suspicious in a batch without being wrong: it is counted and reported on the run, and never held back.

A time ahead of the clock, a time or a sequence that runs backwards within a source, a value its attribute could not hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from karat.config.resolved import Entity
from karat.contract.columns import KIND
from karat.temporal.columns import EVENT_TS, EXTRA, FEED, SEQUENCE, SOURCE_SYSTEM, TIME_BASIS
from karat.temporal.moments import from_micros, moment
from karat.temporal.order import sequence_order
from karat.temporal.sql import texts
from karat.temporal.statements import is_snapshot


@dataclass(frozen=True)
class FeedProgress:
    """How far each source had got by the last commit, and what a batch is counted for beside that."""

    entity: Entity
    reached: Mapping[str, Mapping[str, Any]]
    """Source to the latest `time` it spoke of, in microseconds since 1970, and its highest `sequence`."""
    now: datetime

    @property
    def sources(self) -> list[str]:
        """Every source with a feed."""
        return sorted({feed.feed.source_system for feed in self.entity.feeds})

    def counted(self) -> dict[str, Column]:
        """Aggregates over a batch: what to tell, and how far each source gets."""
        found = {"ahead": F.count_if(_counts() & (F.col(EVENT_TS) > moment(self.now)))}
        for place, source in enumerate(self.sources):
            found |= self._of_source(f"{place}", _counts() & (F.col(SOURCE_SYSTEM) == source), self.reached.get(source, {}))
        for place, feed in enumerate(self.entity.feeds):
            if feed.feed.drift.type_changes == "warn":
                unfit = F.expr(f"size(array_intersect(map_keys({EXTRA}), {texts(self.entity.attributes)})) > 0")
                found[f"unfit_{place}"] = F.count_if((F.col(KIND) == "row") & (F.col(FEED) == feed.feed.name) & unfit)
        return found

    def notes(self, found: Mapping[str, Any]) -> tuple[str, ...]:
        """The counts in words."""
        said = [(found["ahead"], "rows with a time after the run's own")]
        for place, source in enumerate(self.sources):
            said.append((found.get(f"early_{place}"), f"rows of {source} with a time before its latest"))
            said.append((found.get(f"behind_{place}"), f"rows of {source} with a sequence below its highest"))
        for place, feed in enumerate(self.entity.feeds):
            said.append(
                (found.get(f"unfit_{place}"), f"rows of feed {feed.feed.name} with a value its attribute cannot hold, kept in `extra`")
            )
        return tuple(f"{what}: {count}" for count, what in said if count)

    def remembered(self, found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """How far each source has got now, for the next commit; a source that said nothing stays where it was."""
        now = {source: dict(told) for source, told in self.reached.items()}
        for place, source in enumerate(self.sources):
            for what in ("time", "sequence"):
                told = found.get(f"{what}_{place}")
                if told is not None:
                    now.setdefault(source, {})[what] = told
        return now

    def went_back(self, found: Mapping[str, Any]) -> frozenset[str]:
        """The sources of which the batch has a time that they had reached before."""
        return frozenset(source for place, source in enumerate(self.sources) if found.get(f"back_{place}"))

    def _of_source(self, place: str, is_its: Column, before: Mapping[str, Any]) -> dict[str, Column]:
        until, highest = before.get("time"), before.get("sequence")
        at = F.when(is_its, F.unix_micros(EVENT_TS))
        found = {f"time_{place}": F.max(at) if until is None else F.greatest(F.max(at), F.lit(until))}
        if until is not None:
            found[f"back_{place}"] = F.coalesce(F.max(is_its & (F.col(EVENT_TS) <= moment(from_micros(until)))), F.lit(False))
            # a snapshot repeats what was said long ago: that is its nature
            is_early = is_its & ~is_snapshot() & (F.col(EVENT_TS) < moment(from_micros(until)))
            found[f"early_{place}"] = F.count_if(F.coalesce(is_early, F.lit(False)))
        if self._has_sequences(self.sources[int(place)]):
            said = F.when(is_its & F.col(SEQUENCE).isNotNull(), _ranked(F.col(SEQUENCE)))
            furthest = F.max(said)
            if highest is not None:
                known = _ranked(F.lit(highest))
                found[f"behind_{place}"] = F.count_if(said < known)
                furthest = F.greatest(furthest, known)
            found[f"sequence_{place}"] = furthest["sequence"]
        return found

    def _has_sequences(self, source: str) -> bool:
        return any(feed.feed.source_system == source and (feed.feed.sequence or feed.feed.is_change_stream) for feed in self.entity.feeds)


def _ranked(sequence: Column) -> Column:
    return F.struct(sequence_order(sequence).alias("order"), sequence.alias("sequence"))


def _counts() -> Column:
    """Rows that take part in the timeline."""
    return (F.col(KIND) == "row") & F.col(TIME_BASIS).isNotNull()
