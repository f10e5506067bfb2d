"""Karat turns what many systems say into what an institution believes, and can prove every step."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.project import Project as Project


def __getattr__(name: str) -> object:
    """`from karat import Project` loads Spark only when it is asked for: `karat check` must answer at once."""
    if name == "Project":
        from karat.project import Project  # noqa: PLC0415

        return Project
    message = f"module 'karat' has no attribute {name!r}"
    raise AttributeError(message)
