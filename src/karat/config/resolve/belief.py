"""A belief from its declaration: its entity found, its rules checked against the entity's sources and attributes."""

from collections.abc import Mapping, Sequence

from karat.config.declared.belief import BELIEF_COLUMNS, RESERVED_FOR_KEYS, BeliefDeclaration, RuleVersion
from karat.config.document import Document, Place, dotted
from karat.config.names import TableName
from karat.config.problems import Problem, nearest, shown
from karat.config.resolved import Belief, Config, Entity
from karat.config.rules import Authority, Group, Rule

SCHEMA = "silver"


def resolve_belief(
    declared: BeliefDeclaration, document: Document, entities: Sequence[Entity], config: Config
) -> tuple[Belief | None, list[Problem]]:
    """The belief, and what is wrong with it beyond the shape of its declaration."""
    found = {entity.name: entity for entity in entities}
    entity = found.get(declared.entity.removeprefix("bronze."))
    if entity is None:
        message, remedy = "there is no such entity", nearest(declared.entity, found)
        return None, [_problem(document, ("entity",), message, declared.entity, remedy)]
    problems = [_problem(document, *wrong) for wrong in (*_entity_problems(entity), *_rule_problems(declared, entity))]
    if problems:
        return None, problems
    rules = tuple(_rule(version) for version in declared.rules)
    table = TableName(SCHEMA, declared.name, None, config.settings.catalog)
    return Belief(declared.name, entity, table, rules, f"{document.file}:{document.line_of(('rules',))}"), []


Wrong = tuple[Place, str, str, str]
"""Place, message, value, remedy."""


def _entity_problems(entity: Entity) -> list[Wrong]:
    found: list[Wrong] = []
    if entity.declared.type == "transaction":
        found.append(
            (
                ("entity",),
                "facts are not believed: they have no versions",
                entity.name,
                "name an entity of type: state",
            )
        )
    taken = [name for name in entity.key if name.lower() in RESERVED_FOR_KEYS]
    taken += [name for name in entity.attributes if name.lower() in BELIEF_COLUMNS]
    if taken:
        message = f"the entity's column {taken[0]} has a name that is reserved in belief tables"
        found.append((("entity",), message, entity.name, "rename it in the entity and use `map`"))
    return found


def _rule_problems(declared: BeliefDeclaration, entity: Entity) -> list[Wrong]:
    """Problems of the last version, which must fit the entity; earlier ones may name retired sources and attributes."""
    last, place = declared.rules[-1], ("rules", len(declared.rules) - 1)
    found: list[Wrong] = []
    sources = {feed.feed.source_system for feed in entity.feeds}
    for name, group in last.groups.items():
        here: Place = (*place, "groups", name)
        found += [
            ((*here, "attributes"), "the entity has no such attribute", attribute, nearest(attribute, entity.attributes))
            for attribute in group.attributes
            if attribute not in entity.attributes
        ]
        found += _unknown_sources(group.sources, sources, (*here, "sources"))
    found += _unknown_sources(last.delete.sources, sources, (*place, "delete", "sources"))
    remedy = "add it to one; if this version has been used, add a version that has it"
    decided = {attribute for group in last.groups.values() for attribute in group.attributes}
    found += [
        (
            (*place, "groups"),
            f"version {last.version}: {attribute} is in no group",
            "",
            remedy,
        )
        for attribute in entity.attributes
        if attribute not in decided
    ]
    return found


def _unknown_sources(ranks: Mapping[str, int] | None, sources: set[str], place: Place) -> list[Wrong]:
    return [
        (place, f"{source} is no source of the entity", source, nearest(source, sources)) for source in ranks or () if source not in sources
    ]


def _rule(version: RuleVersion) -> Rule:
    groups = {name: Group(tuple(group.attributes), group.by, group.sources, group.nulls) for name, group in version.groups.items()}
    return Rule(version.version, version.in_force_from, groups, Authority(version.delete.by, version.delete.sources))


def _problem(document: Document, place: Place, message: str, value: str, remedy: str) -> Problem:
    return Problem(document.file, document.line_of(place), dotted(place), message, shown(value) if value else "", remedy)
