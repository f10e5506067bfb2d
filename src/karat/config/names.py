"""Identifiers and paths from configuration, checked in one place.

A table is named `schema.table` and lives at `<lake>/<schema>/<table>`, or is given by a path inside the lake.
Nothing that passes here can climb out of the lake or carry SQL of its own.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_PATH_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=\- ]{0,254}")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:/")
_ON_THIS_MACHINE = re.compile(r"(?i:file):(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)


@dataclass(frozen=True, order=True)
class TableName:
    """A table of the lake: `schema.table`, or a path below the lake's root."""

    schema: str
    table: str
    path: str | None = None
    catalog: str | None = None

    def __str__(self) -> str:
        return self.path if self.path is not None else f"{self.schema}.{self.table}"

    def with_suffix(self, suffix: str) -> "TableName":
        """The table of the same schema whose name ends in `suffix`."""
        return TableName(self.schema, self.table + suffix, None, self.catalog)


def checked_identifier(name: str) -> str:
    """The name itself when it is a plain identifier."""
    if not IDENTIFIER.fullmatch(name):
        message = f"{name!r} is not a name: letters, digits and underscores, not starting with a digit"
        raise ValueError(message)
    return name


def table_name(text: str, default_schema: str, catalog: str | None = None) -> TableName:
    """A `TableName` from `table`, `schema.table` or, where the catalog is the project's own, `catalog.schema.table`."""
    parts = text.split(".")
    if len(parts) == 3 and catalog is not None and parts[0] == catalog:  # noqa: PLR2004  (catalog, schema, table)
        parts = parts[1:]
    if len(parts) == 1:
        parts = [default_schema, *parts]
    if len(parts) != 2:  # noqa: PLR2004  (schema, table)
        message = f"{text!r} is not a table name: write schema.table"
        raise ValueError(message)
    return TableName(checked_identifier(parts[0]), checked_identifier(parts[1]))


def is_uri(location: str) -> bool:
    """Whether a location names its filesystem itself: `s3://bucket/lake`, `dbfs:/lake`, `file:/lake`."""
    return _SCHEME.match(location) is not None


def local_path(location: str) -> str | None:
    """The location as a path that Python can open; None when it is on another filesystem."""
    if not is_uri(location):
        return location.removeprefix("file:")
    here = _ON_THIS_MACHINE.fullmatch(location)
    return here[1] if here else None


def is_path(text: str) -> bool:
    """Whether a table is given by path rather than by name."""
    return "/" in text or text.startswith("delta.`")


def is_plain(name: TableName) -> bool:
    """Whether a path is just `schema/table`, as a name would be."""
    return bool(IDENTIFIER.fullmatch(name.schema) and IDENTIFIER.fullmatch(name.table))


def lake_path(text: str, lake: str) -> TableName:
    """A `TableName` for a path inside the lake; absolute paths and URIs must start with the lake's own root."""
    if text.startswith("delta.`") and text.endswith("`"):
        text = text[len("delta.`") : -1]
    if text.startswith("/") or is_uri(text):
        # `file:///lake/t` and `/lake/t` are one place
        absolute, root = (local_path(location) or location for location in (text, lake.rstrip("/")))
        text = absolute.removeprefix(root + "/")
    if text.startswith("/") or is_uri(text):
        message = f"{text!r} is outside the lake {lake!r}"
        raise ValueError(message)
    parts = PurePosixPath(text).parts
    if not parts or not all(_PATH_PART.fullmatch(part) and part not in {".", ".."} for part in parts):
        message = f"{text!r} is not a path inside the lake"
        raise ValueError(message)
    relative = "/".join(parts)
    return TableName("/".join(parts[:-1]), parts[-1], relative)
