"""New projects and deployment files: copied from the examples or rendered from the templates; nothing is overwritten.

An installed Karat has its examples inside the package; a checkout has them next to `src`. Templates mark what is
filled in with `[[ ]]`, because `${…}` and `{{…}}` already belong to the files themselves.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from karat.errors import ConfigError

PROJECT_FILE: Final = "karat.yml"
EMPTY: Final = "empty"
"""The example without declarations."""

_PACKAGE: Final = Path(__file__).parent
_TEMPLATES: Final = _PACKAGE / "templates"
_NOT_COPIED: Final = frozenset({"demo.py", "lake", ".karat", "__pycache__", ".gitignore", "dist", "spark-warehouse"})
_GITIGNORE: Final = """\
# Karat's working state, the local lake, what Spark and the bundle leave behind
.karat/
lake/
spark-warehouse/
metastore_db/
derby.log
dist/
.databricks/
__pycache__/
"""


def examples() -> list[str]:
    """The names of the examples for `create_project`."""
    here = _examples_folder()
    found = (folder.name for folder in here.iterdir() if (folder / PROJECT_FILE).is_file()) if here.is_dir() else ()
    return sorted({EMPTY, *found})


def create_project(folder: Path, example: str = "bank") -> list[Path]:
    """The files of a new project; the folder must not exist or be empty."""
    if example not in examples():
        message = f"there is no example {example!r}"
        raise ConfigError(message, remedy=f"the examples are: {', '.join(examples())}", example=example)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder} is not an empty folder"
        raise ConfigError(message, remedy="name a new folder, or empty this one", folder=str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    if example == EMPTY:
        created = _render("empty", folder, _as_project_name(folder.resolve().name))
    else:
        created = _copy(_examples_folder() / example, folder)
    ignore = folder / ".gitignore"
    ignore.write_text(_GITIGNORE, encoding="utf-8")
    return [*created, ignore]


def add_bundle(folder: Path) -> list[Path]:
    """The files that deploy a project as a Databricks Asset Bundle; none is written if one of them exists."""
    name = _project_name(folder)
    present = [folder / path for path in _template_files("bundle") if (folder / path).exists()]
    if present:
        message = f"{', '.join(str(path) for path in present)} already there"
        raise ConfigError(message, remedy="move it away, or keep the bundle you have", files=[str(path) for path in present])
    return _render("bundle", folder, name)


def _examples_folder() -> Path:
    packaged = _PACKAGE / "_examples"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "examples"


def _files(root: Path) -> Iterator[Path]:
    """Files below `root` that belong to a project, relative to it, in a stable order."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and _NOT_COPIED.isdisjoint(relative.parts):
            yield relative


def _template_files(template: str) -> list[Path]:
    return list(_files(_TEMPLATES / template))


def _left_behind(example: Path) -> frozenset[str]:
    """Folders named by the example's own `.gitignore`: running the example in place fills them."""
    ignore = example / ".gitignore"
    lines = ignore.read_text(encoding="utf-8").splitlines() if ignore.is_file() else []
    return frozenset(line.strip().strip("/") for line in lines if not line.startswith("#"))


def _copy(source: Path, folder: Path) -> list[Path]:
    created, left_behind = [], _left_behind(source)
    for path in _files(source):
        if path.parts[0] in left_behind:
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        created.append(Path(shutil.copyfile(source / path, folder / path)))
    return created


def _render(template: str, folder: Path, project: str) -> list[Path]:
    """A template's files with the project's name filled in; every other character stays as it is."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES / template),
        variable_start_string="[[",
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  (YAML and Markdown, and the name is checked)
    )
    created = []
    for path in _template_files(template):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(environment.get_template(path.as_posix()).render(project=project), encoding="utf-8")
        created.append(folder / path)
    return created


def _project_name(folder: Path) -> str:
    """The name in `karat.yml`, made safe to stand in other files."""
    file = folder / PROJECT_FILE
    if not file.is_file():
        message = f"there is no {PROJECT_FILE} in {folder}"
        raise ConfigError(message, remedy="name the project's folder, or make one with `karat init DIR`")
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as broken:
        message = f"{file} cannot be read: {broken}"
        raise ConfigError(message, remedy="ask `karat check` what is wrong with it") from broken
    name = settings.get("project") if isinstance(settings, dict) else None
    return _as_project_name(str(name) if name else folder.resolve().name)


def _as_project_name(text: str) -> str:
    """A name `karat.yml` accepts: letters, digits, and `_ . -` after the first."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text).lstrip("_.-") or "project"
