"""An entity with more attributes than Delta notes bounds of: files still say which times and keys they hold, and can be laid out."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from karat import Project
from tests.support.entities import CRM, drop, entity_project, held
from tests.support.projects import lake_path

NAMES = [f"attribute_{number:02d}" for number in range(1, 41)]
WIDE = {"kind": "entity", "name": "wide", "key": ["id"], "attributes": dict.fromkeys(NAMES, "string"), "feeds": [CRM]}


def test_files_of_a_wide_entity_can_stay_unopened_and_be_laid_out(spark: SparkSession, tmp_path: Path) -> None:
    folder = entity_project(tmp_path, WIDE)
    project = Project.open(folder, spark)
    for day in (1, 2):
        said = {"op": "u", "source_event_ts": f"2026-03-0{day}", **{name: f"{name} on day {day}" for name in NAMES}}
        drop(folder, f"crm/{day}.ndjson", [{"id": "a", **said}, {"id": "b", **said}])
        assert project.run().ok
    assert _bounded(folder, "bronze.wide_assertions") == {"bk", "source_event_ts", "ingest_ts", "batch_seq"}
    assert _bounded(folder, "bronze.wide") == {"bk", "effective_from", "effective_to", "source_effective_to"}
    assert [chore.table for chore in project.maintain("apply") if chore.done] == ["bronze.wide_assertions", "bronze.wide"]
    assert held(folder, "bronze.wide", "id", "attribute_40", where="is_current") == [(key, "attribute_40 on day 2") for key in "ab"]
    assert project.verify("wide").equal


def _bounded(folder: Path, table: str) -> set[str]:
    """The columns of which any file notes a bound or how often it is null."""
    lines = [line for log in Path(lake_path(folder, table), "_delta_log").glob("*.json") for line in log.read_text().splitlines()]
    added = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
    return {name for file in added for name in json.loads(file["stats"])["nullCount"]}
