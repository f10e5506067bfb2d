"""A project folder to a `Config`: every file read, every problem found, nothing started."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from karat.config.declared.belief import BeliefDeclaration
from karat.config.declared.curation import Curation
from karat.config.declared.entity import EntityDeclaration
from karat.config.declared.gold import BridgeDeclaration, DimensionDeclaration, FactDeclaration
from karat.config.document import Document, Unreadable, read_documents, scalar
from karat.config.names import is_uri, local_path
from karat.config.problems import ConfigProblems, Problem, shown
from karat.config.references import fill
from karat.config.resolve.belief import resolve_belief
from karat.config.resolve.curation import resolve_curation
from karat.config.resolve.entity import resolve_entity
from karat.config.resolved import Belief, Config, CuratedTable, Entity
from karat.config.settings import ProjectSettings
from karat.config.spark_conf import conf_problems
from karat.config.star import Star
from karat.config.validate import literal_secrets, validate
from karat.config.wiring import Writer, belief_writer, curated_writer, entity_writer, star_writer, wiring_problems
from karat.errors import ConfigError

PROJECT_FILE = "karat.yml"
StarDeclaration = DimensionDeclaration | FactDeclaration | BridgeDeclaration
KINDS: dict[str, type[Curation | EntityDeclaration | BeliefDeclaration | StarDeclaration]] = {
    "belief": BeliefDeclaration,
    "bridge": BridgeDeclaration,
    "curation": Curation,
    "dimension": DimensionDeclaration,
    "entity": EntityDeclaration,
    "fact": FactDeclaration,
}
MOST_FILES = 2_000


@dataclass
class Reading:
    """What has been read so far and what is wrong with it."""

    variables: dict[str, object] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    curated: list[CuratedTable] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    beliefs: list[tuple[BeliefDeclaration, Document]] = field(default_factory=list)
    """As declared: which entities there are is known only when everything is read."""
    star: list[tuple[StarDeclaration, Document]] = field(default_factory=list)
    """Likewise: facts and bridges name dimensions."""
    writers: list[Writer] = field(default_factory=list)


def load(folder: Path, variables: Mapping[str, str] | None = None) -> Config:
    """The project's configuration; raises `ConfigProblems` with everything that is wrong."""
    folder = folder.resolve()
    if not (folder / PROJECT_FILE).is_file():
        message = f"there is no {PROJECT_FILE} in {folder}"
        raise ConfigError(message, remedy="name the project's folder with --project, or make one with `karat init DIR`")
    reading = Reading()
    settings = _settings(folder, dict(variables or {}), reading) or ProjectSettings(project="unknown")
    lake = lake_root(settings.lake, folder)
    config = Config(folder, settings, lake, ())
    for endings in ((".yml", ".yaml"), (".json",)):
        # data may lie in the project as well, and what a feed reads is no declaration: so feeds declared in YAML are known first
        for file in _files(folder, lake, endings, lambda path: _is_data(path, reading)):
            for document in _documents(folder, file, reading):
                _declare(document, config, reading)
    beliefs = _beliefs(config, reading)
    star = _star(config, reading)
    reading.problems.extend(wiring_problems(reading.writers))
    if reading.problems:
        raise ConfigProblems(reading.problems)
    return Config(folder, settings, lake, tuple(reading.curated), tuple(reading.entities), beliefs, star, reading.variables)


def lake_root(lake: str, folder: Path) -> str:
    """The lake's root as an absolute path, or the URI as it is."""
    if is_uri(lake):
        return lake.rstrip("/") or lake
    return str((folder / lake.removeprefix("file:")).resolve())


def _settings(folder: Path, given: dict[str, str], reading: Reading) -> ProjectSettings | None:
    documents = _documents(folder, folder / PROJECT_FILE, reading)
    if not documents:
        if not reading.problems:
            reading.problems.append(Problem(PROJECT_FILE, 1, "", "the file is empty", remedy="add at least `project: name`"))
        return None
    document = documents[0]
    declared = document.value.get("vars")
    reading.variables = {**(declared if isinstance(declared, dict) else {}), **{name: scalar(text) for name, text in given.items()}}
    filled = fill(document, reading.variables)
    reading.problems.extend(filled.problems)
    reading.problems.extend(_literal_password(document))
    reading.problems.extend(literal_secrets(document))
    reading.problems.extend(conf_problems(document))
    settings, problems = validate(ProjectSettings, filled, document)
    reading.problems.extend(problems)
    return settings


