"""The history of one entity, computed from its evidence by the reference: its statements and its versions. No JVM."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from karat.config.resolved import Belief, Config, Entity
from karat.config.star import Star
from karat.errors import ConfigError
from karat.inspect.rows import Row, exists, literal, rows_where
from karat.reference import EntitySchema, order_key, timeline
from karat.reference.canonical import canonical

LATE = "late"
"""A column added to a statement: whether a later one had arrived in an earlier run."""


@dataclass(frozen=True)
class History:
    """The statements about one entity, and the versions that follow from them."""

    entity: str
    key: Mapping[str, str]
    statements: tuple[Row, ...]
    """Assertions in the order of their valid time, source-level statements included."""
    versions: tuple[Row, ...]


def history(config: Config, name: str, key: Mapping[str, object] | str) -> History:
    """The history of the entity with this key; without statements if there is no evidence about it."""
    entity = entity_named(config, name)
    values = key_values(entity, key)
    schema = schema_of(entity)
    concerned = evidence_of(config, entity, values)
    ordered = sorted(concerned, key=_in_order)
    versions = timeline([ready(row) for row in concerned if row["time_basis"] is not None], schema)
    return History(entity.name, values, tuple(_with_lateness(ordered)), tuple(dict(row) for row in versions))


def entity_named(config: Config, name: str) -> Entity:
    """The entity by its own name, or by its table's."""
    found = {entity.name: entity for entity in config.entities}
    return found.get(name.removeprefix("bronze.")) or _unknown("entity", "entities", name, found)


def belief_named(config: Config, name: str) -> Belief:
    """The belief by its own name, or by its table's."""
    found = {belief.name: belief for belief in config.beliefs}
    return found.get(name.removeprefix("silver.")) or _unknown("belief", "beliefs", name, found)


def star_named(config: Config, name: str) -> Star:
    """The dimension, fact or bridge by its own name, or by its table's."""
    found = {star.name: star for star in config.star}
    return found.get(name.removeprefix("gold.")) or _unknown("dimension, fact or bridge", "tables of the star", name, found)


def evidence_of(config: Config, entity: Entity, values: Mapping[str, str]) -> list[Row]:
    """All assertions about the key, and the source-level statements of their sources."""
    if not exists(config, entity.assertions):
        return []
    found = rows_where(config, entity.assertions, f"bk = {literal(bk_of(entity, values))} OR bk IS NULL")
    sources = {row["source_system"] for row in found if row["bk"] is not None}
    return [row for row in found if row["bk"] is not None or row["source_system"] in sources]


def key_values(entity: Entity, key: Mapping[str, object] | str) -> dict[str, str]:
    """`C123`, or `branch=12,number=7` for a key of several columns, by column."""
    if isinstance(key, str):
        parts = [part.partition("=") for part in key.split(",")] if len(entity.key) > 1 else [(entity.key[0], "=", key)]
        prefix = f"{entity.key[0]}="
        if len(entity.key) == 1 and key.startswith(prefix):
            parts = [(entity.key[0], "=", key.removeprefix(prefix))]
        key = {name.strip(): value for name, _, value in parts}
    if set(key) != set(entity.key):
        message = f"the key of {entity.name} is {', '.join(entity.key)}"
        raise ConfigError(message, remedy="give it as " + ",".join(f"{name}=VALUE" for name in entity.key))
    return {name: str(key[name]) for name in entity.key}


def bk_of(entity: Entity, values: Mapping[str, str]) -> str:
    """The key as the evidence writes it."""
    types = entity.declared.key
    texts = [canonical(_typed(values[name], types[name]), types[name]) for name in entity.key]
    return "|".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in texts)


def schema_of(entity: Entity) -> EntitySchema:
    """The entity's schema for the reference."""
    declared = entity.declared
    return EntitySchema(
        entity.key, entity.attributes, dict(declared.attributes), frozenset(declared.untracked), declared.type, declared.late_partials
    )


def _unknown(one: str, several: str, name: str, known: Iterable[str]) -> NoReturn:
    message = f"there is no {one} {name!r}"
    raise ConfigError(message, remedy=f"the {several} are: {', '.join(known) or 'none is declared'}")


def _typed(value: str, kind: str) -> Any:  # noqa: ANN401  (a key's own type)
    plain = kind.lower().partition("(")[0]
    if plain in {"tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"}:
        try:
            return int(value)
        except ValueError:
            message = f"{value!r} is not a {kind}"
            raise ConfigError(message, remedy="give the key in its own type") from None
    return value


def ready(row: Row) -> Row:
    """The row as the reference expects it: hashes as bytes, missing maps and lists empty."""
    changed = {name: bytes(value) for name, value in row.items() if isinstance(value, bytearray | memoryview)}
    return {**row, **changed, "inherited": row["inherited"] or {}, "asserted_columns": row["asserted_columns"] or []}


def _in_order(row: Row) -> tuple[Any, ...]:
    return (row["time_basis"] is None, order_key(row) if row["time_basis"] is not None else (str(row["ingest_ts"]),))


def _with_lateness(ordered: Sequence[Row]) -> list[Row]:
    """The rows, each with `late`: a later statement had arrived in an earlier run. Copies are never late."""
    earliest = None
    first_arrivals = _first_arrivals(ordered)
    marked: list[Row] = []
    for row in reversed(ordered):
        arrived = row["ingest_ts"]
        is_copy = arrived > first_arrivals[bytes(row["statement_hash"])]
        marked.append({**row, LATE: earliest is not None and arrived > earliest and not is_copy})
        earliest = arrived if earliest is None else min(earliest, arrived)
    return marked[::-1]


def _first_arrivals(rows: Sequence[Row]) -> dict[bytes, Any]:
    """Statement hash to the time of its first arrival."""
    found: dict[bytes, Any] = {}
    for row in rows:
        said = bytes(row["statement_hash"])
        found[said] = min(row["ingest_ts"], found.get(said, row["ingest_ts"]))
    return found
