"""SQL templates in a sandbox: what a template may do is a list of what is allowed, checked on its syntax before it runs.

A template knows `var` (the project's variables), `this` (the target as it is) and `run` (the present run). It may use
conditions, loops over lists that it writes itself, and a few filters. Calls, imports and every other name are refused.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from karat.errors import ConfigError

FILTERS: Final = frozenset(
    {"abs", "default", "first", "float", "int", "join", "last", "length", "lower", "replace", "round", "trim", "upper"}
)
TESTS: Final = frozenset({"boolean", "defined", "divisibleby", "even", "in", "none", "number", "odd", "string", "undefined"})
FIELDS: Final[Mapping[str, frozenset[str] | None]] = {
    "var": None,  # any name that does not begin with an underscore
    "this": frozenset({"name", "exists", "rows"}),
    "run": frozenset({"id", "started_at", "date", "is_first", "is_reload"}),
    "loop": frozenset({"first", "index", "index0", "last", "length"}),
}
"""The names a template may speak of, and what each of them has."""
_ALLOWED: Final = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign, nodes.CondExpr),
    *(nodes.Name, nodes.Getattr, nodes.Const, nodes.List, nodes.Tuple, nodes.Filter, nodes.Test),
    *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Concat, nodes.Add, nodes.Sub, nodes.Neg),
)
_LONGEST: Final = 1_000_000


def template_problem(text: str) -> tuple[str, int] | None:
    """What is wrong with a template, and in which of its lines; None when nothing is."""
    try:
        tree = _environment().parse(text)
    except TemplateSyntaxError as wrong:
        return f"the template does not parse: {wrong.message}", wrong.lineno
    own = {node.name for node in tree.find_all(nodes.Name) if node.ctx == "store"}
    for node in _nodes(tree):
        if (problem := _refusal(node, own)) is not None:
            return problem, node.lineno
    return None


def render(text: str, var: Mapping[str, object], this: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """The SQL of a template. Raises `ConfigError` for what it may not do, or does not find."""
    if (problem := template_problem(text)) is not None:
        message = f"line {problem[1]} of the template: {problem[0]}"
        raise ConfigError(message, remedy=_REMEDY)
    try:
        known = {"var": SimpleNamespace(**var), "this": SimpleNamespace(**this), "run": SimpleNamespace(**run)}
        sql = _environment().from_string(text).render(known)
    except TemplateError as wrong:
        message = f"the template: {wrong}"
        raise ConfigError(message, remedy="add the variable under vars in karat.yml, or give --var name=value") from None
    if len(sql) > _LONGEST:
        message = f"the template makes more than {_LONGEST} characters of SQL"
        raise ConfigError(message, remedy="write the query more plainly")
    return sql


_REMEDY: Final = "a template knows var, this and run, if and for, and these filters: " + ", ".join(sorted(FILTERS))


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
    environment.globals.clear()
    environment.filters = {name: act for name, act in environment.filters.items() if name in FILTERS}
    environment.tests = {name: act for name, act in environment.tests.items() if name in TESTS}
    return environment


def _nodes(node: nodes.Node) -> "list[nodes.Node]":
    return [node, *(found for child in node.iter_child_nodes() for found in _nodes(child))]


def _refusal(node: nodes.Node, own: set[str]) -> str | None:
    """Why this piece of a template is not allowed."""
    match node:
        case nodes.Name(name=name):
            return _refused_name(name, own, is_assigned=node.ctx == "store")
        case nodes.Getattr(node=nodes.Name(name=name), attr=attribute) if name in FIELDS:
            return None if _has(name, attribute) else f"`{name}` has no `{attribute}`"
        case nodes.Getattr(attr=attribute):
            return f"`.{attribute}` is not allowed here"
        case nodes.Filter(name=name) | nodes.Test(name=name) if name not in (FILTERS | TESTS):
            return f"the filter or test `{name}` is not allowed"
    return None if isinstance(node, _ALLOWED) else f"`{type(node).__name__.lower()}` is not allowed in a template"


def _refused_name(name: str, own: set[str], *, is_assigned: bool) -> str | None:
    if name in FIELDS:
        return f"`{name}` is not a name to assign to" if is_assigned else None
    return None if name in own else f"`{name}` is not known in a template"


def _has(name: str, attribute: str) -> bool:
    fields = FIELDS[name]
    return not attribute.startswith("_") if fields is None else attribute in fields
