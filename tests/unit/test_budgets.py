"""The sizes and boundaries the code keeps to; a room that outgrows them wants dividing."""

import ast
import re
from pathlib import Path

from docs.reference.generate import PAGE, page

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_LINES = 300
LONGEST_FUNCTION = 40


def test_no_file_is_longer_than_the_budget() -> None:
    long = {str(path.relative_to(ROOT)): lines for path in (*SOURCES, *TESTS) if (lines := len(path.read_text().splitlines())) > MOST_LINES}
    assert not long


def test_no_function_is_longer_than_the_budget() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert not long


def test_no_file_has_a_name_that_explains_nothing() -> None:
    vague = re.compile(r"^(utils?|helpers?|common|base|managers?|misc)\.py$")
    assert not [path for path in SOURCES if vague.match(path.name)]


def test_a_session_is_built_in_one_place() -> None:
    builders = [path.name for path in SOURCES if re.search(r"SparkSession\.builder|getOrCreate\(", path.read_text())]
    assert builders == ["session.py"]


def test_every_folder_says_its_theory_in_one_sentence() -> None:
    for init in (ROOT / "src" / "karat").glob("*/__init__.py"):
        docstring = ast.get_docstring(ast.parse(init.read_text()))
        assert docstring, init
        assert "\n" not in docstring.strip(), init


def test_the_settings_reference_is_what_the_models_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python docs/reference/generate.py"


def test_no_registry_host_is_named_anywhere() -> None:
    hosts = re.compile(r"repo1?\.maven|maven\.org|pypi\.org|pythonhosted|registry\.npmjs|deb\.debian")
    texts = [
        path for path in ROOT.rglob("*") if path.is_file() and not {".git", ".venv", ".cache", "build"} & set(path.relative_to(ROOT).parts)
    ]
    named = [
        str(path.relative_to(ROOT))
        for path in texts
        if path.suffix in {".py", ".md", ".toml", ".txt", ".yml", ".json", ".xml", ""}
        and path != Path(__file__)
        and hosts.search(path.read_text(errors="ignore"))
    ]
    assert not named
