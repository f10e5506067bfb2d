"""Where the state store is: the user's URL made whole, with the driver Karat uses and the password it was promised."""

from pathlib import Path
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from karat.config.secrets import reveal
from karat.config.settings import StateSettings
from karat.errors import ConfigError

_DRIVERS: Final = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "singlestore": "mysql+pymysql",
    "singlestoredb": "mysql+pymysql",
}
_SECRET_QUERIES: Final = frozenset({"password", "passwd", "sslpassword"})


def state_url(settings: StateSettings, project: Path) -> URL:
    """The store's address with its secret inside; `str()` and `repr()` of it show *** instead."""
    url = driver_url(settings.url)
    if url.password is not None or _SECRET_QUERIES & url.query.keys():
        message = "state.url holds a password"
        raise ConfigError(message, remedy="take it out of the URL and set state.password: {env: NAME} or {file: path}")
    if url.get_backend_name() == "sqlite":
        return url.set(database=str(project.resolve() / str(url.database)))
    return url if settings.password is None else url.set(password=reveal(settings.password, project))


def driver_url(address: str | URL) -> URL:
    """The address with a driver named; what is no address, or forgets everything when the process ends, is refused."""
    try:
        url = make_url(address)
    except (ArgumentError, ValueError):  # their text may hold what stands in the URL
        message = "state.url is not a database URL"
        raise ConfigError(message, remedy="write it like sqlite:///.karat/state.db or postgresql://user@host:5432/database") from None
    if url.drivername in _DRIVERS:
        return url.set(drivername=_DRIVERS[url.drivername])
    if url.get_backend_name() == "sqlite" and (not url.database or url.database == ":memory:" or url.database.startswith("file:")):
        message = "state.url names no file"
        raise ConfigError(message, remedy="name one, as in sqlite:///.karat/state.db")
    return url
