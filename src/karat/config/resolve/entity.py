"""An entity from its declaration: its tables, its feeds with their grades, its time basis checked."""

from karat.config.declared.entity import EntityDeclaration, Feed, FilesSource, TableSource
from karat.config.declared.grading import graded
from karat.config.document import Document, Place, dotted
from karat.config.names import TableName, is_path, is_plain, is_uri, lake_path, table_name
from karat.config.problems import Problem, shown
from karat.config.resolved import Config, Entity, FeedOf

SCHEMA = "bronze"


def resolve_entity(declared: EntityDeclaration, document: Document, config: Config) -> tuple[Entity | None, list[Problem]]:
    """The entity, and what is wrong with it beyond the shape of its declaration."""
    problems: list[Problem] = []

    def problem(place: Place, message: str, value: str, remedy: str) -> None:
        problems.append(Problem(document.file, document.line_of(place), dotted(place), message, value, remedy))

    feeds: list[FeedOf] = []
    for index, feed in enumerate(declared.feeds):
        place: Place = ("feeds", index)
        table = None
        if isinstance(feed.source, TableSource):
            try:
                table = _lake_table(feed.source.table, config)
            except ValueError as wrong:
                problem((*place, "from", "table"), str(wrong), shown(feed.source.table), "write schema.table, or a path below the lake")
        grading = graded(feed)
        if grading.grade == "LIMITED_FALLBACK_ONLY" and declared.time_basis == "source":
            message = f"feed {feed.name} is LIMITED_FALLBACK_ONLY ({grading.reason}), the entity keeps source time: the two never mix"
            remedy = "mend the feed's contract, set time_basis: platform, or give the feed an entity of its own"
            problem(place, message, "", remedy)
        if declared.time_basis == "source" and feed.event_time is None and not feed.is_change_stream and not grading.is_rejected:
            problem(place, "this feed has no event time", "", "add event_time, or set time_basis: platform")
        feeds.append(FeedOf(feed, grading, table, _location(feed, config)))
    if problems:
        return None, problems
    catalog = config.settings.catalog
    entity = Entity(declared, TableName(SCHEMA, declared.name, None, catalog), tuple(feeds))
    return entity, []


def _location(feed: Feed, config: Config) -> str:
    """Where a feed's files are; a relative path starts at the project."""
    if not isinstance(feed.source, FilesSource):
        return ""
    path = feed.source.path.replace("${lake}", config.lake)
    if is_uri(path):
        return path
    path = path.removeprefix("file:")
    return path if path.startswith("/") else f"{config.folder}/{path.removeprefix('./')}"


def _lake_table(text: str, config: Config) -> TableName:
    catalog = config.settings.catalog
    name = lake_path(text, config.lake) if is_path(text) else table_name(text, SCHEMA, catalog)
    if name.path is not None and catalog is None and is_plain(name):
        return TableName(name.schema, name.table)
    return TableName(name.schema, name.table, name.path, catalog)
