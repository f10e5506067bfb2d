"""Partial statements made whole: an attribute not said is the source's own last word, else the latest of the others', else unknown.

Only what was asserted is handed on, never what was inherited; and each source is heard only since its own last delete.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from karat.reference.canonical import attr_hash
from karat.reference.schema import EntitySchema, Row
from karat.reference.statements import Statement, by_entity, is_delete

Heard = Mapping[str, Statement]
"""Attribute to the statement that last asserted it, be it a value or a null."""


def reconstruct(prior: Iterable[Row], arriving: Iterable[Row], terms: EntitySchema) -> list[Row]:
    """The arriving rows in the order given, each with its whole state, `inherited` and `attr_hash`; rows without a key as they came."""
    arrived = list(arriving)
    heard_by = {
        (bk, statement.row["statement_hash"]): heard
        for bk, statements in by_entity([*prior, *arrived], terms).items()
        for statement, heard in zip(statements, _heard(statements, terms), strict=True)
        if statement.only_if_live is None  # a presence has the hash of the row it was made from
    }
    return [row if row["bk"] is None else _whole(row, heard_by[row["bk"], row["statement_hash"]], terms) for row in arrived]


def resolved(statements: Sequence[Statement], terms: EntitySchema) -> list[Statement]:
    """The statements with the state each stands for: as stored when pinned, inherited afresh when propagating; a sweep's always afresh."""
    result = []
    for statement, heard in zip(statements, _heard(statements, terms), strict=True):
        is_sweep, is_partial = statement.only_if_live is True, not _asserted(statement.row).issuperset(terms.attributes)
        afresh = is_sweep or (is_partial and terms.late_partials == "propagate")
        result.append(replace(statement, row=_whole(statement.row, heard, terms)) if afresh else statement)
    return result


def _heard(statements: Iterable[Statement], terms: EntitySchema) -> list[Heard]:
    """Per statement: whose word it takes for each attribute it does not assert; nobody's for what is unknown."""
    memory: dict[str, dict[str, Statement]] = {}
    result: list[Heard] = []
    for statement in statements:
        asserted = _asserted(statement.row)
        words = {name: _word(memory, statement.source, name) for name in terms.attributes if name not in asserted}
        result.append({name: word for name, word in words.items() if word is not None})
        own = memory.setdefault(statement.source, {})
        if is_delete(statement.row):
            own.clear()
        else:
            own.update(dict.fromkeys(asserted, statement))
    return result


def _word(memory: Mapping[str, Heard], source: str, name: str) -> Statement | None:
    own = memory.get(source, {}).get(name)
    anybodys = (words[name] for words in memory.values() if name in words)
    return own or max(anybodys, key=lambda word: word.order, default=None)


def _whole(row: Row, heard: Heard, terms: EntitySchema) -> Row:
    """The row with every attribute: what it asserts, what it heard, or null."""
    said = {name: row.get(name) for name in _asserted(row)}
    inherited = {name: word.row.get(name) for name, word in heard.items()}
    state = {name: (said if name in said else inherited).get(name) for name in terms.attributes}
    origins = {
        name: {"source_system": word.source, "source_event_ts": word.at, "record_hash": word.row["record_hash"]}
        for name, word in heard.items()
    }
    return {**row, **state, "inherited": origins, "attr_hash": attr_hash(state, terms, deleted=is_delete(row))}


def _asserted(row: Row) -> frozenset[str]:
    return frozenset(row["asserted_columns"] or ())
