"""One engine of each kind for a run of tests."""

from collections.abc import Generator

import pytest

from tests.engines.private_engine import PrivateEngine, private_containerd, private_docker


@pytest.fixture(scope="session")
def containerd() -> Generator[PrivateEngine]:
    with private_containerd() as engine:
        yield engine


@pytest.fixture(scope="session")
def docker() -> Generator[PrivateEngine]:
    with private_docker() as engine:
        yield engine
