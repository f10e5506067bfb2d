"""What is believed of one entity and why, told from its evidence by the reference; and where sources differ. No JVM.

A question has two times: `valid_at`, of the world, and `known_at`, of what had arrived by then; the rule is the one in force at the latter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, overload

from karat.config.entity import OWNED_COLUMNS
from karat.config.moments import in_utc
from karat.config.problems import nearest
from karat.config.resolved import Belief, Config
from karat.config.rules import By, Rule, in_force
from karat.errors import ConfigError, NoAnswer, SourceUnavailable
from karat.inspect.history import belief_named, bk_of, evidence_of, key_values, ready, terms_of
from karat.inspect.positions import check_rules
from karat.inspect.rows import Row, counts_by, exists, literal, rows_where
from karat.reference import EntitySchema, Reason, believed, explained
from karat.reference import Statement as Spoken
from karat.reference.rules import IS_DELETED

Key = Mapping[str, object] | str


@dataclass(frozen=True)
class Statement:
    """One thing somebody said, and how it came to us."""

    source_system: str
    at: datetime
    """The time it counts from: its own, or that of the snapshot it was seen in."""
    source_event_ts: datetime
    op: str | None
    source_file: str | None
    source_path: str | None
    ingest_ts: datetime
    ingest_run_id: str
    record_hash: bytes


class Loser(NamedTuple):
    """A statement that is not believed: what its row carries, said or inherited, and what kept it from winning."""

    statement: Statement
    value: Any
    reason: Reason


@dataclass(frozen=True)
class Why:
    """Why an attribute has its value, or whether the entity is deleted: who won, by which rule, and why the others did not."""

    attribute: str
    value: Any
    winner: Statement | None
    losers: list[Loser]
    """Every other statement about the entity, in order."""
    rule_version: int
    group: str | None
    """The rule's group; `delete` for `is_deleted`, none for an attribute that nobody may say."""
    by: By | None


@dataclass(frozen=True)
class Question:
    """Of whom what is asked, at which times; with everything that was ever said about it."""

    belief: Belief
    key: Mapping[str, str]
    rows: tuple[Row, ...]
    known_at: datetime
    valid_at: datetime | None

    @property
    def rule(self) -> Rule | None:
        """The rule in force then; none before the first."""
        return in_force(self.belief.rules, self.known_at)

    @property
    def terms(self) -> EntitySchema:
        """How the statements are read, with the attributes that were once declared and are on record still."""
        terms = terms_of(self.belief.entity)
        held = self.rows[0] if self.rows else {}
        retired = [name for name in held if name not in {*OWNED_COLUMNS, *terms.key, *terms.attributes}]
        return replace(terms, attributes=(*terms.attributes, *retired))

    @property
    def decided(self) -> tuple[str, ...]:
        """What can be asked for: every attribute declared, those that only the rule of that time still knows, and whether it is deleted."""
        formerly = self.rule.attributes if self.rule else ()
        return tuple(dict.fromkeys((*self.belief.entity.attributes, *formerly, IS_DELETED)))

    @property
    def whom(self) -> str:
        """The key in words."""
        return ", ".join(f"{name}={value}" for name, value in self.key.items())


@dataclass(frozen=True)
class Conflicts:
    """Where sources that are heard differ now."""

    belief: str
    key: tuple[str, ...]
    counts: Mapping[str, int]
    """Attribute to the number of entities on which sources differ."""
    rows: tuple[Row, ...]
    """One per entity and attribute: its key, `attribute`, the believed `value` and who `says` what, whose word stands first."""


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
    """Why one attribute, or `is_deleted`, is what it is believed to be; without one, why each is.

    Raises `NoAnswer` when nobody ever spoke of the key, or no rule was in force then.
    """
    question = ask(config, name, key, valid_at=valid_at, known_at=known_at)
    return reasons(question) if attribute is None else reason(question, attribute)


