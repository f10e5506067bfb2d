"""What every stage of a run works with: the configuration, the session, the run's name and time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pyspark.sql import SparkSession

from karat.config.resolved import Config
from karat.lake.delta import DeltaTables
from karat.lake.materialized import STAGING
from karat.lake.session import with_required_settings
from karat.state.commits import Commit

STAGE_SETTINGS: Final = {
    # Delta would copy the rows of such a write before it reads them twice; Karat writes staged rows, which stay as they are
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.insertReplaceOnOrUsing.materializeSource": "none",
    # a table made before its layout named statistics may note nothing of the columns it is laid out by; close together still helps
    "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled": "false",
}
"""Settings of every stage's own session, set when it is made."""


@dataclass(frozen=True)
class RunStamp:
    """Who we are and when it is, decided once; a replay with the same stamp writes the same rows."""

    run_id: str
    started_at: datetime


@dataclass(frozen=True)
class ControlEntry:
    """What a control table says about one target."""

    watermark: datetime | None = None
    run_id: str | None = None
    consumed: str | None = None
    """What its last run without a commit had consumed, see `curation.source_version`."""


@dataclass(frozen=True)
class RunContext:
    """Everything a stage may touch."""

    config: Config
    spark: SparkSession
    stamp: RunStamp
    control: Mapping[str, ControlEntry] = field(default_factory=dict)
    """The control tables as they were at the start, by target."""

    def control_entry(self, target: str) -> ControlEntry:
        """What the control table said about one target; nothing before its first run."""
        return self.control.get(target, ControlEntry())

    def commit(self, stage: str, number: int, **position: Any) -> Commit:  # noqa: ANN401  (whatever JSON holds)
        """A commit of this run."""
        return Commit(stage, number, self.stamp.run_id, self.config.hash, position)

    def tables(self) -> DeltaTables:
        """Tables through a session of their own: the views and commits of parallel stages do not meet."""
        session = with_required_settings(self.spark.newSession())
        for key, value in {STAGING: f"{self.config.lake}/_staging", **STAGE_SETTINGS}.items():
            session.conf.set(key, value)
        return DeltaTables(session, self.config.lake)
