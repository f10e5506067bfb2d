"""A project in Python: opened from its folder, run, and read."""

import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

from karat import pipeline
from karat.config.load import load
from karat.config.moments import in_utc
from karat.config.names import is_path, lake_path, table_name
from karat.config.resolved import Belief, Config, Entity
from karat.config.secrets import is_reference, revealed
from karat.config.star import StarTable
from karat.errors import ConfigError, KaratError
from karat.inspect.history import belief_named, entity_named, star_named
from karat.inspect.positions import check_rules, positions
from karat.lake.context import RunContext, RunStamp
from karat.lake.delta import DeltaTables
from karat.lake.session import build_session, present_session
from karat.plan.build import Plan
from karat.runner.interruption import Interruption, RunInterrupted
from karat.runner.run import Result, with_retries
from karat.state.address import state_url
from karat.state.writer import StateWriter
from karat.telemetry.events import Rows, Status
from karat.telemetry.ledger import Ledger
from karat.telemetry.log import JsonLog
from karat.telemetry.notify import Notifier
from karat.telemetry.sinks import Fanout, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from karat.bronze.replay import Replayed
    from karat.inspect.belief import Key, Why
    from karat.inspect.history import History
    from karat.lake.verification import Verified
    from karat.runner.maintenance import Chore


@dataclass(frozen=True)
class StageReport:
    """How one stage ended."""

    name: str
    status: Status
    rows: Rows
    seconds: float
    error: str | None
    failure: BaseException | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()
    """What an operator should hear although nothing failed."""


@dataclass(frozen=True)
class Report:
    """How a run ended."""

    ok: bool
    run_id: str
    stages: tuple[StageReport, ...]


