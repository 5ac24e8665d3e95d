"""A request for a server whose answer is lost on its way: it may have been carried out or not."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import pytest
from msgspec.structs import replace

from neorion.devservers.client import AsyncDevServer, CreateRequest, DevServerApi, KubeContext, async_client
from neorion.devservers.client import api as api_module
from neorion.devservers.model.kube_types import DEVSERVERFLAVORS, DEVSERVERS, DevServerObject
from neorion.devservers.testing import FLAVOR, a_flavor
from neorion.keel.base import Conflict, Deadline, Duration, Retry
from neorion.keel.clock import SystemClock
from neorion.keel.kube import Kind
from neorion.keel.kube.client import Client, ClusterConfig
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

T = TypeVar("T")
NS = "dev-ann"
LOST = Deadline("kube.lost", "The connection broke before the answer was complete.")
AWAY = Retry("kube.unreachable", "The API server cannot be reached.")


class TornApi(MemoryApi):
    """The wire breaks while a server is asked for, before it is made or after, and stays broken for a while."""

    def __init__(self) -> None:
        clock = SystemClock()
        super().__init__(MemoryCluster(clock), clock)
        self.breaks = ""
        self.away = 0

    async def create(self, kind: Kind[T], thing: T | Mapping[str, Any]) -> T:
        self._reach()
        breaks, self.breaks = self.breaks, ""
        made = None if breaks == "before" else await super().create(kind, thing)
        if made is None or breaks:
            raise LOST
        return made

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        self._reach()
        return await super().get(kind, name, namespace)

    def _reach(self) -> None:
        if self.away and not self.breaks:
            self.away -= 1
            raise AWAY


@pytest.fixture
async def torn(monkeypatch: pytest.MonkeyPatch) -> TornApi:
    api = TornApi()
    await api.create(DEVSERVERFLAVORS, a_flavor(replace(FLAVOR, default=True), "cpu-small"))
    monkeypatch.setattr(api_module, "_LOOKS", (Duration(0),) * 4)
    return api


async def ask(api: TornApi) -> DevServerObject:
    return await DevServerApi(cast("Client", api), NS, SystemClock()).create(CreateRequest(name="mydev"))


async def uids(api: TornApi) -> list[str]:
    return [one.meta.uid for one in (await api.list(DEVSERVERS, NS)).items]


@pytest.mark.parametrize("breaks", ["before", "after"])
@pytest.mark.parametrize("away", [0, 3])
async def test_who_asked_for_a_server_gets_it_though_the_answer_was_lost(
    torn: TornApi, breaks: str, away: int
):
    torn.breaks, torn.away = breaks, away
    server = await ask(torn)
    assert await uids(torn) == [server.meta.uid]


async def test_a_server_of_that_name_that_somebody_else_made_meanwhile_is_not_taken_for_ones_own(
    torn: TornApi,
):
    other = {"metadata": {"name": "mydev", "namespace": NS}, "spec": {"flavor": "cpu-small"}}
    await torn.create(DEVSERVERS, other)
    torn.breaks = "before"
    with pytest.raises(Conflict) as refused:
        await ask(torn)
    assert refused.value.code == "devservers.exists"


async def test_who_cannot_be_told_is_told_how_to_look(torn: TornApi):
    torn.breaks, torn.away = "after", 1_000
    with pytest.raises(Deadline) as unsure:
        await ask(torn)
    assert unsure.value.code == "devservers.unsure"
    assert "devctl delete mydev" in unsure.value.hint


async def test_a_block_deletes_the_server_whose_answer_was_lost(
    torn: TornApi, monkeypatch: pytest.MonkeyPatch
):
    @asynccontextmanager
    async def connect(*_: object) -> AsyncGenerator[Client]:
        yield cast("Client", torn)

    async def nobody_waits(*_: object) -> None:
        assert len(await uids(torn)) == 1

    monkeypatch.setattr(async_client, "connect", connect)
    monkeypatch.setattr(async_client, "wait_ready", nobody_waits)
    torn.breaks = "after"
    async with AsyncDevServer(
        "mydev",
        KubeContext(ClusterConfig("https://127.0.0.1:1"), NS),
        CreateRequest(name="mydev"),
        keep=False,
    ):
        assert len(await uids(torn)) == 1
    assert await uids(torn) == []