def _literal_password(document: Document) -> Iterator[Problem]:
    """A password written into the state's URL is a secret in a file; one that comes by reference is not."""
    state = document.value.get("state")
    url = state.get("url") if isinstance(state, dict) else None
    rest = url.partition("://")[2] if isinstance(url, str) and not url.startswith("sqlite") else ""
    password = rest.rpartition("@")[0].partition(":")[2] or "".join(re.findall(r"[?&](?:password|passwd|pwd)=([^&]*)", rest))
    if password and "${env:" not in password:
        remedy = "take it out of the URL and add `password: {env: NAME}`"
        yield Problem(
            document.file, document.line_of(("state", "url")), "state.url", "a password may not be written into a file", remedy=remedy
        )


def _is_data(file: Path, reading: Reading) -> bool:
    """Whether a feed reads the file."""
    return any(fnmatchcase(str(file), feed.path) for entity in reading.entities for feed in entity.feeds if feed.path)


def _files(folder: Path, lake: str, endings: tuple[str, ...], skipped: Callable[[Path], bool]) -> Iterator[Path]:
    """Declaration files in a stable order. Not read: hidden folders, the lake, the logs of tables, and folders that are linked in."""
    found = 0
    here = local_path(lake)
    tables = None if here is None else str(Path(here).resolve())
    for where, folders, files in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "__")) and name != "_delta_log" and str(Path(where, name)) != tables
        )
        for name in sorted(files):
            path = Path(where, name)
            if name.endswith(endings) and not name.startswith(".") and path != folder / PROJECT_FILE and not skipped(path):
                found += 1
                if found > MOST_FILES:
                    message = f"more than {MOST_FILES} YAML and JSON files under {folder}"
                    raise ConfigError(message, remedy="keep data outside the project's folder, or in the lake")
                yield path


def _documents(folder: Path, file: Path, reading: Reading) -> list[Document]:
    name = file.relative_to(folder).as_posix()
    try:
        return read_documents(file.read_text(encoding="utf-8"), name)
    except Unreadable as unreadable:
        reading.problems.append(unreadable.problem)
    except UnicodeDecodeError:
        reading.problems.append(Problem(name, 1, "", "the file is not UTF-8 text", remedy="save it as UTF-8"))
    except OSError as unreadable:
        reading.problems.append(Problem(name, 1, "", f"the file cannot be read: {unreadable.strerror}", remedy="make it readable"))
    return []


def _declare(document: Document, config: Config, reading: Reading) -> None:
    kind = document.value.get("kind")
    if kind is None and not _is_ours(document):
        return
    if kind not in KINDS:
        exist = ", ".join(sorted(KINDS))
        message = "`kind` is missing" if kind is None else "there is no such kind"
        found = "" if kind is None else shown(kind)
        reading.problems.append(Problem(document.file, document.line_of(("kind",)), "kind", message, found, f"the kinds are: {exist}"))
        return
    filled = fill(document, reading.variables)
    reading.problems.extend(filled.problems)
    declaration, problems = validate(KINDS[str(kind)], filled, document)
    reading.problems.extend(problems)
    match declaration:
        case Curation():
            tables, problems = resolve_curation(declaration, document, config)
            reading.curated.extend(table for _, table in tables)
            reading.writers.extend(curated_writer(table, document.file, document.line_of(("tables", index))) for index, table in tables)
        case EntityDeclaration():
            entity, problems = resolve_entity(declaration, document, config)
            if entity is not None:
                reading.entities.append(entity)
                reading.writers.append(entity_writer(entity, document.file, document.line))
        case BeliefDeclaration():
            reading.beliefs.append((declaration, document))
        case DimensionDeclaration() | FactDeclaration() | BridgeDeclaration():
            reading.star.append((declaration, document))
        case None:
            return
    reading.problems.extend(problems)


def _beliefs(config: Config, reading: Reading) -> tuple[Belief, ...]:
    """The beliefs, each with its entity; an entity that is itself wrong is not reported once more as missing."""
    found = []
    broken = bool(reading.problems)
    for declared, document in reading.beliefs:
        belief, problems = resolve_belief(declared, document, reading.entities, config)
        if belief is not None:
            found.append(belief)
            reading.writers.append(belief_writer(belief, document.file, document.line))
        reading.problems.extend(problem for problem in problems if not (broken and problem.path == "entity"))
    return tuple(found)


def _star(config: Config, reading: Reading) -> tuple[Star, ...]:
    """Dimensions, facts and bridges, each with the dimensions it names."""
    if not reading.star:
        return ()
    from karat.config.resolve.gold import resolve_star  # noqa: PLC0415  (it loads a parser of SQL, which other projects do not wait for)

    found, problems = resolve_star(reading.star, config, reading.variables)
    reading.problems.extend(problems)
    reading.writers.extend(star_writer(each, document.file, document.line) for each, document in found)
    return tuple(each for each, _ in found)


def _is_ours(document: Document) -> bool:
    """A file without `kind` is somebody else's (a bundle, a linter's settings), unless it looks like a declaration."""
    return "tables" in document.value or "settings" in document.value
