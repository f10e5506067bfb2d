"""Read me first: a run is config → plan → execute, and this page names every step in order.

config    what the user said                    karat.config    no Spark
plan      which stages, in which order, why     karat.plan      no Spark, no writes
execute   stages become commits                 karat.execute   the only room that acts
  sources   a bounded read of the outside       karat.sources
  contract  rows admitted or refused, and why   karat.contract  pure
  bronze    evidence, and the timeline of it    karat.bronze    pure
  silver    what one source says, what is believed   karat.silver    pure
  tables    one commit, with its checkpoint     karat.lake.delta
state     a mirror of what the lake says        karat.state
telemetry what happened, as typed events        karat.telemetry
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from karat.config.resolved import Config
from karat.curation.books import recorded
from karat.lake.context import RunContext
from karat.plan.build import Plan, build_plan
from karat.plan.stages import Curate
from karat.runner.run import Ended, execute
from karat.telemetry.sinks import Sink


def plan(config: Config, watermarks: Mapping[str, str], select: Sequence[str] = (), now: datetime | None = None) -> Plan:
    """Decide: which stages would run, since when, and why."""
    return build_plan(config, watermarks, select, now)


def run(stages: Plan, world: RunContext, sink: Sink) -> Ended:
    """Act: walk exactly the stages that were planned, each from where the lake's own commits say it stands."""
    books = [stage.table.books for stage in stages.stages if isinstance(stage, Curate)]
    return execute(stages, replace(world, recorded=recorded(world, books)), sink)
