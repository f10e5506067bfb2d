"""Evidence and conflicts on disk without Spark: rows of the reference as Delta tables, for commands that start no JVM."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from deltalake import CommitProperties, QueryBuilder, write_deltalake

from karat.config.load import load
from karat.inspect.history import schema_of
from karat.reference import Row, conflicts
from karat.state.commits import Commit
from tests.support.entities import CUSTOMER, entity_project
from tests.support.projects import lake_path
from tests.unit.reference.histories import assertions, digest, lines

TEXT, WHEN, BYTES, WHOLE, FLAG = "text", "when", "bytes", "whole", "flag"
WHOSE = {"source_system": TEXT, "source_event_ts": WHEN, "record_hash": BYTES}
Kind = str | tuple[str, Any]
"""A scalar, `("list", kind)`, `("map", kind)` with texts as keys, or `("struct", {name: kind})`."""
EVIDENCE: dict[str, Kind] = {
    **dict.fromkeys(("source_event_ts", "ingest_ts", "snapshot_ts"), WHEN),
    **dict.fromkeys(("sk", "attr_hash", "statement_hash", "record_hash"), BYTES),
    **dict.fromkeys(("precedence_rank", "batch_seq", "copies", "hash_version"), WHOLE),
    "is_deleted": FLAG,
    "asserted_columns": ("list", TEXT),
    "inherited": ("map", ("struct", WHOSE)),
}
SAYS: Kind = ("list", ("struct", {"source_system": TEXT, "value": TEXT, "source_event_ts": WHEN, "record_hash": BYTES, "won": FLAG}))
SAMPLE = {TEXT: "''", WHEN: "'2026-01-01T00:00:00Z'", BYTES: "X'00'", WHOLE: "0", FLAG: "true"}


def believing_project(folder: Path, rules: Sequence[Mapping[str, Any]], **entity: Any) -> Path:  # noqa: ANN401  (whatever an entity has)
    """A project of customers and what is believed of them."""
    entity_project(folder, {**CUSTOMER, **entity})
    declare(folder, rules)
    return folder


def declare(folder: Path, rules: Sequence[Mapping[str, Any]]) -> None:
    declared = {"kind": "belief", "name": "customer", "entity": "customer", "rules": [dict(rule) for rule in rules]}
    (folder / "belief.yml").write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")


def tell(folder: Path, table: str) -> list[Row]:
    """A literal table of statements on record as evidence about customers, a run a line."""
    rows = assertions(lines(table), schema_of(load(folder).entities[0]))
    put(folder, "bronze.customer_assertions", rows, EVIDENCE)
    return rows


def record_conflicts(folder: Path, rows: Sequence[Row], known_at: datetime) -> None:
    """The belief's table of conflicts, as the reference finds them."""
    (belief,) = load(folder).beliefs
    told = []
    for row in conflicts(rows, schema_of(belief.entity), belief.rules, known_at=known_at):
        says = [{**word, "source_event_ts": word["at"]} for word in row["candidates"]]
        told.append({"customer_id": row["customer_id"], "bk": row["bk"], "sk": digest(row["bk"]), **_named(row), "says": says})
    put(folder, "silver.customer_conflicts", told, {"sk": BYTES, "says": SAYS})


def record_rules(folder: Path) -> None:
    """The belief's history as a run leaves it: its last commit tells which rules were used, and what they said."""
    (belief,) = load(folder).beliefs
    used = {str(rule.version): rule.content_hash for rule in belief.rules}
    commit = Commit(str(belief.table), 1, "run-001", "hash", {"batch": 1, "rule": 1, "rules": used})
    put(folder, str(belief.history), [{"bk": "C1"}], {}, commit)


def put(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, Kind], commit: Commit | None = None) -> None:
    """Rows as a table; columns of no given kind are texts."""
    names = list(rows[0]) if rows else ["customer_id", "bk", "attribute", "value", *kinds]
    typed = [(name, kinds.get(name, TEXT)) for name in names]
    # the first line has no rows, only types: a column may be null in every row that follows
    select = [f"SELECT {', '.join(f'{_sample(kind)} AS {_quoted(name)}' for name, kind in typed)} WHERE 1 = 0"]
    select += [f"SELECT {', '.join(f'{_sql(row[name], kind)} AS {_quoted(name)}' for name, kind in typed)}" for row in rows]
    metadata = CommitProperties(custom_metadata={"userMetadata": commit.as_text()}) if commit else None
    found = QueryBuilder().execute(" UNION ALL ".join(select)).read_all()
    write_deltalake(lake_path(folder, name), found, mode="overwrite", commit_properties=metadata)


def _named(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in ("attribute", "value")}


def _sample(kind: Kind) -> str:
    match kind:
        case str():
            return _cast(SAMPLE[kind], kind)
        case ("list", inner):
            return f"make_array({_sample(inner)})"
        case ("map", inner):
            return f"map(make_array(''), make_array({_sample(inner)}))"
        case (_, fields):
            return _struct((name, _sample(inner)) for name, inner in fields.items())


def _sql(value: Any, kind: Kind) -> str:  # noqa: ANN401  (whatever a row holds)
    match kind:
        case _ if value is None or (not value and kind[0] in {"list", "map"}):
            return "NULL"
        case str():
            return _cast(_literal(value), kind)
        case ("list", inner):
            return f"make_array({', '.join(_sql(item, inner) for item in value)})"
        case ("map", inner):
            keys, items = ", ".join(map(_literal, value)), ", ".join(_sql(item, inner) for item in value.values())
            return f"map(make_array({keys}), make_array({items}))"
        case (_, fields):
            return _struct((name, _sql(value[name], inner)) for name, inner in fields.items())


def _literal(value: object) -> str:
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool | int):
        return str(value).lower()
    text = value.isoformat() if isinstance(value, datetime) else str(value)
    return "'" + text.replace("'", "''") + "'"


def _cast(sql: str, kind: str) -> str:
    arrow = {TEXT: "Utf8", WHEN: 'Timestamp(Microsecond, Some("UTC"))', BYTES: "Binary", WHOLE: "Int32", FLAG: "Boolean"}
    return f"arrow_cast({sql}, '{arrow[kind]}')"


def _struct(fields: Iterable[tuple[str, str]]) -> str:
    return f"named_struct({', '.join(f'{_literal(name)}, {sql}' for name, sql in fields)})"


def _quoted(name: str) -> str:
    return '"' + name + '"'
