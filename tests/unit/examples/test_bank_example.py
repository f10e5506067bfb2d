"""The bank example tells the story its README promises, and delivers it once."""

import csv
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from karat.config.load import load
from karat.scaffold import create_project

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "bank"
DAYS = (1, 2, 3)
PLACEHOLDER = "__debezium_unavailable_value"
Message = dict[str, Any]


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of the example, which lives outside the package."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "deliver", raising=False)
    spec = importlib.util.spec_from_file_location(f"bank_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def files(feed: str, day: int) -> list[Path]:
    return sorted((EXAMPLE / "deliveries" / f"day{day}" / feed).iterdir())


def messages(feed: str, day: int) -> list[Message]:
    """Every line that is a JSON object, out of its wrapper."""
    found = []
    for file in files(feed, day):
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            found.append(message.get("payload", message) if message is not None else {})
    return found


def test_every_feed_is_defensible() -> None:
    entities = load(EXAMPLE).entities
    grades = {f"{entity.name}.{feed.feed.name}": feed.grading.grade for entity in entities for feed in entity.feeds}
    assert grades == dict.fromkeys(("customer.crm", "customer.core", "customer.kyc", "payment.payments"), "DEFENSIBLE")


def test_every_file_is_short() -> None:
    found = [path for path in (EXAMPLE / "deliveries").rglob("*") if path.is_file()]
    assert all(1 < len(path.read_text(encoding="utf-8").splitlines()) <= 10 for path in found)


def test_jane_carter_is_told_as_printed() -> None:
    said = [
        *(
            (day, "CRM", row["op"], row["source_event_ts"][:16], _words(row))
            for day in DAYS
            for row in messages("crm", day)
            if _is_jane(row)
        ),
        *(
            (day, "CORE", row["op"], row["source"]["ts_ms"], _words(row["after"]))
            for day in DAYS
            for row in messages("core", day)
            if _is_jane(row.get("after") or {})
        ),
    ]
    assert said == [
        (1, "CRM", "c", "2026-03-01T09:00", {"name": "Jane Carter", "address": "12 Market Street", "status": "Active"}),
        (2, "CRM", "u", "2026-03-03T09:00", {"address": "18 King Street"}),
        (3, "CRM", "d", "2026-03-04T12:00", {}),
        (1, "CORE", "u", 1772445600000, {"status": "Restricted"}),  # 2 March, 10:00
        (3, "CORE", "u", 1772474400000, {"status": "Active"}),  # 2 March, 18:00, two days late
    ]


def _is_jane(row: Message) -> bool:
    return row.get("customer_id") == "C123"


def _words(row: Message) -> Message:
    beside = {"op", "source_event_ts", "customer_id"}
    return {name: value for name, value in row.items() if name not in beside and value != PLACEHOLDER}


def test_core_speaks_debezium_in_both_forms() -> None:
    lines = [line for day in DAYS for file in files("core", day) for line in file.read_text(encoding="utf-8").splitlines()]
    wrapped = ['"schema"' in line for line in lines if line != "null"]
    assert any(wrapped)
    assert not all(wrapped)
    assert lines.count("null") == 2
    assert {row.get("op") for day in DAYS for row in messages("core", day)} == {"c", "r", "u", "d", None}


def test_a_file_comes_again_under_another_name() -> None:
    first, again = files("core", 1)[0], files("core", 2)[0]
    assert first.name != again.name
    assert first.read_bytes() == again.read_bytes()


def test_one_customer_is_missing_from_one_list_of_the_vendor() -> None:
    shown = {}
    for day in DAYS:
        (file,) = files("kyc", day)
        with file.open(encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        assert {row["data_date"] for row in rows} == {f"2026-03-0{day + 1}"}
        shown[day] = {row["client_ref"] for row in rows}
    assert shown[1] == shown[3]
    assert shown[1] - shown[2] == {"C127"}


def test_payments_are_replayed_and_one_is_corrected() -> None:
    told: dict[str, list[Message]] = {}
    for day in DAYS:
        for row in messages("payments", day):
            told.setdefault(str(row["payment_id"]), []).append(row)
    again = {key: len({row["amount"] for row in rows}) for key, rows in told.items() if len(rows) > 1}
    assert again == {"P1003": 2, "P1004": 1, "P1005": 1, "P1007": 1}
    assert len(told) == 21  # twenty, and one without its key


def test_a_day_is_delivered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "bank"
    create_project(project, "bank")
    deliver = script("deliver", monkeypatch).deliver
    delivered = [deliver(project, day) for day in DAYS]
    assert [len(arrived) for arrived in delivered] == [5, 5, 5]
    written = {path: path.stat().st_mtime_ns for path in (project / "data").rglob("*")}
    assert [deliver(project, day) for day in DAYS] == [[], [], []]
    assert {path: path.stat().st_mtime_ns for path in (project / "data").rglob("*")} == written
    assert not list((project / "data").rglob(".*"))


def test_what_was_delivered_where_the_example_stands_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = tmp_path / "_examples" / "bank"
    create_project(example, "bank")
    (example / ".gitignore").write_text((EXAMPLE / ".gitignore").read_text(encoding="utf-8"), encoding="utf-8")
    script("deliver", monkeypatch).deliver(example, 1)
    monkeypatch.setattr("karat.scaffold._PACKAGE", tmp_path)
    made = create_project(tmp_path / "copy", "bank")
    assert not (tmp_path / "copy" / "data").exists()
    assert {"deliver.py", "karat.yml", "bronze", "deliveries"} <= {path.relative_to(tmp_path / "copy").parts[0] for path in made}


def test_the_demo_moves_another_example_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    demo = script("demo", monkeypatch)
    monkeypatch.setattr(demo, "FOLDER", tmp_path / "demo")
    create_project(tmp_path / "demo", "claims")
    demo.prepare()
    assert load(tmp_path / "demo").settings.project == "bank"
    assert load(tmp_path / "demo-before-1").settings.project == "claims"
    capsys.readouterr()
    demo.prepare()
    assert capsys.readouterr().out == ""
