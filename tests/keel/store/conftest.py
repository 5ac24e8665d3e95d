"""A PostgreSQL server for the tests of this room, started once."""

from collections.abc import Generator

import pytest

from tests.keel.store.postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def server() -> Generator[PostgresServer]:
    with postgres_server() as running:
        yield running
