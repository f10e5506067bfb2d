"""Curated tables from their declaration: defaults filled in, names checked, paths confined to the project."""

from collections.abc import Callable
from pathlib import Path

from karat.config.declared.curation import Curation, CurationSettings, CurationTable, parse_order, parse_timestamp
from karat.config.document import Document, dotted
from karat.config.names import TableName, is_path, is_plain, lake_path, table_name
from karat.config.problems import Problem, shown
from karat.config.resolved import AuditTables, Config, CuratedTable, OrderBy


def resolve_curation(curation: Curation, document: Document, config: Config) -> tuple[list[tuple[int, CuratedTable]], list[Problem]]:
    """The enabled tables with their index in the document, and what is wrong with their names."""
    problems: list[Problem] = []
    settings = curation.settings
    catalog = config.settings.catalog and (settings.catalog or config.settings.catalog)

    def named(text: str, schema: str, *place: str | int) -> TableName | None:
        try:
            name = lake_path(text, config.lake) if is_path(text) else table_name(text, schema, catalog or settings.catalog)
        except ValueError as wrong:
            remedy = "write schema.table, or a path below the lake"
            problems.append(Problem(document.file, document.line_of(place), dotted(place), str(wrong), shown(text), remedy))
            return None
        if name.path is not None and catalog is None and is_plain(name):
            return TableName(name.schema, name.table)  # by path or by name, it is the same table
        return TableName(name.schema, name.table, name.path, catalog)

    control = named(settings.control_table, settings.schema_silver, "settings", "control_table")
    audit = named(settings.audit_table, settings.schema_silver, "settings", "audit_table")
    resolved: list[tuple[int, CuratedTable]] = []
    for index, table in enumerate(curation.tables):
        source = named(table.source_table, settings.schema_bronze, "tables", index, "source_table")
        target = named(table.target_table, settings.schema_silver, "tables", index, "target_table")
        if target is not None and target.path is not None:
            place = ("tables", index, "target_table")
            problems.append(
                Problem(document.file, document.line_of(place), dotted(place), "a target is given by name", remedy="write schema.table")
            )
            continue
        sql = _sql_file(table, settings, config.folder, problems.append, (document, index))
        if source and target and control and audit and table.enabled:
            resolved.append((index, _complete(table, settings, (source, target, sql), AuditTables(control, audit))))
    return resolved, problems


def _complete(
    table: CurationTable, settings: CurationSettings, places: tuple[TableName, TableName, Path | None], audit_tables: AuditTables
) -> CuratedTable:
    source, target, sql = places
    watermark = table.watermark_column or settings.default_watermark_column
    order = table.dedup_order_columns or settings.default_dedup_order_columns or [f"`{watermark}` DESC"]
    return CuratedTable(
        source=source,
        target=target,
        scd_type=table.scd_type,
        keys=tuple(table.business_key_columns),
        source_system=table.source_system_column,
        watermark=watermark,
        lookback=table.lookback_interval or settings.default_lookback_interval,
        order=tuple(OrderBy(*parse_order(column)) for column in order),
        start=table.scd2_columns.effective_start_date,
        end=table.scd2_columns.effective_end_date,
        current=table.scd2_columns.is_current,
        tracked=tuple(table.track_columns) if table.track_columns else None,
        sql_file=sql,
        place_late=table.out_of_order == "place",
        hash=table.hash,
        effective_from=table.effective_from_column or watermark,
        add_columns=table.schema_evolution == "add",
        open_end=parse_timestamp(settings.scd2_end_date_value),
        audit_tables=audit_tables,
    )


def _sql_file(
    table: CurationTable, settings: CurationSettings, folder: Path, report: Callable[[Problem], None], where: tuple[Document, int]
) -> Path | None:
    """The transformation's file: in the project, else where `workspace_file_path` points; never outside the project."""
    if table.transformation_sql_path is None:
        return None
    roots = [folder]
    if settings.workspace_file_path:
        roots.append(Path(_workspace(settings.workspace_file_path, folder)))
    candidates = [Path(folder, _workspace(table.transformation_sql_path, root)).resolve() for root in roots]
    inside = [path for path in candidates if path.is_relative_to(folder)]
    if not inside:
        document, index = where
        place = ("tables", index, "transformation_sql_path")
        message, remedy = "the path leads out of the project", "keep SQL files in the project's folder"
        report(Problem(document.file, document.line_of(place), dotted(place), message, shown(table.transformation_sql_path), remedy))
        return None
    return next((path for path in inside if path.is_file()), inside[0])


def _workspace(text: str, root: Path) -> str:
    return text.replace("${workspace.file_path}", str(root)).replace("${workspace.root_path}", str(root))
