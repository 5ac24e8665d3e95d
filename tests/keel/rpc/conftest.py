"""The world of the rpc tests, once over a real socket and once in memory."""

import pytest

from tests.keel.rpc.world import OpenWorld, in_memory, over_socket


@pytest.fixture(params=[over_socket, in_memory], ids=["socket", "memory"])
def world(request: pytest.FixtureRequest) -> OpenWorld:
    return request.param
