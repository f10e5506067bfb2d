"""The values of secrets, read when they are used; no model, plan or message contains one."""

import os
from pathlib import Path

from karat.config.setting import SecretFromEnv, SecretFromFile
from karat.errors import ConfigError


def reveal(secret: SecretFromEnv | SecretFromFile, project: Path) -> str:
    """The secret's value; says which reference is empty, never what it held."""
    if isinstance(secret, SecretFromEnv):
        value = os.environ.get(secret.env)
        if not value:
            message = f"the environment variable {secret.env}, which holds a secret, is not set"
            raise ConfigError(message, remedy=f"set {secret.env} in the environment of this command")
        return value
    path = project / secret.file
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as unreadable:
        message = f"the secret file {secret.file} cannot be read"
        raise ConfigError(message, remedy="create it, readable by the user who runs karat") from unreadable


def is_reference(value: object) -> bool:
    """Whether a value is a reference to a secret."""
    return isinstance(value, SecretFromEnv | SecretFromFile)


def revealed(value: object, project: Path) -> object:
    """The secret behind a reference; anything else as it is."""
    return reveal(value, project) if isinstance(value, SecretFromEnv | SecretFromFile) else value
