"""Writes `config.md` from the configuration models, so that the reference agrees with them."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from karat.config.declared.belief import BeliefDeclaration
from karat.config.declared.curation import Curation
from karat.config.declared.entity import EntityDeclaration
from karat.config.declared.gold import BridgeDeclaration, DimensionDeclaration, FactDeclaration
from karat.config.settings import ProjectSettings

PAGE = Path(__file__).with_name("config.md")
ROOTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("karat.yml", ProjectSettings),
    ("kind: entity", EntityDeclaration),
    ("kind: belief", BeliefDeclaration),
    ("kind: curation", Curation),
    ("kind: dimension", DimensionDeclaration),
    ("kind: fact", FactDeclaration),
    ("kind: bridge", BridgeDeclaration),
)
MEANINGS = {
    "EntityDeclaration.name": "Tables `bronze.<name>`, `bronze.<name>_assertions`, `bronze.<name>_quarantine`.",
    "EntityDeclaration.type": "`state` has versions with periods; `transaction` has facts and corrections.",
    "EntityDeclaration.key": "Column to type, or a list of columns that are strings.",
    "EntityDeclaration.attributes": "Column to Spark type, as DDL writes it.",
    "EntityDeclaration.time_basis": "`platform`: the time of arrival is used as event time, for all feeds.",
    "EntityDeclaration.late_partials": "Whether what a partial inherited stays as it was on arrival, or follows late statements.",
    "EntityDeclaration.sightings": "`lazy` updates `last_seen_ts` and `seen_count` only with other changes and in `karat maintain`.",
    "Feed.source_system": "The system that the records come from. Several feeds may have the same one.",
    "Feed.envelope": "What a record is wrapped in. `debezium` and `goldengate` imply op, time and sequence, and PARTIAL.",
    "Feed.absence_means": "`deleted`: a key that is not in a full extract is deleted at the extract's time.",
    "Feed.max_absent": "An extract that would delete a larger share of the source's live keys is quarantined whole.",
    "BeliefDeclaration.name": "Tables `silver.<name>`, `silver.<name>_history`, `silver.<name>_restatements`, `silver.<name>_conflicts`.",
    "BeliefDeclaration.entity": "The entity it is a belief about; of type `state`.",
    "BeliefDeclaration.rules": "Versions in their order. One that has been used is never edited: add another.",
    "RuleVersion.version": "Shown in every believed row.",
    "RuleVersion.groups": "Every attribute of the entity is in exactly one.",
    "DeleteRule.by": "Which of several sources wins.",
    "Contract.has_source_time": "Left out: whether `event_time` is set or the envelope tells it.",
    "Contract.has_stable_bk": "`false` keeps the rows as evidence and makes no timeline of them.",
    "Contract.has_explicit_load_type": "Left out: whether `load_type` is set or the envelope implies it.",
    "Contract.has_delete_semantics": "Left out: true.",
    "Drift.missing_columns": "A column no row of a batch has (partial JSON: no drift). `keep`, `ignore`, `warn`: not asserted.",
    "Drift.type_changes": "A value its type cannot hold. `keep`, `ignore`, `warn`: it goes to `extra` and is not asserted.",
}
"""Meanings that the models do not give; a name that is no setting is an error."""


def page() -> str:
    """The whole page."""
    parts = ["# Settings\n", "Generated from the models by `python docs/reference/generate.py`.\n"]
    schemas = {title: model.model_json_schema() for title, model in ROOTS}
    _check_meanings(schemas.values())
    for title, schema in schemas.items():
        parts.append(f"## `{title}`\n\n{_about(schema)}\n\n{_table(schema)}")
        parts.extend(f"### {_words(name)}\n\n{_about(inner)}\n\n{_table(inner)}" for name, inner in schema.get("$defs", {}).items())
    return "\n".join(parts)


def _check_meanings(schemas: Iterable[dict[str, Any]]) -> None:
    """Raises `ValueError` for a meaning without a setting."""
    models = [model for schema in schemas for model in (schema, *schema.get("$defs", {}).values())]
    settings = {f"{model['title']}.{name}" for model in models for name in model.get("properties", {})}
    if strange := sorted(MEANINGS.keys() - settings):
        message = f"these are no settings: {', '.join(strange)}"
        raise ValueError(message)


def _about(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).strip()


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _table(schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else _default(field)
        meaning = str(field.get("description") or MEANINGS.get(f"{schema['title']}.{name}", "")).replace("|", "\\|")
        lines.append(f"| `{name}` | {_type(field)} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return "empty" if field.get("type") in {"array", "object"} else "its own defaults"
    return "none" if field["default"] is None else f"`{field['default']}`"


def _type(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return _words(field["$ref"].rpartition("/")[2])
    if "const" in field or "enum" in field:
        return " or ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    for choice in ("anyOf", "oneOf"):
        if choice in field:
            return " or ".join(dict.fromkeys(_type(option) for option in field[choice] if option.get("type") != "null"))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if field.get("type") == "object":
        inner = field.get("additionalProperties")
        return f"mapping to {_type(inner)}" if isinstance(inner, dict) else "mapping"
    return {"string": "text", "integer": "number", "number": "number", "boolean": "true or false"}.get(str(field.get("type")), "anything")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
