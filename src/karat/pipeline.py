"""Read me first: a run is config → plan → stages, and this page names every step in order.

config      what the user said                        karat.config      no Spark
plan        which stages, in which order, why         karat.plan        no Spark, no writes
run         stages in order, parallel, retried        karat.runner
  sources   a bounded read of the outside             karat.sources
  contract  rows admitted or refused, and why         karat.contract
  bronze    evidence, and the timeline of it          karat.bronze
  curation  one source made clean                     karat.curation
  belief    one golden record from many sources       karat.belief
  gold      a star of dimensions and facts            karat.gold
  tables    one commit, with its position             karat.lake
state       a mirror of what the lake says            karat.state
telemetry   what happened, as typed events            karat.telemetry

Each capability has one `load.py`, the only file of its folder that reads and writes tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from karat.config.resolved import Config
from karat.curation.audit import read_control
from karat.lake.context import RunContext
from karat.plan.build import Plan, build_plan
from karat.plan.stages import Curate
from karat.runner.run import Ended, execute
from karat.telemetry.sinks import Sink


def plan(
    config: Config, watermarks: Mapping[str, str], select: Sequence[str] = (), now: datetime | None = None, *, reload: bool = False
) -> Plan:
    """Which stages would run, since when, and why."""
    return build_plan(config, watermarks, select, now, reload=reload)


def run(stages: Plan, context: RunContext, sink: Sink) -> Ended:
    """Run exactly the stages that were planned, each from where the lake's own commits say it is.

    Raises `SetupError` before anything starts when the session forbids a setting on which hashes depend.
    """
    context.tables()
    control_tables = [stage.table.audit_tables for stage in stages.stages if isinstance(stage, Curate)]
    return execute(stages, replace(context, control=read_control(context, control_tables)), sink)
