"""Which attributes a document speaks of: what is not in it is not said, an explicit null is, at any depth.

`fields` maps an attribute to the dotted path of its field. A null in the place of an object is a null for everything that could be in
it; inside a text, a number or a list there is nothing. A text that holds a JSON object counts as that object.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

Document = Mapping[str, Any]
UNAVAILABLE: Final = frozenset({"__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="})
_FLAG: Final = "_isMissing"


def said(document: Document, fields: Mapping[str, str]) -> dict[str, Any]:
    """Each attribute that a document of plain fields speaks of, with its value."""
    found = {attribute: _found(document, path.split(".")) for attribute, path in fields.items()}
    return {attribute: value for attribute, (is_there, value) in found.items() if is_there}


def said_by_debezium(message: Document, fields: Mapping[str, str]) -> dict[str, Any]:
    """The same of a message of Debezium, with or without its schema around it; what it could not tell is not there."""
    inside = message["payload"] if {"schema", "payload"} <= set(message) else message
    image = inside.get("after") or {}
    return {} if inside.get("op") == "d" else said({name: value for name, value in image.items() if not _is_unavailable(value)}, fields)


def said_by_goldengate(message: Document, fields: Mapping[str, str]) -> dict[str, Any]:
    """The same of a message of GoldenGate; a column whose flag says that it is missing is not there, nor is the flag."""
    image = message.get("after") or {}
    missing = {name.removesuffix(_FLAG) for name, value in image.items() if name.endswith(_FLAG) and str(value).lower() == "true"}
    sent = {name: value for name, value in image.items() if not name.endswith(_FLAG) and name not in missing}
    return {} if message.get("op_type") == "D" else said(sent, fields)


def _found(document: Document, names: list[str]) -> tuple[bool, Any]:
    """Whether anything is said under these names, and what."""
    whole = ".".join(names)
    if whole in document:
        return True, document[whole]
    here: Any = document
    for name in names:
        here = _opened(here)
        if here is None:
            return True, None
        if not isinstance(here, Mapping) or name not in here:
            return False, None
        here = here[name]
    return True, here


def _opened(value: Any) -> Any:  # noqa: ANN401  (whatever a document holds)
    """The object in a text; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        inside = json.loads(value)
    except ValueError:
        return value
    return inside if isinstance(inside, Mapping) else value


def _is_unavailable(value: Any) -> bool:  # noqa: ANN401  (whatever a document holds)
    return isinstance(value, str) and value in UNAVAILABLE
