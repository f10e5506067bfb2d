"""A belief as one CSV file: there whole or not at all. What Spark hands over is played."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.belief import export

COLUMNS = ["id", "name", "limit", "is_deleted", "because"]
ROWS: list[dict[str, Any]] = [
    {"id": "C1", "name": 'Ann, "A"\nB', "limit": "1.50", "is_deleted": False, "because": {"name": {"source_system": "CRM"}}},
    {"id": "C2", "name": None, "limit": None, "is_deleted": True, "because": {}},
]


def test_csv_has_a_heading_and_structures_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "_plain_rows", lambda _: iter(ROWS))
    file = tmp_path / "belief.csv"
    told = export.written(SimpleNamespace(columns=COLUMNS), file, 1)  # type: ignore[arg-type]
    assert (told.columns, told.first, told.count) == (tuple(COLUMNS), ROWS[:1], 2)
    assert file.read_bytes().decode().split("\r\n") == [
        "id,name,limit,is_deleted,because",
        'C1,"Ann, ""A""\nB",1.50,false,"{""name"": {""source_system"": ""CRM""}}"',
        "C2,,,true,{}",
        "",
    ]


def test_a_failure_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object) -> Iterator[dict[str, Any]]:
        yield ROWS[0]
        raise OSError

    monkeypatch.setattr(export, "_plain_rows", failing)
    with pytest.raises(OSError):  # noqa: PT011  (whatever went wrong)
        export.written(SimpleNamespace(columns=COLUMNS), tmp_path / "belief.csv", 1)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
