"""Config and recorded watermarks to stages in the order they must run; pure, no Spark, no writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from karat.config.resolved import Config, CuratedTable, Entity
from karat.plan.select import selected
from karat.plan.stages import Curate, Land, Stage


@dataclass(frozen=True)
class Plan:
    """What will run: stages in order, and for each the stages of this plan it waits for."""

    stages: tuple[Stage, ...]
    waits_for: Mapping[str, frozenset[str]]


def build_plan(config: Config, watermarks: Mapping[str, str], select: Sequence[str] = ()) -> Plan:
    """The stages that `select` names, upstream before downstream, otherwise in the order of their declaration."""
    stages: dict[str, Stage] = {str(entity.timeline): _land(entity, watermarks.get(str(entity.timeline))) for entity in config.entities}
    stages |= {str(table.target): _curate(table, watermarks.get(str(table.target))) for table in config.curated}
    writers = {written: name for name, stage in stages.items() for written in stage.writes}
    upstream = {name: frozenset(writers[read] for read in stage.reads if read in writers) - {name} for name, stage in stages.items()}
    chosen = selected(list(stages), upstream, select)
    order = [name for name in _in_order(list(stages), upstream) if name in chosen]
    return Plan(tuple(stages[name] for name in order), {name: upstream[name] & chosen for name in order})


def _in_order(names: Sequence[str], upstream: Mapping[str, frozenset[str]]) -> list[str]:
    """Upstream first; among the ready ones, the order of declaration."""
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
