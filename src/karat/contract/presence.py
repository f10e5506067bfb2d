"""Which attributes a row says something about: what is not in the message is not said, an explicit null is.

A record of JSON shows it by its own fields, at any depth, whatever it is wrapped in (see `field_paths`). An expression over several
fields is said when any of them is. Elsewhere (csv, typed rows, XPath, JSON paths through lists) a null is all there is to see: it is
not said, unless the row's own list (`asserted`) names it.
"""

from collections.abc import Mapping

from karat.config.declared.entity import Feed
from karat.config.resolved import Entity
from karat.contract.computing import field_of, is_path
from karat.contract.drift import declared_names, is_json, is_tabular, joined_names, keeps_undeclared, needs_names
from karat.contract.expressions import Expression
from karat.contract.field_paths import NAMED
from karat.contract.incoming import Incoming
from karat.contract.meaning import LISTED, LOAD_TYPE, OP
from karat.contract.reading import Reading
from karat.contract.wanted import Wanted, wanted_columns
from karat.sources.raw import FIELDS_TYPE, ROW, text_of
from karat.temporal.columns import quoted
from karat.temporal.sql import Sql, literal, some, texts

UNDECLARED = "__karat_undeclared"
"""Working: map from each field of the record that nobody declared to its text."""

FIELD_LIST = "__karat_field_list"
"""Working: the names of the record's fields as one text; null where no policy needs them."""


def carried(name: str) -> str:
    """Working: whether the record's own fields say something about an attribute."""
    return f"__karat_carried_{name}"


def there(name: str) -> str:
    """Working: whether the record has a column that a key column or attribute is made of."""
    return f"__karat_there_{name}"


def from_fields(entity: Entity, feed: Feed, columns: Incoming) -> Mapping[str, Sql]:
    """What must be taken from a record's fields besides its values: working column to expression, and only what somebody uses."""
    found: dict[str, Sql] = {}
    for name, expression in wanted_columns(entity, feed).items():
        said = said_by_fields(expression, columns, feed)
        if name in entity.attributes and feed.load_type != "FULL" and said is not None:
            found[carried(name)] = said
        if has_header(columns, feed) and (fields := columns.paths(expression)):
            found[there(name)] = some(columns.field(parts).is_there for parts in fields)
    if keeps_undeclared(feed) and feed.drift.new_columns != "ignore":
        found[UNDECLARED] = _undeclared(declared_names(entity, feed), columns)
    if needs_names(feed):
        found[FIELD_LIST] = joined_names(f"map_keys({NAMED})" if columns.types is None else texts(columns.names))
    return found


def said_by_fields(expression: Expression, columns: Incoming, feed: Feed) -> Sql | None:
    """Whether the record's own fields say something under a setting; None where they do not tell."""
    if is_path(expression, feed):
        path = field_of(expression, columns, feed)
        return None if path is None else path.is_said
    if columns.types is not None or not (feed.is_change_stream or is_json(feed)):
        return None
    used = columns.paths(expression)
    if not used:
        return None if feed.envelope == "payload" else "true"
    return some(columns.is_said(parts) for parts in used)


def has_header(columns: Incoming, feed: Feed) -> bool:
    """Whether each record has the columns of its file's header, which may differ from file to file."""
    return columns.types is None and is_tabular(feed) and not is_json(feed)


def says(reading: Reading, name: str) -> Sql:
    """Whether a row says something about an attribute, be it null; one that tells that something is gone says nothing else."""
    if name in reading.drift.unsaid:  # the source has no such column at all: it cannot mean null by that
        return "false"
    feed, expression = reading.feed, reading.wanted[name]
    complete = quoted(there(name)) if has_header(reading.columns, feed) and reading.columns.paths(expression) else "true"
    named = f"{reading.value(name)} IS NOT NULL"
    if said_by_fields(expression, reading.columns, feed) is not None and feed.load_type != "FULL":
        named = quoted(carried(name))
    if reading.wants("asserted"):
        named = f"if({LISTED} IS NOT NULL, {_is_listed(reading, name)}, {named})"
    said = {"FULL": complete, "PARTIAL": named, None: named}.get(feed.load_type if isinstance(feed.load_type, str | None) else "by row")
    if said is None:
        said = f"if(coalesce({LOAD_TYPE} = 'FULL', false), {complete}, {named})"
    return f"NOT coalesce({OP} IN ('d', 't'), false) AND coalesce({said}, false)"


def lacking(entity: Entity, feed: Feed, columns: Incoming, wanted: Wanted) -> Sql | None:
    """The columns a record lacks although they are declared, as one text, empty for none; None where a header does not tell."""
    if not has_header(columns, feed):
        return None
    made_of = {name: columns.paths(wanted[name]) for name in (*entity.key, *entity.attributes)}
    made_of = {name: paths for name, paths in made_of.items() if paths}
    names = (f"if({quoted(there(name))}, NULL, {literal(', '.join(parts[0] for parts in paths))})" for name, paths in made_of.items())
    listed = f"concat_ws(', ', {', '.join(names)})" if made_of else "''"
    if feed.op is None and feed.delete_when is None:
        return listed
    # a stream of complete rows may well bring nothing but deletes, which carry the key alone
    has_key = " AND ".join(quoted(there(name)) for name in entity.key if name in made_of) or "true"
    has_more = some(quoted(there(name)) for name in entity.attributes if name in made_of)
    return f"if({has_key} AND NOT ({has_more}), '', {listed})"


def _is_listed(reading: Reading, attribute: str) -> Sql:
    """By the attribute's name, or by that of a column it is made of."""
    names = {attribute.lower(), *(name.lower() for name in reading.columns.referenced(reading.wanted[attribute]))}
    return f"arrays_overlap({LISTED}, {texts(sorted(names))})"


def _undeclared(declared: tuple[str, ...], columns: Incoming) -> Sql:
    if columns.types is None:
        return f"map_filter({NAMED}, (name, value) -> name NOT IN ({', '.join(map(literal, declared))}))"
    used = {name.lower() for name in declared}
    parts = [(name, text_of(f"{ROW}.{quoted(name)}", kind)) for name, kind in columns.types.items() if name.lower() not in used]
    entries = ", ".join(f"{literal(name)}, {text}" for name, text in parts)
    return f"map({entries})" if entries else f"CAST(map() AS {FIELDS_TYPE.simpleString()})"
