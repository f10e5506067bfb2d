"""What is believed of one entity and why, computed from its evidence by the reference; and where sources differ. No JVM.

A question has two times: `valid_at`, when something was true, and `known_at`, when we knew it. The rule is the one in force
at `known_at`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, overload

from karat.config.declared.entity import OWNED_COLUMNS
from karat.config.moments import in_utc
from karat.config.problems import nearest
from karat.config.resolved import Belief, Config
from karat.config.rules import By, Rule, in_force
from karat.errors import ConfigError, NoAnswer, SourceUnavailable
from karat.inspect.history import belief_named, bk_of, evidence_of, key_values, ready, schema_of
from karat.inspect.positions import check_rules
from karat.inspect.rows import Row, counts_by, exists, literal, rows_where
from karat.reference import EntitySchema, Reason, believed, explained
from karat.reference import Statement as ReferenceStatement
from karat.reference.rules import IS_DELETED

Key = Mapping[str, object] | str


@dataclass(frozen=True)
class Statement:
    """A statement of a source, and how it arrived."""

    source_system: str
    at: datetime
    """When it takes effect: at its own time, or at that of the snapshot that showed the key again."""
    source_event_ts: datetime
    op: str | None
    source_file: str | None
    source_path: str | None
    ingest_ts: datetime
    ingest_run_id: str
    record_hash: bytes


class Loser(NamedTuple):
    """A statement that is not believed, the value in its row, asserted or inherited, and why it did not win."""

    statement: Statement
    value: Any
    reason: Reason


@dataclass(frozen=True)
class Why:
    """Why an attribute has its value, or whether the entity is deleted: the winner, the rule, and why the others did not win."""

    attribute: str
    value: Any
    winner: Statement | None
    losers: list[Loser]
    """Every other statement about the entity, in order."""
    rule_version: int
    group: str | None
    """The rule's group; `delete` for `is_deleted`, None for an attribute that no source is allowed on."""
    by: By | None


@dataclass(frozen=True)
class Question:
    """A question about one entity at two times, with all evidence about it."""

    belief: Belief
    key: Mapping[str, str]
    rows: tuple[Row, ...]
    known_at: datetime
    valid_at: datetime | None

    @property
    def rule(self) -> Rule | None:
        """The rule in force at `known_at`; None before the first."""
        return in_force(self.belief.rules, self.known_at)

    @property
    def schema(self) -> EntitySchema:
        """How the statements are read, with attributes that are no longer declared but in the evidence."""
        schema = schema_of(self.belief.entity)
        held = self.rows[0] if self.rows else {}
        retired = [name for name in held if name not in {*OWNED_COLUMNS, *schema.key, *schema.attributes}]
        return replace(schema, attributes=(*schema.attributes, *retired))

    @property
    def decided(self) -> tuple[str, ...]:
        """What can be asked for: the declared attributes, those that only the rule of that time names, and `is_deleted`."""
        formerly = self.rule.attributes if self.rule else ()
        return tuple(dict.fromkeys((*self.belief.entity.attributes, *formerly, IS_DELETED)))

    @property
    def whom(self) -> str:
        """The key as text."""
        return ", ".join(f"{name}={value}" for name, value in self.key.items())


@dataclass(frozen=True)
class Conflicts:
    """Where allowed sources differ now."""

    belief: str
    key: tuple[str, ...]
    counts: Mapping[str, int]
    """Attribute to the number of entities on which sources differ."""
    rows: tuple[Row, ...]
    """One per entity and attribute: its key, `attribute`, the believed `value`, and what each source `says`, the winner first."""


@overload
def why(
    config: Config, name: str, key: Key, attribute: str, *, valid_at: datetime | None = None, known_at: datetime | None = None
) -> Why: ...
@overload
def why(
    config: Config, name: str, key: Key, attribute: None = None, *, valid_at: datetime | None = None, known_at: datetime | None = None
) -> dict[str, Why]: ...
def why(  # noqa: PLR0913  (the question has two times)
    config: Config,
    name: str,
    key: Key,
    attribute: str | None = None,
    *,
    valid_at: datetime | None = None,
    known_at: datetime | None = None,
) -> Why | dict[str, Why]:
    """Why one attribute, or `is_deleted`, has the value that is believed; without one, why each has.

    Raises `NoAnswer` when there is no evidence about the key, or no rule was in force then.
    """
    question = ask(config, name, key, valid_at=valid_at, known_at=known_at)
    return reasons(question) if attribute is None else reason(question, attribute)


def as_of_key(config: Config, name: str, key: Key, *, valid_at: datetime | None = None, known_at: datetime | None = None) -> Row | None:
    """What is believed of one entity: key, attributes, `is_deleted`, `rule_version` and `because`; None if it is not in the belief."""
    return believed_row(ask(config, name, key, valid_at=valid_at, known_at=known_at))


