"""One real controller with two real workers for all tests here."""

from collections.abc import Generator
from pathlib import Path

import pytest

from neorion.iris.client import IrisClient
from tests.iris.processes import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("iris")) as found:
        yield found


@pytest.fixture
def client(cluster: Cluster) -> Generator[IrisClient]:
    with IrisClient.remote(cluster.url) as found:
        yield found


@pytest.fixture
def admin_token(cluster: Cluster) -> str:
    return (Path(cluster.controller.folder) / "admin.token").read_text()
