"""The sizes and boundaries that the code keeps to; a folder that outgrows them wants dividing."""

import ast
import re
from pathlib import Path

import pytest

from docs.reference.generate import PAGE, page

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "karat"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
PROSE = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PROSE += sorted(path for folder in ("docs", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.md"))

MOST_LINES = 300
LONGEST_FUNCTION = 40
WIDEST_LINE_OF_PROSE = 120
MOST_LINES_OF_FOLDERS = {("bronze",): 2_530, ("belief",): 2_000, ("lake", "runner"): 2_200}


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_longer_than_the_budget() -> None:
    long = {str(path.relative_to(ROOT)): lines for path in (*SOURCES, *TESTS) if (lines := lines_of(path)) > MOST_LINES}
    assert not long


def test_no_function_is_longer_than_the_budget() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert not long


@pytest.mark.parametrize(("folders", "most"), MOST_LINES_OF_FOLDERS.items())
def test_a_capability_is_no_longer_than_its_budget(folders: tuple[str, ...], most: int) -> None:
    lines = {str(path.relative_to(PACKAGE)): lines_of(path) for folder in folders for path in (PACKAGE / folder).rglob("*.py")}
    assert lines
    assert sum(lines.values()) <= most, lines


def test_no_file_has_a_name_that_explains_nothing() -> None:
    vague = re.compile(r"^(utils?|helpers?|common|base|managers?|misc)\.py$")
    assert not [path for path in SOURCES if vague.match(path.name)]


def test_a_session_is_built_in_one_place() -> None:
    builders = [path.name for path in SOURCES if re.search(r"SparkSession\.builder|getOrCreate\(", path.read_text(encoding="utf-8"))]
    assert builders == ["session.py"]


def test_nothing_depends_on_an_executor_that_may_be_lost() -> None:
    fragile = re.compile(r"localCheckpoint|\bctypes\b")
    assert not [path.name for path in SOURCES if fragile.search(path.read_text(encoding="utf-8"))]


def test_every_folder_says_its_theory_in_one_sentence() -> None:
    for init in PACKAGE.glob("*/__init__.py"):
        docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8")))
        assert docstring, init
        assert "\n" not in docstring.strip(), init


def test_folders_have_code_in_files_and_only_names_in_init() -> None:
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign)
    strange = [
        f"{init.relative_to(ROOT)}:{node.lineno}"
        for init in PACKAGE.glob("*/**/__init__.py")
        for node in ast.parse(init.read_text(encoding="utf-8")).body
        if not isinstance(node, allowed)
    ]
    assert not strange


def test_prose_can_be_read_in_an_editor() -> None:
    wide = []
    for path in PROSE:
        in_code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            in_code ^= line.lstrip().startswith("```")
            is_prose = not in_code and not line.lstrip().startswith(("|", "![")) and "](" not in line
            if is_prose and len(line) > WIDEST_LINE_OF_PROSE:
                wide.append(f"{path.relative_to(ROOT)}:{number}")
    assert not wide


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
