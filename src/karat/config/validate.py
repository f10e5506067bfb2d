"""Models from plain values; the errors of pydantic become problems with line, path, value and remedy."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from karat.config.document import Document, Place, dotted, scalar
from karat.config.problems import Problem, shown
from karat.config.references import Filled

M = TypeVar("M", bound=BaseModel)

PLAINLY = {
    "string_type": ("this must be text", "put it in quotes"),
    "int_type": ("this must be a whole number", "write digits without quotes"),
    "float_type": ("this must be a number", "write digits without quotes"),
    "bool_type": ("this must be true or false", "write true or false without quotes"),
    "list_type": ("this must be a list", "write [one, two] or a line with - for each"),
    "dict_type": ("this must be a mapping", "write key: value pairs"),
    "model_type": ("this must be a mapping", "write key: value pairs"),
    "too_short": ("this must not be empty", "add at least one"),
    "string_too_short": ("this must not be empty", "write something, or leave the setting out"),
}
"""Messages and remedies for the most frequent errors of pydantic."""

SECRET_WORDS = ("password", "passwd", "pwd", "secret", "token", "credential", "accesskey", "apikey", "privatekey", "authorization", "jaas")
CLOUD_KEYS = ("accountkey", "encryptionkey", "serviceaccountjson")
"""Names under which cloud storage takes its keys, besides the words of every secret."""
NO_SECRETS = re.compile(r"(?:provider(?:\.path)?|endpoint|keyfile|class|enabled|expiration)$", re.IGNORECASE)
"""Settings that speak of a secret without being one, such as fs.s3a.aws.credentials.provider."""
MAY_HOLD_SECRETS = {"connections", "notify", "state", "spark"}
"""Sections in which an unknown setting may hold a secret: its value is not shown."""


def validate(model: type[M], filled: Filled, document: Document) -> tuple[M | None, list[Problem]]:
    """The model, or all problems of the document."""
    try:
        return model.model_validate(filled.value), []
    except ValidationError as failure:
        errors = failure.errors(include_url=False)
    if _converted_references(errors, filled):
        return validate(model, filled, document)
    problems = {
        (problem.line, problem.path): problem for problem in (_problem(error, model, filled, document) for error in reversed(errors))
    }
    return None, list(problems.values())


def _converted_references(errors: list[ErrorDetails], filled: Filled) -> bool:
    """Converts referenced values between text and YAML scalars where the model expects the other. True if any changed."""
    changed = False
    for error in errors:
        place = _place(error["loc"], filled.value)
        value = _at(filled.value, place)
        if place not in filled.places:
            continue
        wanted = json.dumps(value) if error["type"] == "string_type" else scalar(value) if isinstance(value, str) else value
        if type(wanted) is not type(value):
            filled.value = _with(filled.value, place, wanted)
            filled.places.discard(place)
            changed = True
    return changed


def _problem(error: ErrorDetails, model: type[BaseModel], filled: Filled, document: Document) -> Problem:
    place = _place(error["loc"], filled.value)
    context = error.get("ctx", {})
    remedy = str(context.get("remedy", ""))
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        place = (*place, str(error["loc"][-1]))
        message, remedy = "this setting is required", f"add `{error['loc'][-1]}`"
    elif error["type"] == "extra_forbidden":
        message, remedy = "not a setting here", _nearest(str(place[-1]), model, error["loc"], filled.value)
    elif error["type"] in {"union_tag_invalid", "literal_error"}:
        message = "not one of the choices"
        remedy = f"use {context.get('expected_tags') or context.get('expected')}"
    elif error["type"] in PLAINLY:
        message, remedy = PLAINLY[error["type"]]
    elif error["type"] == "union_tag_not_found":
        message, remedy = "`kind` is missing", "add `kind`"
    value = _at(filled.value, place)
    unknown = error["type"] == "extra_forbidden" and place[0] in MAY_HOLD_SECRETS
    hidden = value is None or isinstance(value, dict | list) or is_secret(place) or unknown
    return Problem(document.file, document.line_of(place), dotted(place), message, "" if hidden else shown(value), remedy)


def is_secret(place: Place) -> bool:
    """Whether a value may be a secret, by its name, and must not be shown."""
    return any(_names_a_secret(str(part)) for part in place)


def _names_a_secret(name: str) -> bool:
    letters = re.sub(r"[^a-z]", "", name.lower())
    if any(word in letters for word in (*SECRET_WORDS, *CLOUD_KEYS)):
        return not (name.startswith("spark.") and NO_SECRETS.search(name))
    return ".sas." in name.lower()


def literal_secrets(document: Document) -> Iterator[Problem]:
    """Settings in options, conf and headers with the name of a secret and a literal value."""
    for place in document.lines:
        owner, name = place[:-1], place[-1]
        value = _at(document.value, place)
        if owner and owner[-1] in {"options", "conf", "headers"} and is_secret((name,)) and not isinstance(value, dict):
            message, remedy = "a secret may not be written into a file of the project", "refer to it: {env: NAME} or {file: path}"
            yield Problem(document.file, document.line_of(place), dotted(place), message, remedy=remedy)


def _nearest(name: str, model: type[BaseModel], loc: tuple[int | str, ...], value: object) -> str:
    """The remedy for an unknown setting: the closest one that exists there, or all of them."""
    names = sorted(_setting_names(model, loc[:-1], value))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else f"the settings here are {', '.join(names)}"


def _setting_names(model: type[BaseModel], loc: tuple[int | str, ...], value: object) -> set[str]:
    models: list[type[BaseModel]] = [model]
    for part in loc:
        inner = [found for each in models for found in _models_under(each, part)]
        models = inner or models
    present = _at(value, _place(loc, value))
    tag = present.get("kind") if isinstance(present, Mapping) else None
    tagged = [each for each in models if "kind" in each.model_fields and tag in get_args(each.model_fields["kind"].annotation)]
    return {name for each in tagged or models for name in each.model_fields}


def _models_under(model: type[BaseModel], part: int | str) -> Iterator[type[BaseModel]]:
    """The models that a field can hold; a list index or a key of a mapping stays in its field's models."""
    field = model.model_fields.get(str(part))
    if field is not None:
        yield from _models_in(field.annotation)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _place(loc: tuple[int | str, ...], value: object) -> Place:
    """Pydantic's location without the names of union branches, which the document does not have."""
    place: list[str | int] = []
    for part in loc:
        inside = (isinstance(value, dict) and part in value) or (isinstance(value, list) and isinstance(part, int) and part < len(value))
        if inside:
            place.append(part)
            value = value[part]  # type: ignore[index]
    return tuple(place)


def _at(value: object, place: Place) -> object:
    for part in place:
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def _with(value: object, place: Place, new: object) -> object:
    if not place:
        return new
    if isinstance(value, dict):
        return {key: _with(item, place[1:], new) if key == place[0] else item for key, item in value.items()}
    if isinstance(value, list):
        return [_with(item, place[1:], new) if index == place[0] else item for index, item in enumerate(value)]
    return value
