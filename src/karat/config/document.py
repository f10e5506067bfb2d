"""Plain values from YAML and JSON text, with the line of each.

The text is not trusted: size, depth, aliases and the number of values are capped, tags are refused, and a key
written twice is a problem, not silently the last one. Scalars follow YAML 1.2 (`no` is a word, `12:30:00`
is text, dates stay text), so that a source system called NO does not become false.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from karat.config.problems import Problem

MOST_BYTES = 1_048_576
MOST_DEPTH = 40
MOST_ALIASES = 200
MOST_VALUES = 200_000

_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
"""A surrogate pair: one character in JSON, but not in YAML."""

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """One mapping of a file, with the line of every value in it."""

    file: str
    line: int
    value: dict[str, object]
    lines: dict[Place, int] = field(repr=False)

    def line_of(self, place: Place) -> int:
        """The line of `place`, or of the deepest value above it that exists."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, self.line)


class Unreadable(Exception):
    """The text of a file is not valid; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _PlainLoader(yaml.CSafeLoader):  # type: ignore[misc,unused-ignore]
    """SafeLoader with the scalars of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (PyYAML reads it from the class)


_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))
_PlainLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?$"),
    list("-+0123456789."),
)
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"])


def scalar(text: str) -> object:
    """The text as a YAML scalar: number, true/false, null or text."""
    loader = _PlainLoader(text)
    try:
        node = loader.get_single_node()
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        return yaml.constructor.SafeConstructor().construct_object(node) if plain else text
    except yaml.YAMLError:
        return text
    finally:
        loader.dispose()  # type: ignore[no-untyped-call,unused-ignore]


def read_documents(text: str, file: str) -> list[Document]:
    """The mappings of one file; raises `Unreadable` with the first problem of its text."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Unreadable(Problem(file, 1, "", f"the file is larger than {MOST_BYTES} bytes", remedy="divide it into several files"))
    if file.endswith(".json"):
        text = _checked_json(text, file)
    try:
        _check_shape(text, file)
        nodes = list(yaml.compose_all(text, Loader=_PlainLoader))
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark or broken.context_mark
        line = mark.line + 1 if mark else 1
        message = f"not valid YAML: {broken.problem or broken.context}"
        raise Unreadable(Problem(file, line, "", message, remedy="mend the syntax at this line")) from None
    except yaml.YAMLError as broken:
        raise Unreadable(Problem(file, 1, "", f"not valid YAML: {broken}", remedy="mend the syntax")) from None
    return [_document(node, file) for node in nodes if not _is_empty(node)]


def _checked_json(text: str, file: str) -> str:
    """JSON is checked as JSON, then read as the YAML it is; tabs, legal only between its tokens, become spaces."""
    try:
        json.loads(text)
    except json.JSONDecodeError as broken:
        raise Unreadable(Problem(file, broken.lineno, "", f"not valid JSON: {broken.msg}", remedy="mend the syntax at this line")) from None
    except RecursionError:
        raise Unreadable(Problem(file, 1, "", "nested too deeply", remedy=f"keep to {MOST_DEPTH} levels")) from None
    return _SURROGATES.sub(lambda pair: pair[1] + json.loads(f'"{pair[2]}"'), text.replace("\t", " "))


def _check_shape(text: str, file: str) -> None:
    """Checks depth and aliases on the flat event stream, before anything recursive reads the text."""
    depth = aliases = 0
    for event in yaml.parse(text, Loader=_PlainLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            aliases += 1
        if depth > MOST_DEPTH or aliases > MOST_ALIASES:
            what = f"nested more than {MOST_DEPTH} levels deep" if depth > MOST_DEPTH else f"more than {MOST_ALIASES} aliases"
            raise Unreadable(Problem(file, event.start_mark.line + 1, "", what, remedy="write it out more plainly"))


def _is_empty(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _document(node: yaml.Node, file: str) -> Document:
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        raise Unreadable(Problem(file, line, "", "a declaration is a mapping", remedy="begin with `kind: …`"))
    reader = _Reader(file)
    value = reader.mapping(node, ())
    return Document(file, line, value, reader.lines)


class _Reader:
    """Values from nodes, with the line of each place; the number of values is limited, because aliases can multiply."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[Place, int] = {}
        self._seen = 0
        self._construct = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, place: Place) -> object:
        self._seen += 1
        if self._seen > MOST_VALUES or len(place) > MOST_DEPTH:
            raise self._problem(node, place[:MOST_DEPTH], "too many values (aliases of aliases?)", "write it out more plainly")
        if node.tag.rpartition(":")[2] not in {"null", "bool", "int", "float", "str", "map", "seq"}:
            raise self._problem(node, place, f"the tag {node.tag!r} is not allowed", "write a plain value")
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            items = []
            for index, item in enumerate(node.value):
                self.lines[(*place, index)] = item.start_mark.line + 1
                items.append(self.value(item, (*place, index)))
            return items
        value: object = self._construct.construct_object(node)
        return value

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in self._pairs(node):
            key = self._key(key_node, place)
            if key in result:
                raise self._problem(key_node, (*place, key), f"the key {key!r} is written twice", "keep one of them")
            self.lines[(*place, key)] = key_node.start_mark.line + 1
            result[key] = self.value(value_node, (*place, key))
        return result

    def _pairs(self, node: yaml.MappingNode, depth: int = 0) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """The mapping's own pairs, then those that `<<` merges in and that it does not have itself."""
        if depth > MOST_DEPTH:
            raise self._problem(node, (), "mappings merged into themselves", "write it out more plainly")
        own = [(key, value) for key, value in node.value if key.tag != "tag:yaml.org,2002:merge"]
        yield from own
        said = {key.value for key, _ in own}
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                continue
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                for pair in self._pairs(merged, depth + 1) if isinstance(merged, yaml.MappingNode) else ():
                    if pair[0].value not in said:
                        said.add(pair[0].value)
                        yield pair

    def _key(self, node: yaml.Node, place: Place) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._problem(node, place, "a key must be a word", "put it in quotes")
        return str(node.value)

    def _problem(self, node: yaml.Node, place: Place, message: str, remedy: str) -> Unreadable:
        return Unreadable(Problem(self.file, node.start_mark.line + 1, dotted(place), message, remedy=remedy))


def dotted(place: Place) -> str:
    """`("tables", 0, "scd_type")` as `tables[0].scd_type`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
