"""Tables on a local disk, asked without Spark; what cannot be told that way is not guessed."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from karat.state.local_tables import is_local, is_table, local_files, local_history, local_schema


@pytest.mark.parametrize("name", ["plain", "with space", "ü", "per%20cent", "ha#sh"])
def test_a_table_tells_what_it_is_or_nothing_where_delta_rs_stumbles_over_its_name(tmp_path: Path, name: str) -> None:
    made, path = tmp_path / "made", str(tmp_path / name)
    DeltaTable.create(str(made), Schema([Field("id", PrimitiveType("string"), nullable=False), Field("at", PrimitiveType("timestamp"))]))
    made.rename(path)
    assert is_table(path)
    told = (local_files(path), _versions(path), _columns(path))
    wanted = (0, [0], [("id", "string", False), ("at", "timestamp", True)])
    assert all(found in (None, answer) for found, answer in zip(told, wanted, strict=True))
    assert told == wanted or name in {"per%20cent", "ha#sh"}


def test_where_there_is_none_or_it_lies_elsewhere_nothing_is_told(tmp_path: Path) -> None:
    for path in (str(tmp_path / "nothing"), "s3://bucket/table", "dbfs:/mnt/table"):
        assert not is_table(path)
        assert (local_files(path), local_history(path, 1), local_schema(path)) == (None, None, None)


def test_a_path_with_a_scheme_is_not_of_this_disk() -> None:
    assert all(map(is_local, ("/lake/bronze", "lake", "/data/by day:/lake")))
    assert not any(map(is_local, ("abfss://lake", "dbfs:/lake", "file:/lake")))


def _versions(path: str) -> list[int] | None:
    found = local_history(path, 1)
    return None if found is None else [entry["version"] for entry in found]


def _columns(path: str) -> list[tuple[str, str, bool]] | None:
    told = local_schema(path)
    return None if told is None else [(field["name"], field["type"], field["nullable"]) for field in json.loads(told)["fields"]]
