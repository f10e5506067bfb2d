"""Files are listed without Spark where Python can."""

import os
from pathlib import Path
from typing import Any

import pytest

from karat.sources.files import FileStat, listed

NO_SESSION: Any = None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "b.json",
        "a.json",
        "c.csv",
        ".hidden.json",
        "_SUCCESS",
        "deep/d.json",
        "_tmp/e.json",
        "deep/.x/f.json",
        "odd [1]{a}*.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.json", ["a.json", "b.json", "odd [1]{a}*.json"]),
        ("**/*.json", ["a.json", "b.json", "deep/d.json", "odd [1]{a}*.json"]),
        ("", ["a.json", "b.json", "c.csv", "deep/d.json", "odd [1]{a}*.json"]),
        ("deep", ["deep/d.json"]),
        ("*", ["a.json", "b.json", "c.csv", "deep/d.json", "odd [1]{a}*.json"]),
        ("*/e.json", []),
        ("[ab].json", ["a.json", "b.json"]),
        ("odd [1]{a}*.json", ["odd [1]{a}*.json"]),
        ("nothing/*.json", []),
        ("nothing", []),
    ],
)
def test_a_path_a_folder_or_a_glob(folder: Path, pattern: str, names: list[str]) -> None:
    found = listed(f"{folder}/{pattern}" if pattern else str(folder), NO_SESSION)
    assert [str(Path(file.path).relative_to(folder)) for file in found] == names


def test_a_file_is_told_by_path_size_and_time(folder: Path) -> None:
    os.utime(folder / "c.csv", ns=(0, 1_700_000_000_123_456_789))
    assert listed(f"file://{folder}/c.csv", NO_SESSION) == (FileStat(str(folder / "c.csv"), 2, 1_700_000_000_123),)


def test_what_is_written_out_is_meant_even_in_a_hidden_folder(folder: Path) -> None:
    assert [Path(file.path).name for file in listed(f"{folder}/_tmp/*.json", NO_SESSION)] == ["e.json"]
