"""The promises of the Kubernetes port, kept by the double in memory."""

import pytest

from neorion.keel.clock import SystemClock
from neorion.keel.kube import KubeApi, ObjectMeta
from neorion.keel.kube.core import NAMESPACE, Namespace
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from tests.contracts.kube_api import KubeApiContract
from tests.contracts.kube_control import KubeControlContract

pytestmark = pytest.mark.anyio


@pytest.fixture
def api() -> MemoryApi:
    clock = SystemClock()
    return MemoryApi(MemoryCluster(clock), clock)


@pytest.fixture
async def namespace(api: KubeApi) -> str:
    return (await api.create(NAMESPACE, Namespace(ObjectMeta(name="contract")))).meta.name


class TestMemory(KubeApiContract):
    """In this process."""


class TestControlInMemory(KubeControlContract):
    """What operators count on, in this process."""
