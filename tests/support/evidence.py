"""Evidence written by hand: rows of an assertions table, landed batch by batch in the lake of a project."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from karat.bronze.schema import assertions_schema
from karat.config.rules import Authority, Group, Rule
from karat.state.commits import Commit
from karat.temporal.entity_schema import EntitySchema
from tests.support.histories import FEEDS, RANKS, TYPES, UNTRACKED, Row, as_table
from tests.support.projects import lake_path


def thing_declared(name: str) -> dict[str, Any]:
    """The declaration of an entity that random histories are about; its feeds deliver nothing."""
    feeds = [
        {
            "name": FEEDS[source],
            "source_system": source,
            "precedence_rank": rank,
            "from": {"kind": "files", "path": f"data/{source}/*.json", "format": "json"},
            "load_type": "PARTIAL",
            "event_time": "at",
            "op": "op",
        }
        for source, rank in RANKS.items()
    ]
    return {"kind": "entity", "name": name, "key": ["id"], "attributes": TYPES, "untracked": sorted(UNTRACKED), "feeds": feeds}


def belief_declared(name: str, entity: str, rules: Iterable[Rule]) -> dict[str, Any]:
    """The declaration of a belief with these rules."""
    versions = [
        {
            "version": rule.version,
            "in_force_from": rule.in_force_from.isoformat(),
            "groups": {group: _group(told) for group, told in rule.groups.items()},
            "delete": _decided(rule.delete),
        }
        for rule in rules
    ]
    return {"kind": "belief", "name": name, "entity": entity, "rules": versions}


def land(spark: SparkSession, folder: Path, entity: str, rows: Sequence[Row], schema: EntitySchema) -> None:
    """The rows of one batch appended to the entity's evidence, in a commit that names the batch."""
    (batch,) = {row["batch_seq"] for row in rows}
    commit = Commit(f"bronze.{entity}", batch, f"run-{batch}", "hash", {"feeds": {}})
    beside = folder.with_name(f"{folder.name} evidence")
    beside.mkdir(exist_ok=True)
    frame = as_table(spark, rows, assertions_schema(schema), beside)
    frame.write.format("delta").mode("append").option("userMetadata", commit.as_text()).save(
        lake_path(folder, f"bronze.{entity}_assertions")
    )


def _group(group: Group) -> Mapping[str, Any]:
    return {"attributes": list(group.attributes), "nulls": group.nulls, **_decided(group)}


def _decided(decider: Group | Authority) -> dict[str, Any]:
    return {"by": decider.by, **({} if decider.sources is None else {"sources": dict(decider.sources)})}