def conflicts(config: Config, name: str, attribute: str | None = None, *, limit: int | None = None) -> Conflicts:
    """Where sources differ now, by attribute and key, for all attributes or for one; at most `limit` rows, but all are counted."""
    belief = belief_named(config, name)
    if attribute is not None:
        _check_attribute(belief, attribute, belief.entity.attributes)
    if not exists(config, belief.conflicts):
        message = f"there is no table {belief.conflicts} yet"
        raise SourceUnavailable(message, remedy="run the project first")
    counts = counts_by(config, belief.conflicts, "attribute")
    wanted = "1 = 1" if attribute is None else f"attribute = {literal(attribute)}"
    cut = "" if limit is None else f" LIMIT {int(limit)}"
    found = rows_where(config, belief.conflicts, f"{wanted} ORDER BY attribute, bk{cut}")
    chosen = {name: number for name, number in counts.items() if attribute in {None, name}}
    return Conflicts(belief.name, belief.entity.key, chosen, tuple(found))


def restatements(config: Config, name: str, key: Key | None = None, *, limit: int | None = None) -> list[Row]:
    """The restatements of one entity or of all, the latest first."""
    belief = belief_named(config, name)
    if not exists(config, belief.restatements):
        message = f"there is no table {belief.restatements} yet"
        raise SourceUnavailable(message, remedy="run the project first")
    wanted = "1 = 1" if key is None else f"bk = {literal(bk_of(belief.entity, key_values(belief.entity, key)))}"
    cut = "" if limit is None else f" LIMIT {int(limit)}"
    return rows_where(config, belief.restatements, f"{wanted} ORDER BY restated_at DESC, bk, valid_from{cut}")


def ask(config: Config, name: str, key: Key, *, valid_at: datetime | None = None, known_at: datetime | None = None) -> Question:
    """The question with its evidence. Raises `ConfigError` when a used rule has been edited, because the answer would differ."""
    belief = belief_named(config, name)
    values = key_values(belief.entity, key)
    check_rules(config, belief)
    rows = tuple(ready(row) for row in evidence_of(config, belief.entity, values))
    return Question(belief, values, rows, in_utc(known_at), None if valid_at is None else in_utc(valid_at))


def reasons(question: Question) -> dict[str, Why]:
    """Why every attribute has the value that is believed, and whether the entity is deleted."""
    return {attribute: reason(question, attribute) for attribute in question.decided}


def reason(question: Question, attribute: str) -> Why:
    """Why the attribute has the value that is believed."""
    _check_attribute(question.belief, attribute, (*question.decided, *question.schema.attributes))
    check_answerable(question)
    found = explained(
        question.rows,
        question.schema,
        question.belief.rules,
        attribute=attribute,
        known_at=question.known_at,
        valid_at=question.valid_at,
    )
    if found is None:
        raise _without_rule(question)
    losers = [Loser(_statement(loser.statement), loser.value, loser.reason) for loser in found.losers]
    won = None if found.winner is None else _statement(found.winner)
    return Why(attribute, found.value, won, losers, found.rule_version, found.group, found.by)


def believed_row(question: Question) -> Row | None:
    """What is believed of the entity; None if it is not in the belief."""
    belief = question.belief
    found = believed(question.rows, question.schema, belief.rules, known_at=question.known_at, valid_at=question.valid_at)
    return dict(found[0]) if found else None


def check_answerable(question: Question) -> None:
    """Raises `NoAnswer` when there is no evidence about the entity, or no rule was in force."""
    if not question.rows:
        message = f"there is no evidence about {question.whom}"
        raise NoAnswer(message, remedy="see whether the key is right; `karat run` takes in what has arrived since the last run")
    if all(row["time_basis"] is None for row in question.rows):
        message = f"only rejected sources have evidence about {question.whom}"
        raise NoAnswer(message, remedy="`karat check` shows the grade of every feed and its reason")
    if question.rule is None:
        raise _without_rule(question)


def _without_rule(question: Question) -> NoAnswer:
    first = min(question.belief.rules, key=lambda rule: rule.in_force_from)
    then, begins = (moment.isoformat(sep=" ", timespec="minutes") for moment in (question.known_at, first.in_force_from))
    message = f"no rule of {question.belief.table} was in force at {then}: the first, version {first.version}, begins at {begins}"
    return NoAnswer(message, remedy="ask what was known from then on")


def _check_attribute(belief: Belief, attribute: str, known: tuple[str, ...]) -> None:
    """Raises when neither the entity nor any version of the rules knows the attribute."""
    names = {*known, *(name for rule in belief.rules for name in rule.attributes)}
    if attribute not in names:
        message = f"{belief.table} has no attribute {attribute!r}"
        raise ConfigError(message, remedy=nearest(attribute, names))


def _statement(found: ReferenceStatement) -> Statement:
    row = found.row
    return Statement(
        source_system=found.source,
        at=found.at,
        source_event_ts=row["source_event_ts"],
        op=row["op"],
        source_file=row["source_file"],
        source_path=row["source_path"],
        ingest_ts=row["ingest_ts"],
        ingest_run_id=row["ingest_run_id"],
        record_hash=row["record_hash"],
    )
