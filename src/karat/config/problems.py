"""Problems of a configuration, all at once, each with its place, its value and its remedy."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from karat.errors import ConfigError

LONGEST_VALUE = 80
"""A longer value is cut in messages."""


@dataclass(frozen=True)
class Problem:
    """One problem: where it is, the value found there, and the remedy."""

    file: str
    line: int
    path: str
    message: str
    value: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" + (f" {self.path}" if self.path else "")
        shown = f" (found {self.value})" if self.value else ""
        way_out = f"\n    remedy: {self.remedy}" if self.remedy else ""
        return f"{where}: {self.message}{shown}{way_out}"

    def as_record(self) -> dict[str, object]:
        """The problem as JSON-ready values."""
        return asdict(self)


class ConfigProblems(ConfigError):
    """All problems of a project, in the order of files and lines."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda problem: (problem.file, problem.line, problem.path)))
        count = len(self.problems)
        heading = "1 problem" if count == 1 else f"{count} problems"
        super().__init__(f"{heading} in the configuration:\n" + "\n".join(f"  {problem}" for problem in self.problems))


def nearest(name: str, names: Iterable[str]) -> str:
    """The remedy for an unknown name: the closest known one, or all of them."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"choose from: {', '.join(known) or 'none is declared'}"


def shown(value: object) -> str:
    """The value for a message: short, on one line."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