class Project:
    """A folder of declarations and the lake they describe."""

    def __init__(self, config: Config, spark: "SparkSession | None" = None) -> None:
        self.config = config
        self._spark = spark
        self._is_ours = False

    @classmethod
    def open(
        cls,
        folder: str | Path,
        spark: "SparkSession | None" = None,
        variables: Mapping[str, str] | None = None,
        *,
        heartbeat_seconds: int | None = None,
    ) -> "Project":
        """Read the project's configuration; starts nothing. Raises `ConfigError` with all that is wrong."""
        config = load(Path(folder), variables)
        return cls(config if heartbeat_seconds is None else with_heartbeat(config, heartbeat_seconds), spark)

    @property
    def spark(self) -> "SparkSession":
        """The session in use: the one handed in, or one built on first need."""
        if self._spark is None:
            settings = self.config.settings.spark
            conf = {key: revealed(value, self.config.folder) for key, value in settings.conf.items()}
            secrets = [key for key, value in settings.conf.items() if is_reference(value)]
            self._is_ours = present_session() is None  # a session that was there before is not ours to stop
            self._spark = build_session(settings.model_copy(update={"conf": conf}), f"karat {self.config.settings.project}", secrets)
        return self._spark

    def plan(self, select: Sequence[str] = (), now: datetime | None = None, *, reload: bool = False) -> Plan:
        """What a run would do, without Spark and without writing. Raises `ConfigError` when a rule that was used has been edited."""
        check_rules(self.config)
        return pipeline.plan(self.config, positions(self.config), select, _stamp(now).started_at, reload=reload)

    def run(
        self,
        select: Sequence[str] = (),
        now: datetime | None = None,
        sinks: Sequence[Sink] = (),
        *,
        progress: bool = False,
        reload: bool = False,
    ) -> Report:
        """One bounded pass over everything selected. A table's failure is in the report; only what is wrong beforehand is raised.

        `now` is the run's time (naive means UTC), for replays and tests; `progress` shows the run on the terminal; with `reload` the
        star reads all of its sources again.
        A signal (Ctrl-C, SIGTERM) lets no table start any more, cancels those at work, and is raised as a `KeyboardInterrupt`.
        """
        stages = self.plan([select] if isinstance(select, str) else select, now, reload=reload)
        context = self._context(now)
        shown = [_terminal()] if progress else []
        with closing(Fanout([*self._lasting_sinks(), *shown, *sinks])) as sink:
            ended = pipeline.run(stages, context, sink)
        if ended.interrupted:
            raise RunInterrupted(ended.interrupted)
        return Report(ended.ok, context.stamp.run_id, tuple(_reported(result) for result in ended.results))

    def table(self, name: str) -> "DataFrame":
        """Any table of the lake, by name or by path."""
        try:
            found = lake_path(name, self.config.lake) if is_path(name) else table_name(name, "silver", self.config.settings.catalog)
        except ValueError as wrong:
            raise ConfigError(str(wrong), remedy="write schema.table, or a path below the lake") from None
        catalog = self.config.settings.catalog if found.path is None else None
        return DeltaTables(self.spark, self.config.lake).read(type(found)(found.schema, found.table, found.path, catalog))

    def history(self, entity: str, key: "Mapping[str, object] | str") -> "History":
        """The statements about one entity and the versions that follow; starts no JVM."""
        from karat.inspect.history import history  # noqa: PLC0415  (a moment that a run does not need)

        return history(self.config, entity, key)

    def verify(self, name: str) -> "Verified":
        """A timeline, by `silver.NAME` a belief, or by `gold.NAME` a table of the star, against a rebuild from what it is made of."""
        if name.startswith("gold."):
            from karat.gold.verify import verify_star  # noqa: PLC0415

            return verify_star(star_named(self.config, name), self._context())
        if name.startswith("silver."):
            from karat.belief.rebuild import verify_belief  # noqa: PLC0415

            return verify_belief(belief_named(self.config, name), self._context())
        from karat.bronze.rebuild import verify  # noqa: PLC0415

        return verify(entity_named(self.config, name), self._context())

    def as_of(self, belief: str, valid_at: datetime | None = None, known_at: datetime | None = None) -> "DataFrame":
        """What was believed of a whole table: to be true at `valid_at` (default: the latest), by what was known at `known_at` (now)."""
        from karat.belief.as_of import believed_as_of  # noqa: PLC0415

        valid = None if valid_at is None else in_utc(valid_at)
        return believed_as_of(belief_named(self.config, belief), self._context().tables(), in_utc(known_at), valid)

    @overload
    def why(self, belief: str, key: "Key", attribute: str, valid_at: datetime | None = None, known_at: datetime | None = None) -> "Why": ...
    @overload
    def why(
        self, belief: str, key: "Key", attribute: None = None, valid_at: datetime | None = None, known_at: datetime | None = None
    ) -> "dict[str, Why]": ...
    def why(
        self, belief: str, key: "Key", attribute: str | None = None, valid_at: datetime | None = None, known_at: datetime | None = None
    ) -> "Why | dict[str, Why]":
        """Why an attribute of one entity, or `is_deleted`, is believed to be what it is; without one, why each is. Starts no JVM."""
        from karat.inspect.belief import why  # noqa: PLC0415

        return why(self.config, belief, key, attribute, valid_at=valid_at, known_at=known_at)

    def conflicts(self, belief: str) -> "DataFrame":
        """Where sources differ now: one row per entity and attribute."""
        return self.table(str(belief_named(self.config, belief).conflicts))

    def quarantine(self, entity: str) -> "DataFrame":
        """The refused rows of an entity, or of a table of the star by `gold.NAME`."""
        of = star_named(self.config, entity) if entity.startswith("gold.") else entity_named(self.config, entity)
        return self.table(str(of.quarantine))

    def replay(self, entity: str, now: datetime | None = None) -> "Replayed":
        """Refused rows checked again by the present rules; the good ones join the evidence at their own source time."""
        from karat.bronze.replay import replay  # noqa: PLC0415

        found, context = entity_named(self.config, entity), self._context(now)
        return with_retries(lambda: replay(found, context), entity, Interruption())

    def maintain(self, what: str, names: Sequence[str] = (), *, retention_hours: int = 168) -> "list[Chore]":
        """Housekeeping: `dry-run` says, `apply` does, `rebuild-from-raw` makes timelines and beliefs anew from their evidence.

        `names` are entities and, by `silver.NAME` and `gold.NAME`, beliefs and tables of the star.
        """
        from karat.runner.maintenance import chores, maintain, rebuild, staging_chores  # noqa: PLC0415

        context = self._context()
        everything: list[Entity | Belief | StarTable] = [*self.config.entities, *self.config.beliefs]
        everything += [] if what == "rebuild-from-raw" else self.config.star
        done: list[Chore] = []
        for each in [self._maintained(name) for name in names] or everything:
            if what == "rebuild-from-raw":
                with_retries(partial(rebuild, _of_evidence(each), context), each.name, Interruption())
            elif what == "apply":
                done += with_retries(partial(maintain, each, context, retention_hours=retention_hours), each.name, Interruption())
            else:
                done += [chore for _, chore in chores(each, context, context.tables(), retention_hours=retention_hours)]
        if not names and what != "rebuild-from-raw":
            done += staging_chores(context.tables(), apply=what == "apply")
        return done

    def _maintained(self, name: str) -> Entity | Belief | StarTable:
        """What a name given to `maintain` stands for."""
        if name.startswith("gold."):
            return star_named(self.config, name)
        return belief_named(self.config, name) if name.startswith("silver.") else entity_named(self.config, name)

    def tables(self) -> DeltaTables:
        """The lake's tables, through a session of their own."""
        return self._context().tables()

    def _context(self, now: datetime | None = None) -> RunContext:
        return RunContext(self.config, self.spark, _stamp(now))

    def close(self) -> None:
        """Stop the session if this project built it."""
        if self._spark is not None and self._is_ours:
            self._spark.stop()
            self._spark = None

    def _lasting_sinks(self) -> list[Sink]:
        """Log, state and notices; a run goes on without a state store that cannot be opened."""
        sinks: list[Sink] = [JsonLog(self.config.folder / ".karat" / "logs")]
        try:
            sinks.append(Ledger(StateWriter.open(state_url(self.config.settings.state, self.config.folder))))
        except KaratError as unreachable:
            print(f"the run is not recorded in the state store: {unreachable}", file=sys.stderr)  # noqa: T201
        if self.config.settings.notify is not None:
            sinks.append(Notifier(self.config.settings.notify, self.config.folder, self.config.settings.project))
        return sinks


