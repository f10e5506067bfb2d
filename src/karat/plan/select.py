"""`--select`: names and patterns of stages; `+` in front adds everything upstream, behind everything downstream."""

import difflib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from karat.errors import ConfigError

Upstream = Mapping[str, frozenset[str]]
"""For each stage the stages it waits for."""


def selected(names: Sequence[str], upstream: Upstream, expressions: Sequence[str]) -> frozenset[str]:
    """The stages that the expressions select; without expressions all. Raises `ConfigError` for one that selects nothing."""
    wanted = [part for expression in expressions for part in expression.replace(",", " ").split()]
    if not wanted:
        return frozenset(names)
    return frozenset().union(*(_matching(names, upstream, expression) for expression in wanted))


def _matching(names: Sequence[str], upstream: Upstream, expression: str) -> frozenset[str]:
    pattern = expression.strip("+")
    found = {name for name in names if fnmatchcase(name, pattern)}
    if not found:
        close = difflib.get_close_matches(pattern, names, n=1)
        message = f"nothing is called {expression!r}"
        raise ConfigError(
            message, remedy=f"did you mean {close[0]}?" if close else f"choose from: {', '.join(names) or 'nothing is declared'}"
        )
    result = set(found)
    if expression.startswith("+"):
        result |= _reached(found, upstream)
    if expression.endswith("+"):
        downstream = {name: frozenset(other for other in names if name in upstream[other]) for name in names}
        result |= _reached(found, downstream)
    return frozenset(result)


def _reached(start: set[str], arrows: Upstream) -> set[str]:
    reached: set[str] = set()
    waiting = list(start)
    while waiting:
        for name in arrows.get(waiting.pop(), frozenset()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return reached
