"""Where a stage of a belief works: the evidence and the belief's tables as they were when the stage began.

The position in a commit to one of the belief's tables:

    batch     the batch of the evidence up to which the table is derived
    rule      the version of the rule by which
    evidence  the id of the evidence table, which tells it from another one made later under its name
    present   of the history: the number of the commit to the current table that goes with it
    rules     of the history: every rule version that was ever in force, with a hash of what it said
    known_at  of the history: the time of the run
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from karat.belief.schema import belief_schema, conflicts_schema, history_schema, restatements_schema
from karat.config.resolved import Belief
from karat.config.rules import Rule
from karat.lake.context import RunContext
from karat.lake.delta import DeltaTables
from karat.lake.evidence import entity_schema, evidence_of
from karat.lake.preparation import APPEND_ONLY, DELETION_VECTORS, ensure
from karat.lake.tables import Layout, TableState
from karat.state.commits import Commit
from karat.temporal import columns as c
from karat.temporal.changes import TableSpec
from karat.temporal.entity_schema import EntitySchema

GOES_WITH: Final = "present"
_UNUSED: Final = frozenset(
    {c.ATTR_HASH, c.ENTITY_TYPE, c.EXTRA, c.EXTRACTION_VERSION, c.HASH_VERSION, c.INHERITED, c.PAYLOAD, c.SOURCE_PATH, c.SOURCE_TYPE}
)
"""Columns of the evidence that no belief depends on."""
_BY_PERIOD: Final = Layout((c.IS_CURRENT,), (c.BK, c.VALID_FROM, c.VALID_TO), DELETION_VECTORS)
_BY_KEY: Final = Layout((), (c.BK,), DELETION_VECTORS)
_RECEIPTS: Final = Layout((), (c.BK, c.VALID_FROM, c.VALID_TO), APPEND_ONLY)


@dataclass(frozen=True)
class Progress:
    """How far a belief has come: up to a batch of the evidence, by a rule."""

    batch: int
    rule: int

    def is_after(self, other: "Progress") -> bool:
        """Whether this is further than another: a later batch, or the same one by a later rule."""
        return (self.batch, self.rule) > (other.batch, other.rule)

    def __str__(self) -> str:
        return f"batch {self.batch}, rule version {self.rule}"


@dataclass(frozen=True)
class BeliefContext:
    """A belief's tables and their evidence as they were when the stage began, and the run that the stage is part of."""

    belief: Belief
    schema: EntitySchema
    tables: DeltaTables
    run: RunContext
    evidence: TableState
    evidence_id: str
    restatements: TableState
    conflicts: TableState
    history: TableState
    current: TableState

    @property
    def latest(self) -> int:
        """The number of the evidence's last batch."""
        return self.evidence.checkpoint.sequence

    @property
    def has_source_level(self) -> bool:
        """Whether a source ever spoke of everything it has, or a snapshot showed rows of another time than its own."""
        position = self.evidence.checkpoint.position
        return bool(position.get("sweeps")) or bool(position.get("apart"))

    def consumed(self) -> Progress | None:
        """How far the history has come; None where everything must be derived anew."""
        found = self.progress_of(self.history) if self.conflicts.exists else None
        return None if found is None or found.batch > self.latest else found

    def progress_of(self, state: TableState) -> Progress | None:
        """How far a table's last commit says it has come; None where it does not say, or rests on other evidence."""
        position = state.checkpoint.position
        if "batch" not in position or position.get("evidence") != self.evidence_id:
            return None
        return Progress(int(position["batch"]), int(position["rule"]))

    def rule(self, version: int) -> Rule:
        """The rule of this version."""
        return next(rule for rule in self.belief.rules if rule.version == version)

    def assertions(self) -> DataFrame:
        """The evidence that takes part, as it was when the stage began, without columns that no belief depends on."""
        rows = self.tables.read(self.belief.entity.assertions, self.evidence.version)
        used = [c.col(name) for name in rows.columns if name not in _UNUSED]
        return rows.where(F.col(c.TIME_BASIS).isNotNull()).select(*used)

    def held(self, state: TableState, spec: TableSpec, unread: c.Names = ()) -> DataFrame | None:
        """The rows of a table as they were when the stage began; None where there are none.

        Columns that are not read, and those the table was made without, are null.
        """
        if state.is_empty:
            return None
        rows = self.tables.read(state.name, state.version)
        types = {field.name: field.dataType for field in rows.schema}
        read = types.keys() - set(unread)
        wanted = {field.name: field.dataType for field in self.schema_of(state)}
        return rows.select(*(c.col(name) if name in read else F.lit(None).cast(wanted[name]).alias(name) for name in spec.columns))

    def schema_of(self, state: TableState) -> T.StructType:
        """The columns that one of the belief's tables should have."""
        schemas = {
            self.restatements.name: restatements_schema,
            self.conflicts.name: conflicts_schema,
            self.history.name: history_schema,
            self.current.name: belief_schema,
        }
        return schemas[state.name](self.schema)

    def nothing(self, state: TableState) -> DataFrame:
        """No rows, with the columns of one of the tables."""
        fields = (F.lit(None).cast(field.dataType).alias(field.name) for field in self.schema_of(state))
        return self.tables.session.range(0).select(*fields)

    def commit(self, state: TableState, reached: Progress, **more: Any) -> Commit:  # noqa: ANN401  (whatever JSON holds)
        """The next commit to one of the tables."""
        position = {"batch": reached.batch, "rule": reached.rule, "evidence": self.evidence_id, **more}
        return self.run.commit(str(self.belief.table), state.next_number, **position)

    def history_commit(self, reached: Progress, present: int) -> Commit:
        """The next commit to the history, which says how far the whole belief has come."""
        stamp, former = self.run.stamp, self.history.checkpoint.position.get("rules", {})
        begun = [rule for rule in self.belief.rules if rule.in_force_from <= stamp.started_at or rule.version == reached.rule]
        rules = {**former, **{str(rule.version): rule.content_hash for rule in begun}}
        return self.commit(self.history, reached, rules=rules, known_at=stamp.started_at.isoformat(), **{GOES_WITH: present})


def belief_context(belief: Belief, run: RunContext, tables: DeltaTables) -> BeliefContext | None:
    """The state of every table, read once; None where there is no evidence yet."""
    stage = str(belief.table)
    # the history first: what the others have beyond it is told by their commits, and the evidence never has less
    history = tables.state(belief.history, stage)
    restatements, conflicts, current = (tables.state(name, stage) for name in (belief.restatements, belief.conflicts, belief.table))
    evidence = evidence_of(belief.entity, tables)
    if not evidence.exists:
        return None
    schema, evidence_id = entity_schema(belief.entity, evidence, tables), tables.table_id(belief.entity.assertions)
    return BeliefContext(belief, schema, tables, run, evidence, evidence_id, restatements, conflicts, history, current)


def prepared(context: BeliefContext) -> BeliefContext:
    """The context with all four tables there and every column in them."""
    return replace(
        context,
        restatements=_ensured(context.restatements, _RECEIPTS, context),
        conflicts=_ensured(context.conflicts, _BY_KEY, context),
        history=_ensured(context.history, _BY_PERIOD, context),
        current=_ensured(context.current, _BY_KEY, context),
    )


def _ensured(state: TableState, layout: Layout, context: BeliefContext) -> TableState:
    """The table's state once it is there; its number stays, so that a commit of another run in between shows itself as a conflict."""
    opened = context.run.commit(str(context.belief.table), 0)
    if not ensure(state.name, context.schema_of(state), layout, context.tables, opened):
        return state
    return replace(state, version=context.tables.version(state.name))
