"""The database servers the state store is tried on, one each for the whole session."""

from collections.abc import Iterator

import pytest

from tests.support.services import mariadb, open_folder, postgresql


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with open_folder() as folder, postgresql(folder) as url:
        yield url


@pytest.fixture(scope="session")
def mariadb_url() -> Iterator[str]:
    with open_folder() as folder, mariadb(folder) as url:
        yield url
