"""Config and recorded watermarks to stages in the order they must run; pure, no Spark, no writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import TopologicalSorter

from karat.config.resolved import Belief, Config, CuratedTable, Entity
from karat.config.rules import in_force
from karat.config.star import Dimension, Star
from karat.plan.select import selected
from karat.plan.stages import Believe, Curate, Land, Load, Stage


@dataclass(frozen=True)
class Plan:
    """The stages that will run, in order, and for each the stages of this plan that it waits for."""

    stages: tuple[Stage, ...]
    waits_for: Mapping[str, frozenset[str]]


def build_plan(
    config: Config, watermarks: Mapping[str, str], select: Sequence[str] = (), now: datetime | None = None, *, reload: bool = False
) -> Plan:
    """The stages that `select` names, upstream before downstream, otherwise in the order of their declaration.

    `now` decides which rules are in force; without it, the last ones are. With `reload`, the star reads its sources from the beginning.
    """
    stages: dict[str, Stage] = {str(entity.timeline): _land(entity, watermarks.get(str(entity.timeline))) for entity in config.entities}
    stages |= {str(table.target): _curate(table, watermarks.get(str(table.target))) for table in config.curated}
    stages |= {str(belief.table): _believe(belief, watermarks.get(str(belief.table)), now) for belief in config.beliefs}
    stages |= {str(star.table): _load(star, watermarks.get(str(star.table)), reload=reload) for star in config.star}
    writers = {written: name for name, stage in stages.items() for written in stage.writes}
    upstream = {name: frozenset(writers[read] for read in stage.reads if read in writers) - {name} for name, stage in stages.items()}
    chosen = selected(list(stages), upstream, select)
    order = [name for name in _in_order(list(stages), upstream) if name in chosen]
    return Plan(tuple(stages[name] for name in order), {name: upstream[name] & chosen for name in order})


def _in_order(names: Sequence[str], upstream: Mapping[str, frozenset[str]]) -> list[str]:
    """The names with upstream first; where that leaves a choice, in the order of declaration."""
    sorter = TopologicalSorter({name: upstream[name] for name in names})
    sorter.prepare()
    place = {name: index for index, name in enumerate(names)}
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=place.__getitem__)
        order.extend(ready)
        sorter.done(*ready)
    return order


def _curate(table: CuratedTable, since: str | None) -> Curate:
    if since is None:
        return Curate(table, None, f"first load: nothing of {table.source} is on record as read; all of it is read")
    return Curate(table, since, f"reads {table.source} where {table.watermark} is above {since} less {table.lookback}")


def _land(entity: Entity, since: str | None) -> Land:
    feeds = ", ".join(feed.feed.name for feed in entity.feeds)
    if since is None:
        return Land(entity, None, f"first load: everything its feeds have is read ({feeds})")
    return Land(entity, since, f"reads what its feeds have not handed over yet ({feeds})")


def _believe(belief: Belief, since: str | None, now: datetime | None) -> Believe:
    rule = belief.rules[-1] if now is None else in_force(belief.rules, now)
    if rule is None:
        begins = f"{belief.rules[0].in_force_from:%Y-%m-%d %H:%M:%S}"
        return Believe(belief, since, f"no rule is in force before {begins}: nothing is believed yet")
    by = f"rule version {rule.version}, in force since {rule.in_force_from:%Y-%m-%d %H:%M:%S}"
    if since is None:
        return Believe(belief, None, f"first time: all evidence about {belief.entity.name} is evaluated by {by}")
    if not since.endswith(f"rule version {rule.version}"):
        return Believe(belief, since, f"rebuild: all evidence is evaluated again by {by}; so far it was {since.rpartition(', ')[2]}")
    return Believe(belief, since, f"evaluates what is new about {belief.entity.name} by {by}")


def _load(star: Star, since: str | None, *, reload: bool) -> Load:
    if isinstance(star, Dimension) and star.calendar is not None:
        first, last, _ = star.calendar
        return Load(star, since, f"a calendar from {first} to {last} is generated")
    sources = ", ".join(f"{source.table} ({'changes' if source.is_feed else 'full'})" for source in star.sources)
    if reload:
        return Load(star, since, f"reload: all of its sources is read again: {sources}", reload=True)
    if since is None:
        return Load(star, None, f"first load: all of its sources is read: {sources}")
    return Load(star, since, f"reads what is later than {since}: {sources}")
