"""Text from a file is not trusted: what would blow up is refused at once, what is written twice is said, what is legal is read."""

import json
import time
from pathlib import Path

import pytest

from karat.config.load import load
from karat.config.problems import ConfigProblems, Problem
from tests.support.projects import curated

SIDE_EFFECTS = {"tables"}
"""A declaration cut short for a test lacks these as well."""
TABLE = curated("silver.people", "bronze.people")


def problem_of(folder: Path, file: str, text: str | bytes) -> Problem:
    """The one problem of a project with this file in it, found within a second of work."""
    (folder / "karat.yml").write_text("project: test\n", encoding="utf-8")
    (folder / file).write_bytes(text.encode() if isinstance(text, str) else text)
    begun = time.process_time()
    with pytest.raises(ConfigProblems) as caught:
        load(folder)
    assert time.process_time() - begun < 1.0
    assert caught.value.problems[0].file == file
    (problem,) = (each for each in caught.value.problems if each.path not in SIDE_EFFECTS)
    return problem


def laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "kind: curation\n" + "\n".join(lines)


def tower_of_aliases() -> str:
    """Few aliases, none deep by itself, but each standing on the one before."""
    opening, closing = "[" * 30, "]" * 30
    lines = [f"a0: &a0 {opening}x{closing}", *(f"a{n}: &a{n} {opening}*a{n - 1}{closing}" for n in range(1, 150))]
    return "kind: curation\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(laughs(), "too many values", id="a billion laughs"),
        pytest.param("kind: curation\na: &a {b: *a}\n", "", id="a mapping inside itself"),
        pytest.param("kind: curation\na: &a [*a]\n", "", id="a list inside itself"),
        pytest.param("kind: curation\nsettings: &a\n  <<: *a\n", "", id="a mapping merged into itself"),
        pytest.param(tower_of_aliases(), "", id="a tower of aliases"),
        pytest.param("kind: curation\na: &a x\nb: [" + ", ".join(["*a"] * 300) + "]", "aliases", id="many aliases"),
        pytest.param("kind: curation\na: " + "[" * 50 + "]" * 50, "levels deep", id="deep lists"),
        pytest.param("kind: curation\na: " + "[" * 100_000, "levels deep", id="a hundred thousand brackets"),
        pytest.param("kind: curation\na: " + "{a: " * 60 + "}" * 60, "levels deep", id="deep mappings"),
        pytest.param("kind: curation\na: " + "x" * 1_100_000, "larger than", id="a large file"),
        pytest.param("kind: curation\nsettings: !!python/object/apply:os.system [id]\n", "tag", id="a tag that runs something"),
        pytest.param("kind: curation\na: !!binary aGVsbG8=\n", "tag", id="a tag of binary"),
        pytest.param("kind: curation\n? [a, b]\n: 1\n", "a key must be a word", id="a list as a key"),
        pytest.param("kind: curation\na: *nobody\n", "undefined alias", id="an alias of nothing"),
        pytest.param("kind: curation\n\ta: 1\n", "", id="a tab as indentation"),
        pytest.param("kind: [curation\n", "not valid YAML", id="an open bracket"),
        pytest.param("- kind: curation\n", "a declaration is a mapping", id="a list"),
        pytest.param("just words\n", "a declaration is a mapping", id="a word"),
        pytest.param(b"kind: \xff\xfe\n", "UTF-8", id="not UTF-8"),
        pytest.param(b"kind: curation\x00\n", "", id="a null byte"),
    ],
)
def test_yaml_that_would_do_harm_is_refused_at_once(tmp_path: Path, text: str | bytes, words: str) -> None:
    problem = problem_of(tmp_path, "evil.yml", text)
    assert words in problem.message
    assert problem.remedy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('{"kind": "curation",}', "not valid JSON", id="a comma too many"),
        pytest.param("{'kind': 'curation'}", "not valid JSON", id="YAML in a JSON file"),
        pytest.param('{"kind": ' + "[" * 100_000, "", id="a hundred thousand brackets"),
        pytest.param('{"kind": ' + "[" * 50 + "]" * 50 + "}", "levels deep", id="deep lists"),
        pytest.param('{"kind": "a"} {"kind": "b"}', "not valid JSON", id="two documents"),
        pytest.param("", "not valid JSON", id="nothing"),
        pytest.param('[{"kind": "curation"}]', "a declaration is a mapping", id="a list"),
    ],
)
def test_json_that_is_none_is_refused_at_once(tmp_path: Path, text: str, words: str) -> None:
    problem = problem_of(tmp_path, "evil.json", text)
    assert words in problem.message
    assert problem.remedy


