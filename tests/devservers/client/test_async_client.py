"""A server as long as a block lasts, on a cluster in memory."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar, cast

import anyio
import pytest
from msgspec.structs import replace

from neorion.devservers.client import AsyncDevServer, CreateRequest, KubeContext, async_client
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS
from neorion.devservers.testing import FLAVOR, a_flavor
from neorion.keel.base import Conflict
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Kind
from neorion.keel.kube.client import Client, ClusterConfig
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

T = TypeVar("T")
NS = "dev-ann"


class FarApi(MemoryApi):
    """Its answers to writes take as long as the test wants."""

    def __init__(self) -> None:
        clock = SystemClock()
        super().__init__(MemoryCluster(clock), clock)
        self.written, self.answers = anyio.Event(), anyio.Event()

    async def create(self, kind: Kind[T], thing: T | Mapping[str, Any]) -> T:
        made = await super().create(kind, thing)
        self.written.set()
        await self.answers.wait()
        return made


@pytest.fixture
async def far(monkeypatch: pytest.MonkeyPatch) -> FarApi:
    api = FarApi()
    api.answers.set()
    await api.create(DEVSERVERFLAVORS, a_flavor(replace(FLAVOR, default=True), "cpu-small"))
    api.written, api.answers = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def connect(*_: object) -> AsyncGenerator[Client]:
        yield cast("Client", api)

    monkeypatch.setattr(async_client, "connect", connect)
    return api


def server(*, keep: bool = False) -> AsyncDevServer:
    return AsyncDevServer(
        "mydev", KubeContext(ClusterConfig("https://127.0.0.1:1"), NS), CreateRequest(name="mydev"), keep=keep
    )


async def names(api: FarApi) -> list[str]:
    return [one.meta.name for one in (await api.list(DEVSERVERS, NS)).items]


async def enter(block: AbstractAsyncContextManager[object]) -> None:
    async with block:
        pytest.fail("nobody operates this cluster")


async def leave(far: FarApi, block: AsyncDevServer) -> None:
    """Waits for the server until its request is out, and hears of it only when the time to wait is over."""
    async with asyncio.timeout(None) as patience, anyio.create_task_group() as group:

        async def run_out() -> None:
            await far.written.wait()
            patience.reschedule(asyncio.get_running_loop().time())
            # Behind the end of the time, which is due already.
            asyncio.get_running_loop().call_later(0, far.answers.set)

        group.start_soon(run_out)
        await enter(block)


@pytest.mark.parametrize(("block", "left"), [(server(), []), (server(keep=True), ["mydev"])])
async def test_who_leaves_while_a_server_is_being_made_does_not_pay_for_it(
    far: FarApi, block: AsyncDevServer, left: list[str]
):
    with pytest.raises(TimeoutError):
        await leave(far, block)
    assert far.answers.is_set()
    assert await names(far) == left


async def test_an_answer_that_never_comes_is_not_waited_for_for_ever(
    far: FarApi, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(async_client, "_LAST_WORD_S", 0.0)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(enter, server())
            await far.written.wait()
            scope.cancel()
    assert scope.cancelled_caught


async def test_a_name_that_is_taken_is_refused_and_its_server_stays(far: FarApi):
    far.answers.set()
    await far.create(
        DEVSERVERS, {"metadata": {"name": "mydev", "namespace": NS}, "spec": {"flavor": "cpu-small"}}
    )
    with pytest.raises(Conflict) as refused:
        await enter(server())
    assert refused.value.code == "devservers.exists"
    assert await names(far) == ["mydev"]
