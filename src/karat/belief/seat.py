"""Where a belief is made: its tables, how far they have come, and what their next commits say."""

from dataclasses import dataclass, replace
from typing import Any

from karat.belief.concerned import Ground
from karat.config.names import TableName
from karat.config.resolved import Belief
from karat.config.rules import Rule
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.state.commits import Checkpoint, Commit


@dataclass(frozen=True)
class Reached:
    """How far something has come: a batch of the evidence, and a rule."""

    batch: int
    version: int

    def __str__(self) -> str:
        return f"batch {self.batch}, rule version {self.version}"


@dataclass(frozen=True)
class Seat:
    """Where a belief is made: its tables, its subject, and what they stand on."""

    ground: Ground
    world: RunContext
    latest: int
    """The evidence's last batch."""
    made_at: str
    """What tells this evidence from another one made later under its name."""
    history: Checkpoint

    @property
    def belief(self) -> Belief:
        """Which belief it is."""
        return self.ground.belief

    @property
    def tables(self) -> DeltaTables:
        """Where its tables are."""
        return self.ground.tables

    def rule(self, version: int) -> Rule:
        """The rule of this version."""
        return next(rule for rule in self.belief.rules if rule.version == version)

    def commit(self, table: TableName, reached: Reached, **more: Any) -> Commit:  # noqa: ANN401  (whatever JSON holds)
        """The next commit to one of the tables."""
        stamp, name = self.world.stamp, str(self.belief.table)
        position = {"batch": reached.batch, "rule": reached.version, "evidence": self.made_at, **more}
        return Commit(name, self.number(table) + 1, stamp.run_id, self.world.config.hash, position)

    def number(self, table: TableName) -> int:
        """The number of the last commit to one of the tables."""
        return self.tables.checkpoint(table, str(self.belief.table)).sequence

    def apart(self) -> "Seat":
        """The same through another session with the same settings, for a commit beside others."""
        return replace(self, ground=replace(self.ground, tables=self.tables.apart()))
