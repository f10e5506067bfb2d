"""What a run acts with: its configuration, its session, its birth and what the books said when it began."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pyspark.sql import SparkSession

from karat.config.resolved import Config
from karat.execute.spoken import Spoken
from karat.lake.delta import DeltaTables

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
    """What its last run without a commit had consumed, see `execute.consumed`."""


@dataclass(frozen=True)
class RunContext:
    """Everything a stage may touch."""

    config: Config
    spark: SparkSession
    stamp: RunStamp
    recorded: Mapping[str, Recorded] = field(default_factory=dict)
    """The control tables as they were at the start, by target."""
    spoken: dict[str, Spoken] = field(default_factory=dict)
    """The last batch that landed in this run, by the entity's timeline."""

    def recorded_for(self, target: str) -> Recorded:
        """What the control table said about one target; nothing before its first run."""
        return self.recorded.get(target, Recorded())

    def tables(self) -> DeltaTables:
        """Tables through a session of their own: temp views and commit settings of parallel stages cannot meet."""
        session = self.spark.newSession()
        for key, value in EXACT_TIME.items():
            session.conf.set(key, value)
        return DeltaTables(session, self.config.lake)