def _of_evidence(of: Entity | Belief | StarTable) -> Entity | Belief:
    """The entity or belief itself. Raises `ConfigError` for a table of the star, which is made of other tables."""
    if isinstance(of, StarTable):
        message = f"{of.table} is not made of evidence"
        raise ConfigError(message, remedy=f"read its sources again: karat run --select {of.table} --reload")
    return of


def _stamp(now: datetime | None) -> RunStamp:
    """The identity of a run: names sort by time, because of two contradicting statements the later run's counts."""
    born = in_utc(now)
    return RunStamp(f"{born:%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}", born)


def with_heartbeat(config: Config, seconds: int) -> Config:
    """The configuration with another heartbeat: how often, not what, so its hash may differ without meaning."""
    runtime = config.settings.runtime.model_copy(update={"heartbeat_seconds": seconds})
    return replace(config, settings=config.settings.model_copy(update={"runtime": runtime}))


def _terminal() -> Sink:
    from rich.console import Console  # noqa: PLC0415  (only a run that is watched needs it)

    from karat.telemetry.terminal import Terminal  # noqa: PLC0415

    return Terminal(Console(), Console(stderr=True))


def _reported(result: Result) -> StageReport:
    error = str(result.error) if result.error else None
    outcome = result.outcome
    return StageReport(result.stage.name, outcome.status, outcome.rows, result.seconds, error, result.failure, outcome.notes)
