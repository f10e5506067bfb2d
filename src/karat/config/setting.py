"""The base of every configuration model: frozen, without unknown settings, strict about types."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag
from pydantic_core import PydanticCustomError


class Setting(BaseModel):
    """A configuration model; immutable, and unknown settings are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True, hide_input_in_errors=True)


Text = Annotated[str, StringConstraints(min_length=1)]
Port = Annotated[int, Field(ge=1, le=65535)]


class SecretFromEnv(Setting):
    """A reference to a secret in an environment variable."""

    env: Text

    def __str__(self) -> str:
        return f"{{env: {self.env}}}"


class SecretFromFile(Setting):
    """A reference to a secret in a file; relative paths start at the project."""

    file: Text

    def __str__(self) -> str:
        return f"{{file: {self.file}}}"


def _never_literal(value: object) -> object:
    if isinstance(value, str | int | float):
        kind, message = "literal_secret", "a secret may not be written into a file of the project"
        raise PydanticCustomError(kind, message, {"remedy": "refer to it: {env: NAME} or {file: path}"})
    return value


def _reference_kind(value: object) -> str:
    if isinstance(value, SecretFromFile) or (isinstance(value, dict) and "file" in value):
        return "file"
    return "env"


Secret = Annotated[
    Annotated[SecretFromEnv, Tag("env")] | Annotated[SecretFromFile, Tag("file")],
    Discriminator(_reference_kind),
    BeforeValidator(_never_literal),
]
"""A reference to a secret, never its value; see `karat.config.secrets.reveal`."""
