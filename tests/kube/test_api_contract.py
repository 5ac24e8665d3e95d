"""The port's promises, kept by the client with a real API server behind it."""

import pytest

from tests.contracts.kube_api import KubeApiContract

pytestmark = pytest.mark.anyio


@pytest.fixture
def namespace(kube_namespace: str) -> str:
    return kube_namespace


class TestServer(KubeApiContract):
    """On the cluster of this test run."""