@pytest.mark.parametrize(("file", "line"), [("twice.yml", 3), ("twice.json", 3)])
def test_a_key_written_twice_is_said_with_the_line_of_the_second(tmp_path: Path, file: str, line: int) -> None:
    text = (
        "kind: curation\nsettings: {}\nsettings: {}\n" if file.endswith("yml") else '{"kind": "curation",\n"settings": {},\n"settings": {}}'
    )
    problem = problem_of(tmp_path, file, text)
    assert (problem.line, problem.path) == (line, "settings")
    assert "written twice" in problem.message


def test_a_key_written_twice_deep_inside_is_said_too(tmp_path: Path) -> None:
    text = json.dumps({"kind": "curation", "tables": [TABLE]}).replace('"scd_type": 2', '"scd_type": 2, "scd_type": 1')
    assert problem_of(tmp_path, "twice.json", text).path == "tables[0].scd_type"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        pytest.param(r'"caf\u00e9"', "café", id="an escape"),
        pytest.param(r'"\ud83d\ude00 id"', "😀 id", id="a pair of surrogates"),
        pytest.param(r'"a\/b"', "a/b", id="an escaped slash"),
        pytest.param(r'"a\tb"', "a\tb", id="an escaped tab"),
        pytest.param('"größe"', "größe", id="plain letters"),
        pytest.param('"😀"', "😀", id="plain letters beyond the first plane"),
        pytest.param('"no: # comment"', "no: # comment", id="what YAML would take apart"),
        pytest.param('"NO"', "NO", id="a word that old YAML takes for false"),
        pytest.param('"2026-01-01"', "2026-01-01", id="a date in quotes"),
        pytest.param(r'"\u007f\u0085"', "\x7f\x85", id="control characters"),
    ],
)
def test_json_means_what_json_means(tmp_path: Path, written: str, name: str) -> None:
    text = json.dumps({"kind": "curation", "tables": [{**TABLE, "business_key_columns": ["KEY"]}]}, indent="\t").replace('"KEY"', written)
    assert json.loads(text)["tables"][0]["business_key_columns"] == [name]
    (tmp_path / "karat.yml").write_text("project: test\n", encoding="utf-8")
    (tmp_path / "tabs.json").write_text(text, encoding="utf-8")
    assert load(tmp_path).curated[0].keys == (name,)


def test_yaml_words_stay_words(tmp_path: Path) -> None:
    (tmp_path / "karat.yml").write_text("project: test\n", encoding="utf-8")
    (tmp_path / "words.yml").write_text(
        "kind: curation\ndefaults: &defaults {}\n".replace("defaults: &defaults {}\n", "")
        + "tables:\n"
        + "  - &first\n"
        + "    source_table: bronze.no\n"
        + "    target_table: silver.no\n"
        + "    scd_type: 1\n"
        + "    business_key_columns: [NO, on, y, 12:30:00, 1_000, 0x1F]\n"
        + "  - <<: *first\n"
        + "    target_table: silver.yes\n"
        + "    enabled: True\n",
        encoding="utf-8",
    )
    first, second = load(tmp_path).curated
    assert first.keys == second.keys == ("NO", "on", "y", "12:30:00", "1_000", "0x1F")
    assert [str(table.target) for table in (first, second)] == ["silver.no", "silver.yes"]


def test_several_documents_of_one_file_are_several_declarations(tmp_path: Path) -> None:
    (tmp_path / "karat.yml").write_text("project: test\n", encoding="utf-8")
    documents = [json.dumps({"kind": "curation", "tables": [curated(f"silver.{name}", "bronze.a")]}) for name in "ab"]
    (tmp_path / "both.yml").write_text("\n---\n".join(documents), encoding="utf-8")
    assert [str(table.target) for table in load(tmp_path).curated] == ["silver.a", "silver.b"]
