"""The models of `kind: belief`: which source is believed on which attribute, by dated rules."""

from datetime import datetime
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from karat.config.declared.entity import refuse
from karat.config.moments import moment_of
from karat.config.names import checked_identifier
from karat.config.rules import By
from karat.config.setting import Setting, Text

BELIEF_COLUMNS = frozenset(["bk", "sk", "is_deleted", "rule_version", "because", "valid_from", "valid_to", "is_current", "because_hash"])
"""Column names that Karat reserves in belief tables: attributes may not have them."""
RESERVED_FOR_KEYS = BELIEF_COLUMNS | frozenset(
    ["changed", "before", "after", "cause", "rule_version_before", "run_id", "restated_at", "attribute", "value", "says"]
)
"""Those of restatements and conflicts too, which have the key's columns but no attributes: keys may not have them."""


def _moment(value: object) -> object:
    """A day or a time, in UTC unless it has an offset."""
    if not isinstance(value, str):
        return value
    try:
        return moment_of(value)
    except ValueError:
        refuse("not a day or a time", "write it as 2026-01-31 or 2026-01-31T12:00:00Z")


def _ranks(value: object) -> object:
    """Sources with their ranks; `[CRM, CORE]` is short for `{CRM: 2, CORE: 1}`: the first ranks highest."""
    if not isinstance(value, list):
        return value
    if len(set(map(str, value))) != len(value):
        refuse("a source is named twice", "name each once")
    return {source: len(value) - place for place, source in enumerate(value)}


Moment = Annotated[datetime, BeforeValidator(_moment)]
Ranks = Annotated[dict[Text, int], BeforeValidator(_ranks)]


class GroupRule(Setting):
    """Attributes that are decided by the same criteria."""

    attributes: Annotated[list[Text], Field(min_length=1)]
    by: By = Field("precedence", description="`precedence`: highest rank, then latest value; `recency`: latest value, then rank.")
    sources: Annotated[Ranks, Field(min_length=1)] | None = Field(
        None, description="Allowed sources with rank (higher wins), or a list, the first highest. Default: all, by `precedence_rank`."
    )
    nulls: Literal["skip", "count"] = Field("skip", description="`count`: a null competes like a value; `skip`: it is no candidate.")


class DeleteRule(Setting):
    """Which sources decide whether an entity is deleted."""

    sources: Ranks | None = Field(None, description="As in a group; an empty list: none. Default: all, by `precedence_rank`.")
    by: By = "precedence"


class RuleVersion(Setting):
    """The rules in force from a time on, until the next version begins."""

    version: Annotated[int, Field(ge=1)]
    in_force_from: Moment = Field(description="On the knowledge axis: what is known at a time is evaluated by the rules in force then.")
    groups: Annotated[dict[Text, GroupRule], Field(min_length=1)]
    delete: DeleteRule = Field(default_factory=DeleteRule)

    @model_validator(mode="after")
    def _each_attribute_is_decided_once(self) -> "RuleVersion":
        decided: dict[str, str] = {}
        for name, group in self.groups.items():
            for attribute in group.attributes:
                if attribute in decided:
                    refuse(
                        f"version {self.version}: {attribute} is in group {decided[attribute]} and in group {name}",
                        "name each attribute in one group",
                    )
                decided[attribute] = name
        return self


class BeliefDeclaration(Setting):
    """The golden record of an entity: which source is believed on which attribute."""

    kind: Literal["belief"]
    name: Annotated[Text, AfterValidator(checked_identifier)]
    entity: Text
    rules: Annotated[list[RuleVersion], Field(min_length=1)]

    @model_validator(mode="after")
    def _versions_follow_each_other(self) -> "BeliefDeclaration":
        for earlier, later in pairwise(self.rules):
            if later.version <= earlier.version:
                refuse(f"version {later.version} comes after version {earlier.version}", "number the versions upwards, in their order")
            if later.in_force_from <= earlier.in_force_from:
                refuse(
                    f"version {later.version} is in force no later than version {earlier.version}: the two overlap",
                    "let each version begin after the one before it",
                )
        return self
