"""Fixtures for pytest: one real cluster for a whole run, and a namespace of its own for each test.

A project enables them in its `conftest.py`, by `pytest_plugins = ["neorion.drydock.testing.plugin"]`.
"""

import hashlib
from collections.abc import Generator

import pytest
from anyio.from_thread import start_blocking_portal

from neorion.drydock.binaries import ready
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import NO_EXTRAS, ClusterManager, ClusterOptions
from neorion.drydock.testing.namespaces import namespace
from neorion.drydock.testing.shared import shared_cluster


@pytest.fixture(scope="session")
def cluster_wishes() -> ClusterOptions:
    """The options of the cluster. A project that needs nodes overrides this fixture."""
    return NO_EXTRAS


@pytest.fixture(scope="session")
def cluster(cluster_wishes: ClusterOptions, pytestconfig: pytest.Config) -> Generator[Cluster]:
    """A real cluster, shared by the whole run and all of its processes. Tests use a `kube_namespace` each."""
    if not ready(*cluster_wishes.programs):
        pytest.skip("the programs of clusters are not built (neorion drydock build)")
    # Named after the checkout, because two of them may be tested at the same time.
    name = f"test-{hashlib.sha256(str(pytestconfig.rootpath).encode()).hexdigest()[:8]}"
    with shared_cluster(name, ClusterManager.of(), cluster_wishes) as shared:
        yield shared


@pytest.fixture
def kube_namespace(cluster: Cluster) -> Generator[str]:
    """The name of a namespace that is ready for pods and is removed after the test. For tests with or without a loop."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(namespace(cluster)) as name:
        yield name
