"""Writes `config.md` beside this file from the configuration models, so that the reference cannot fall behind them."""

import re
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from karat.config.curation import Curation
from karat.config.settings import ProjectSettings

PAGE = Path(__file__).with_name("config.md")
ROOTS: tuple[tuple[str, type[BaseModel]], ...] = (("karat.yml", ProjectSettings), ("kind: curation", Curation))


def page() -> str:
    """The whole page."""
    parts = ["# Settings\n", "Generated from the models by `python docs/reference/generate.py`.\n"]
    for title, model in ROOTS:
        schema = model.model_json_schema(by_alias=False)
        parts.append(f"## `{title}`\n\n{_about(schema)}\n\n{_table(schema)}")
        parts.extend(f"### {_words(name)}\n\n{_about(inner)}\n\n{_table(inner)}" for name, inner in schema.get("$defs", {}).items())
    return "\n".join(parts)


def _about(schema: dict[str, Any]) -> str:
    return str(schema.get("description", "")).strip()


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _table(schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in required else _default(field)
        meaning = str(field.get("description", "")).replace("|", "\\|")
        lines.append(f"| `{name}` | {_type(field)} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _default(field: dict[str, Any]) -> str:
    if "default" not in field:
        return "its own defaults"
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
