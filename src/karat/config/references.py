"""Values with `${env:NAME}`, `${env:NAME:-default}` and `${var:name}` replaced.

`${workspace.…}` and `${lake}` stay: the declaration that uses them replaces them.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from karat.config.document import Document, Place, dotted
from karat.config.problems import Problem

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_ENVIRONMENT = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_VARIABLE = re.compile(r"var:([A-Za-z_][A-Za-z0-9_.-]*)")
_REPLACED_LATER = re.compile(r"workspace\.(?:file_path|root_path)|lake")

Vars = Mapping[str, object]


@dataclass
class Filled:
    """A document's value with its references replaced, and the places where they were."""

    value: object = None
    places: set[Place] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def fill(document: Document, variables: Vars) -> Filled:
    """The document with every reference replaced; what cannot be resolved is a problem at its line."""
    filled = Filled()
    filled.value = _filled(document.value, (), document, variables, filled)
    return filled


def _filled(value: object, place: Place, document: Document, variables: Vars, into: Filled) -> object:
    if isinstance(value, dict):
        return {key: _filled(item, (*place, key), document, variables, into) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, (*place, index), document, variables, into) for index, item in enumerate(value)]
    if not isinstance(value, str) or "${" not in value:
        return value
    into.places.add(place)
    whole = _REFERENCE.fullmatch(value)
    if whole and (name := _VARIABLE.fullmatch(whole[1])) and name[1] in variables:
        return variables[name[1]]

    def replace(match: re.Match[str]) -> str:
        resolved = _resolve(match[1], variables)
        if isinstance(resolved, str):
            return resolved
        into.problems.append(Problem(document.file, document.line_of(place), dotted(place), resolved[0], match[0], resolved[1]))
        return match[0]

    return _REFERENCE.sub(replace, value)


def _resolve(reference: str, variables: Vars) -> str | tuple[str, str]:
    """The text that replaces a reference, or the problem with it and the remedy."""
    if name := _ENVIRONMENT.fullmatch(reference):
        value = os.environ.get(name[1])
        if value:
            return value
        return (
            name[2]
            if name[2] is not None
            else (f"the environment variable {name[1]} is not set", f"set it, or write ${{env:{name[1]}:-default}}")
        )
    if name := _VARIABLE.fullmatch(reference):
        known = ", ".join(sorted(variables)) or "none"
        return (
            str(variables[name[1]])
            if name[1] in variables
            else (f"the variable {name[1]} has no value", f"add it under vars in karat.yml or give --var {name[1]}=…; known: {known}")
        )
    if _REPLACED_LATER.fullmatch(reference):
        return f"${{{reference}}}"
    return "this reference is not known", "use ${env:NAME}, ${env:NAME:-default} or ${var:name}"
