"""The commands about beliefs as a person types them: readable, plain JSON, exit codes, and no Spark where none is needed."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from karat.cli.app import app
from tests.support.lakes import believing_project, declare, record_conflicts, record_rules, tell
from tests.unit.config.test_check_command import karat
from tests.unit.inspect.test_belief import LATE, RULE, STORY
from tests.unit.reference.beliefs import NOW

BEFORE = f"{LATE - timedelta(seconds=1):%Y-%m-%dT%H:%M:%S+00:00}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = believing_project(tmp_path_factory.mktemp("commands"), [RULE])
    record_conflicts(folder, tell(folder, STORY), NOW)
    record_rules(folder)
    return folder


def said(*arguments: str | Path, code: int = 0) -> str:
    """What the command says, on standard error where it fails."""
    ended = CliRunner().invoke(app, list(map(str, arguments)))
    assert ended.exit_code == code, ended.output
    return ended.stderr if code else ended.stdout


def answer(*arguments: str | Path, code: int = 0) -> Any:  # noqa: ANN401  (whatever the command answers)
    """Standard output, which must be one JSON value."""
    ended = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert ended.exit_code == code, ended.output
    return json.loads(ended.stdout, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "arguments",
    [
        ("why", "customer", "-k", "C123"),
        ("as-of", "customer", "-k", "C123"),
        ("conflicts", "customer"),
        ("as-of", "customer", "-o", "x.xls"),
    ],
)
def test_only_a_whole_table_loads_spark(folder: Path, arguments: tuple[str, ...]) -> None:
    ended = karat(*arguments, "-p", folder)
    assert ended.stderr.splitlines()[-1] == "[]"
    assert ended.returncode == (2 if "-o" in arguments else 0), ended.stderr


def test_why_tells_value_winner_rule_and_why_each_other_did_not_win(folder: Path) -> None:
    text = said("why", "customer", "--key", "C123", "--attribute", "status", "--project", folder)
    for part in (
        "status = Active",
        "CORE for 2026-03-02 18:00: core-5.ndjson",
        "in run run-005",
        "by precedence (rule version 1, group status); sources: CORE (rank 2), CRM (rank 1)",
        "lower rank",
        "superseded by the same source",
        "only inherited it",
        "a delete: asserts no attributes",
        "▸CORE",
        "┣ Restricted ",
        "┣ Active (CORE) ",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text


def test_why_before_the_late_clearance_was_known_marks_the_time_asked_about(folder: Path) -> None:
    asked = ("why", "customer", "-k", "C123", "-a", "status", "--known-at", BEFORE, "-p", folder)
    assert "status = Restricted" in said(*asked)
    text = said(*asked, "--valid-at", "2026-03-02 12:00")
    for part in ("▲ valid at 2026-03-02 12:00", "not yet known then", "has a later event time"):
        assert part in text
    assert "◂ valid at 2026-02-01" in said(*asked, "--valid-at", "2026-02-01")
    assert "valid at 2026-05-01 00:00 ▲" in said(*asked, "--valid-at", "2026-05-01")


def test_why_without_an_attribute_is_one_block_each(folder: Path) -> None:
    text = said("why", "customer", "-k", "C123", "-p", folder)
    blocks = [line for line in text.splitlines() if " = " in line]
    assert blocks == ["name = Jane Carter", "address = 18 King Street", "status = Active", "is_deleted = false"]
    assert "and 4 that do not assert it" in text
    assert "may not delete" in text


def test_why_in_json_is_plain(folder: Path) -> None:
    told = answer("why", "customer", "-k", "C123", "-a", "status", "-p", folder)
    assert (told["belief"], told["key"], told["valid_at"]) == ("customer", {"customer_id": "C123"}, None)
    assert (told["attribute"], told["value"], told["rule_version"], told["by"]) == ("status", "Active", 1, "precedence")
    assert (told["winner"]["source_system"], told["winner"]["at"]) == ("CORE", "2026-03-02T18:00:00+00:00")
    assert len(bytes.fromhex(told["winner"]["record_hash"])) == 32
    assert [(loser["value"], loser["reason"]) for loser in told["losers"]][:2] == [("Active", "rank"), ("Restricted", "superseded")]
    every = answer("why", "customer", "-k", "C123", "-p", folder)
    assert list(every["attributes"]) == ["name", "address", "status", "is_deleted"]
    assert every["attributes"]["status"]["winner"] == told["winner"]


def test_as_of_a_key_tells_the_row_and_whose_word_it_is(folder: Path) -> None:
    text = said("as-of", "customer", "--key", "C123", "--known-at", BEFORE, "-p", folder)
    for part in ("Restricted", "CORE for 2026-03-02 10:00", "is_deleted", "by rule version 1"):
        assert part in text
    told = answer("as-of", "customer", "-k", "C123", "--valid-at", "2026-03-02T19:30:00+02:00", "-p", folder)
    assert (told["valid_at"], told["row"]["status"]) == ("2026-03-02T17:30:00+00:00", "Restricted")
    assert told["row"]["because"]["status"]["source_system"] == "CORE"
    asked = ("as-of", "customer", "-k", "C123", "--valid-at", "2026-02-01", "-p", folder)
    assert answer(*asked)["row"] is None
    assert "not in the belief" in said(*asked)


def test_conflicts_are_counted_and_shown(folder: Path) -> None:
    text = said("conflicts", "customer", "-p", folder)
    assert "sources differ in 2 cases: name 1, status 1" in text
    assert [line.split() for line in text.splitlines() if "believed" in line][1] == [
        *("status", "customer_id=C7", "CORE", "Closed", "2026-03-02", "09:00", "believed")
    ]
    assert "and 1 more" in said("conflicts", "customer", "--limit", "1", "-p", folder)
    assert "the sources agree" in said("conflicts", "customer", "--attribute", "address", "-p", folder)
    told = answer("conflicts", "customer", "-a", "status", "-p", folder)
    assert (told["total"], told["counts"], told["conflicts"][0]["says"][1]["value"]) == (1, {"status": 1}, "Open")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("why", "customer", "-k", "C9"), 1, "there is no evidence about customer_id=C9"),
        (("as-of", "customer", "-k", "C9"), 1, "there is no evidence about customer_id=C9"),
        (("why", "customer", "-k", "C123", "--known-at", "2025-06-01"), 1, "begins at 2026-01-01"),
        (("why", "customer", "-k", "C123", "-a", "statsu"), 2, "did you mean status?"),
        (("why", "customer", "-k", "C123", "--valid-at", "yesterday"), 2, "'yesterday' is not a day or a time"),
        (("as-of", "customer", "-k", "C123", "--known-at", "0001-01-01T00:00+14:00"), 2, "is not a day or a time"),
        (("as-of", "customer", "-k", "C123", "--out", "x.csv"), 2, "leave one of them out"),
        (("as-of", "customer", "--out", "x.xlsx"), 2, "let the name end in .csv or .parquet"),
        (("as-of", "customer", "--out", "nowhere/x.csv"), 2, "make the folder first"),
        (("as-of", "client"), 2, "the beliefs are: customer"),
        (("conflicts", "customer", "-a", "adress"), 2, "did you mean address?"),
    ],
)
def test_what_cannot_be_answered_ends_in_a_sentence(folder: Path, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    assert sentence in said(*arguments, "-p", folder, code=code)


def test_a_file_that_is_there_is_not_written_over(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.csv"
    kept.write_text("mine")
    assert "is there already" in said("as-of", "customer", "--out", kept, "-p", folder, code=2)
    assert kept.read_text() == "mine"


def test_an_edited_rule_is_refused(tmp_path: Path) -> None:
    folder = believing_project(tmp_path, [RULE])
    tell(folder, STORY)
    record_rules(folder)
    declare(folder, [{**RULE, "in_force_from": "2026-01-02"}])
    for command in ("why", "as-of"):
        assert "has been edited since" in said(command, "customer", "-k", "C123", "-p", folder, code=2)


def test_hostile_values_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    folder = believing_project(tmp_path, [RULE])
    record_conflicts(folder, tell(folder, "source | at | name | status \n CRM | 1 | \x1b[31mred | [/b] \n CORE | 2 | [bold] | x'y"), NOW)
    for arguments in (("why", "customer", "-k", "C1"), ("why", "customer", "-k", "C1", "-a", "status"), ("conflicts", "customer")):
        text = said(*arguments, "-p", folder)
        assert "[/b]" in text
        assert "\x1b" not in text
    assert "[bold]" in said("as-of", "customer", "-k", "C1", "-p", folder)
