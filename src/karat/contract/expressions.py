"""What a feed's settings say about columns, understood without a parser: which columns an expression speaks of.

upper(stat)                              stat
coalesce(`first name`, "n/a")            first name      (a text in quotes is no column)
cast(amount as decimal(10,2))            amount          (nor is a type, a function, a word of SQL)
case when kind = 'x' then price end      kind, price
transform(tags, tag -> upper(tag))       tags            (nor the variable of a lambda)
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from karat.temporal.columns import quoted

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<text>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?"(?:[^"\\]|\\.|"")*")
      | (?P<name>(?:`(?:[^`]|``)*`|[^\W\d]\w*)(?:\s*\.\s*(?:`(?:[^`]|``)*`|\w+))*)
      | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*)
      | (?P<arrow>->)
      | (?P<double>::)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_PART: Final = re.compile(r"`((?:[^`]|``)*)`|(\w+)")
_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """all and any array as asc between both by case cast collate current_catalog current_database current_date current_schema
        current_time current_timestamp current_user desc distinct div else end escape exists false from ilike in interval is leading
        like localtimestamp not null nulls or over partition regexp rlike session_user some then trailing true try_cast unknown when
        with""",
    )
)
"""Words of SQL that are no columns unless they stand alone or in backticks."""
_CONSTANTS: Final = frozenset(word for word in _WORDS if word.startswith("current_")) | {
    "false",
    "localtimestamp",
    "null",
    "session_user",
    "true",
}
"""Words that stand for a value of their own even when nothing else is there."""
_BETWEEN: Final = frozenset(
    ["and", "as", "between", "div", "else", "end", "from", "ilike", "in", "is", "like", "or", "over", "regexp", "then", "when"]
)
"""Words that no SQL expression begins with."""
_COMPACT: Final = re.compile(r"[^\W\d]\w*(?:[-/#@:?%&+]\w+)+")
_JSON_PATH: Final = re.compile(r"\$(?:\.[^.\[\]*'\"\s]+|\['[^'\]*]+'\])+")
_JSON_STEP: Final = re.compile(r"\.([^.\[]+)|\['([^']+)'\]")
_UNITS: Final = re.compile(r"(?:year|quarter|month|week|day|hour|minute|second|millisecond|microsecond)s?", re.IGNORECASE)


@dataclass(frozen=True)
class Expression:
    """A setting that names a column or computes one."""

    setting: str
    """Where it stands, for people: `event_time`, `map.status`."""
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The names it consists of, when it is a column and nothing else: one, or several with dots between them."""
        tokens = _tokens(self.text)
        if len(tokens) != 1 or tokens[0][0] != "name" or tokens[0][1].lower() in _CONSTANTS:
            return ()
        return tuple(_parts(tokens[0][1]))

    @property
    def references(self) -> tuple[tuple[str, ...], ...]:
        """What it speaks of, in order of appearance: a name, or of `a.b` the whole and the first part, since either may be the column."""
        return references(self.text)

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The same, each as the names between its dots."""
        return paths(self.text)

    @property
    def is_path(self) -> bool:
        """Whether it is a path into a document, JSON path or XPath, rather than SQL."""
        return self.text.strip().startswith(("$", "/"))

    @property
    def is_no_sql(self) -> bool:
        """Whether it can only be a column's name: `the id` would be SQL for a column under another name, which nobody means here."""
        tokens = _tokens(self.text)
        words = [text.lower() for kind, text in tokens if kind == "name"]
        if len(words) != len(tokens) or len(words) < 2:  # noqa: PLR2004  (one word is a column in any case)
            return False
        in_a_row = any(first not in _WORDS and second not in _WORDS for first, second in pairwise(words))
        return in_a_row or words[0] in _BETWEEN

    @property
    def may_be_a_name(self) -> bool:
        """Whether only the records can tell if it is a column's name or SQL: `e-mail`."""
        return _COMPACT.fullmatch(self.text.strip()) is not None

    def quoting(self, names: Collection[str]) -> str:
        """Its text with every `a.b` that is the name of a column in backticks, so that SQL takes it for one."""
        return "".join(_quoted(kind, text, names) for kind, text in _tokens(self.text, spaces=True))


