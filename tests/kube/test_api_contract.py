"""The port's promises, kept by the client with a real API server behind it."""

import pytest

from neorion.keel.kube import KubeApi
from neorion.keel.kube.client import Client
from tests.contracts.kube_api import KubeApiContract

pytestmark = pytest.mark.anyio


@pytest.fixture
def api(api: Client) -> KubeApi:
    """The type checker's share of the proof: the client has the port's shape."""
    return api


@pytest.fixture
def namespace(kube_namespace: str) -> str:
    return kube_namespace


class TestServer(KubeApiContract):
    """On the cluster of this test run."""