def as_of_key(config: Config, name: str, key: Key, *, valid_at: datetime | None = None, known_at: datetime | None = None) -> Row | None:
    """What is believed of one entity: key, attributes, `is_deleted`, `rule_version` and `because`; None where it is not in the belief."""
    return believed_row(ask(config, name, key, valid_at=valid_at, known_at=known_at))


def conflicts(config: Config, name: str, attribute: str | None = None, *, limit: int | None = None) -> Conflicts:
    """Where sources differ now, by attribute and key, of all attributes or of one; at most `limit` of them, but all are counted."""
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
    chosen = {told: number for told, number in counts.items() if attribute in {None, told}}
    return Conflicts(belief.name, belief.entity.key, chosen, tuple(found))


def restatements(config: Config, name: str, key: Key | None = None, *, limit: int | None = None) -> list[Row]:
    """What was believed of the past before it changed, the latest first; of one entity or of all."""
    belief = belief_named(config, name)
    if not exists(config, belief.restatements):
        message = f"there is no table {belief.restatements} yet"
        raise SourceUnavailable(message, remedy="run the project first")
    wanted = "1 = 1" if key is None else f"bk = {literal(bk_of(belief.entity, key_values(belief.entity, key)))}"
    cut = "" if limit is None else f" LIMIT {int(limit)}"
    return rows_where(config, belief.restatements, f"{wanted} ORDER BY restated_at DESC, bk, valid_from{cut}")


def ask(config: Config, name: str, key: Key, *, valid_at: datetime | None = None, known_at: datetime | None = None) -> Question:
    """The question with its evidence. Raises `ConfigError` when a rule that was used has been edited: it would give another answer."""
    belief = belief_named(config, name)
    values = key_values(belief.entity, key)
    check_rules(config, belief)
    rows = tuple(ready(row) for row in evidence_of(config, belief.entity, values))
    return Question(belief, values, rows, in_utc(known_at), None if valid_at is None else in_utc(valid_at))


def reasons(question: Question) -> dict[str, Why]:
    """Why every attribute is what it is believed to be, and whether the entity is deleted."""
    return {attribute: reason(question, attribute) for attribute in question.decided}


def reason(question: Question, attribute: str) -> Why:
    """Why the attribute is what it is believed to be."""
    _check_attribute(question.belief, attribute, (*question.decided, *question.terms.attributes))
    check_answerable(question)
    told = explained(
        question.rows,
        question.terms,
        question.belief.rules,
        attribute=attribute,
        known_at=question.known_at,
        valid_at=question.valid_at,
    )
    if told is None:
        raise _without_rule(question)
    losers = [Loser(_statement(loser.statement), loser.value, loser.reason) for loser in told.losers]
    won = None if told.winner is None else _statement(told.winner)
    return Why(attribute, told.value, won, losers, told.rule_version, told.group, told.by)


def believed_row(question: Question) -> Row | None:
    """What is believed of the entity asked about."""
    belief = question.belief
    found = believed(question.rows, question.terms, belief.rules, known_at=question.known_at, valid_at=question.valid_at)
    return dict(found[0]) if found else None


def check_answerable(question: Question) -> None:
    """Raises `NoAnswer` where there is nothing to tell: nobody has spoken of the entity, or no rule decides."""
    if not question.rows:
        message = f"nobody has spoken of {question.whom}"
        raise NoAnswer(message, remedy="see whether the key is right; `karat run` takes in what has arrived since the last run")
    if all(row["time_basis"] is None for row in question.rows):
        message = f"only sources that count nowhere have spoken of {question.whom}"
        raise NoAnswer(message, remedy="`karat check` tells the grade of every feed and its reason")
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


def _statement(told: Spoken) -> Statement:
    row = told.row
    return Statement(
        source_system=told.source,
        at=told.at,
        source_event_ts=row["source_event_ts"],
        op=row["op"],
        source_file=row["source_file"],
        source_path=row["source_path"],
        ingest_ts=row["ingest_ts"],
        ingest_run_id=row["ingest_run_id"],
        record_hash=row["record_hash"],
    )
