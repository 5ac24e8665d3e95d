"""What operators count on, with a real API server."""

import pytest

from tests.contracts.kube_control import KubeControlContract

pytestmark = pytest.mark.anyio


@pytest.fixture
def namespace(kube_namespace: str) -> str:
    return kube_namespace


class TestControlOnServer(KubeControlContract):
    """On the cluster of this test run."""