def references(text: str) -> tuple[tuple[str, ...], ...]:
    """The names in a SQL expression that can be columns."""
    return tuple(dict.fromkeys(parts if len(parts) == 1 else (".".join(parts), parts[0]) for parts in paths(text)))


def paths(text: str) -> tuple[tuple[str, ...], ...]:
    """The fields in a SQL expression that can be columns or stand inside one, each as the names between its dots."""
    tokens = _tokens(text)
    bound, types = _lambda_variables(tokens), _type_places(tokens)
    found = [_parts_at(tokens, place) for place in range(len(tokens)) if place not in types]
    return tuple(dict.fromkeys(parts for parts in found if parts and parts[0] not in bound))


def json_path(text: str) -> tuple[str, ...]:
    """The names of a JSON path that goes through objects alone: `$.a['b c'].d`; empty for any other."""
    if not _JSON_PATH.fullmatch(text.strip()):
        return ()
    return tuple(plain or quoted for plain, quoted in _JSON_STEP.findall(text.strip()[1:]))


Token = tuple[str, str]


def _tokens(text: str, *, spaces: bool = False) -> list[Token]:
    return [(str(found.lastgroup), found[0]) for found in _TOKEN.finditer(text) if spaces or found.lastgroup != "space"]


def _parts(name: str) -> list[str]:
    return [inside.replace("``", "`") if inside else plain for inside, plain in _PART.findall(name)]


def _quoted(kind: str, text: str, names: Collection[str]) -> str:
    parts = _parts(text) if kind == "name" else []
    return quoted(".".join(parts)) if len(parts) > 1 and ".".join(parts) in names else text


def _parts_at(tokens: list[Token], place: int) -> tuple[str, ...]:
    """The names of the field that a token can be."""
    kind, text = tokens[place]
    if kind != "name" or (not text.startswith("`") and not _is_column(tokens, place)):
        return ()
    return tuple(_parts(text))


def _is_column(tokens: list[Token], place: int) -> bool:
    text = tokens[place][1]
    before = tokens[place - 1] if place else ("start", "")
    after = tokens[place + 1] if place + 1 < len(tokens) else ("end", "")
    if len(tokens) == 1:
        return text.lower() not in _CONSTANTS
    is_call = after[1] == "("
    is_literal = after[0] == "text" and text.lower() in {"date", "timestamp", "timestamp_ntz", "timestamp_ltz", "x", "time"}
    is_unit = bool(_UNITS.fullmatch(text)) and (
        before[0] in {"number", "text"} or after[1].lower() in {"from", "to"} or before[1].lower() == "to"
    )
    return not (is_call or is_literal or is_unit or text.lower() in _WORDS)


def _lambda_variables(tokens: list[Token]) -> frozenset[str]:
    """Names bound by `x -> …` and `(x, y) -> …`."""
    bound: set[str] = set()
    for place, (kind, _) in enumerate(tokens):
        if kind != "arrow":
            continue
        start = place - 1
        if tokens[start][1] == ")":
            while start and tokens[start][1] != "(":
                start -= 1
        bound.update(_parts(text)[0] for kind_, text in tokens[start:place] if kind_ == "name")
    return frozenset(bound)


def _type_places(tokens: list[Token]) -> frozenset[int]:
    """Where types stand: after `as` and `::`, until a comma or bracket that they did not open."""
    places: set[int] = set()
    for start, (kind, text) in enumerate(tokens):
        if kind != "double" and text.lower() != "as":
            continue
        depth = 0
        for place in range(start + 1, len(tokens)):
            sign = tokens[place][1]
            depth += (sign in {"<", "("}) - (sign in {">", ")"})
            if (
                depth < 0
                or (depth == 0 and sign == ",")
                or (kind == "double" and depth == 0 and place > start + 1 and sign not in {">", ")"})
            ):
                break
            places.add(place)
    return frozenset(places)
