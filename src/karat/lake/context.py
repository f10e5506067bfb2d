"""What every stage of a run works with: the configuration, the session, the run's name and time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from karat.config.resolved import Config
from karat.lake.delta import DeltaTables
from karat.state.commits import Commit

EXACT_TIME = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # Spark's own default overflows at year 9999 for other readers
}
"""Settings every session that reads or writes tables must have, whoever built it."""


@dataclass(frozen=True)
class RunStamp:
    """Who we are and when it is, decided once; a replay with the same stamp writes the same rows."""

    run_id: str
    started_at: datetime


@dataclass(frozen=True)
class Recorded:
    """What a control table says about one target."""

    watermark: datetime | None = None
    run_id: str | None = None
    consumed: str | None = None
    """What its last run without a commit had consumed, see `curation.consumed`."""


@dataclass(frozen=True)
class RunContext:
    """Everything a stage may touch."""

    config: Config
    spark: SparkSession
    stamp: RunStamp
    recorded: Mapping[str, Recorded] = field(default_factory=dict)
    """The control tables as they were at the start, by target."""

    def recorded_for(self, target: str) -> Recorded:
        """What the control table said about one target; nothing before its first run."""
        return self.recorded.get(target, Recorded())

    def commit(self, stage: str, number: int, **position: Any) -> Commit:  # noqa: ANN401  (whatever JSON holds)
        """A commit of this run."""
        return Commit(stage, number, self.stamp.run_id, self.config.hash, position)

    def tables(self) -> DeltaTables:
        """Tables through a session of their own: the views and commits of parallel stages do not meet."""
        session = self.spark.newSession()
        for key, value in EXACT_TIME.items():
            session.conf.set(key, value)
        return DeltaTables(session, self.config.lake)
