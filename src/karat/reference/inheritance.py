"""Complete states from partial statements: an attribute that is not asserted is inherited, or unknown.

It is inherited from the last statement of the same source that asserts it, else from the last one of any source. A delete
ends what its source hands on. Only asserted values are handed on, never inherited ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from karat.reference.canonical import attr_hash
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

Asserted = Mapping[str, Statement]
"""Attribute to the statement that last asserted it, with a value or with null."""


def reconstruct(prior: Iterable[Row], arriving: Iterable[Row], schema: EntitySchema) -> list[Row]:
    """The arriving rows in the order given, each with its complete state, `inherited` and `attr_hash`; rows without a key unchanged."""
    arrived = list(arriving)
    inherited_by = {
        (bk, statement.row["statement_hash"]): inherited
        for bk, statements in by_entity([*prior, *arrived], schema).items()
        for statement, inherited in zip(statements, _inherited(statements, schema), strict=True)
        if statement.only_if_live is None  # a presence has the hash of the row it was made from
    }
    return [row if row["bk"] is None else _completed(row, inherited_by[row["bk"], row["statement_hash"]], schema) for row in arrived]


def resolved(statements: Sequence[Statement], schema: EntitySchema) -> list[Statement]:
    """The statements with their complete state: as stored when pinned, inherited again when propagating.

    A delete that follows from a truncate or a snapshot always inherits again.
    """
    result = []
    for statement, inherited in zip(statements, _inherited(statements, schema), strict=True):
        follows, is_partial = statement.only_if_live is True, not _asserted(statement.row).issuperset(schema.attributes)
        again = follows or (is_partial and schema.late_partials == "propagate")
        result.append(replace(statement, row=_completed(statement.row, inherited, schema)) if again else statement)
    return result


def _inherited(statements: Iterable[Statement], schema: EntitySchema) -> list[Asserted]:
    """For each statement the statements it inherits from, by attribute; unknown attributes are left out."""
    memory: dict[str, dict[str, Statement]] = {}
    result: list[Asserted] = []
    for statement in statements:
        asserted = _asserted(statement.row)
        origins = {name: _origin(memory, statement.source, name) for name in schema.attributes if name not in asserted}
        result.append({name: origin for name, origin in origins.items() if origin is not None})
        own = memory.setdefault(statement.source, {})
        if is_delete(statement.row):
            own.clear()
        else:
            own.update(dict.fromkeys(asserted, statement))
    return result


def _origin(memory: Mapping[str, Asserted], source: str, name: str) -> Statement | None:
    """The statement that a statement of the source inherits the attribute from."""
    own = memory.get(source, {}).get(name)
    of_any = (asserted[name] for asserted in memory.values() if name in asserted)
    return own or max(of_any, key=lambda statement: statement.order, default=None)


def _completed(row: Row, inherited_from: Asserted, schema: EntitySchema) -> Row:
    """The row with every attribute: asserted, inherited, or null."""
    said = {name: row.get(name) for name in _asserted(row)}
    inherited = {name: origin.row.get(name) for name, origin in inherited_from.items()}
    state = {name: (said if name in said else inherited).get(name) for name in schema.attributes}
    origins = {
        name: {"source_system": origin.source, "source_event_ts": origin.at, "record_hash": origin.row["record_hash"]}
        for name, origin in inherited_from.items()
    }
    return {**row, **state, "inherited": origins, "attr_hash": attr_hash(state, schema, deleted=is_delete(row))}


def _asserted(row: Row) -> frozenset[str]:
    return frozenset(row["asserted_columns"] or ())
