from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from neorion.devservers.adapters.host_keys import HostKeyGenerator
from neorion.devservers.controllers import ClusterCache, DevServerController, Writers
from neorion.devservers.controllers.host_keys import give_host_key, host_key_is_gone
from neorion.devservers.decide import OwnerIdentity
from neorion.devservers.model.kube_types import DEPLOYMENTS, DEVSERVERFLAVORS, DEVSERVERS
from neorion.devservers.testing import SETTINGS, a_flavor
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.control import UNFENCED, Applier, EventRecorder, InformerFactory
from neorion.keel.kube.core import EVENT, SECRET
from neorion.keel.kube.interface import Bookmark
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio

SERVER = OwnerIdentity("mydev", "dev-ann", "1")


def api() -> MemoryApi:
    clock = SystemClock()
    return MemoryApi(MemoryCluster(clock), clock, "operator")


async def test_a_server_gets_a_key_of_its_own():
    there = api()
    public = await give_host_key(there, UNFENCED, HostKeyGenerator(), SERVER)
    assert public.startswith("ssh-ed25519 ")
    secret = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    assert [owner.uid for owner in secret.meta.owners] == ["1"]


async def test_a_key_that_nobody_wrote_down_is_replaced_and_never_read():
    there = api()
    await give_host_key(there, UNFENCED, HostKeyGenerator(), SERVER)
    before = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    await give_host_key(there, UNFENCED, HostKeyGenerator(), SERVER)
    after = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    assert before.meta.uid != after.meta.uid


async def test_whether_a_key_is_there_is_found_out_without_reading_or_touching_it():
    there = api()
    assert await host_key_is_gone(there, UNFENCED, SERVER)
    await give_host_key(there, UNFENCED, HostKeyGenerator(), SERVER)
    before = await there.get(SECRET, "mydev-ssh-host", "dev-ann")
    assert not await host_key_is_gone(there, UNFENCED, SERVER)
    assert await there.get(SECRET, "mydev-ssh-host", "dev-ann") == before


class Shop:
    """An operator's writers with tools for SSH, and one server that was asked for."""

    def __init__(self) -> None:
        clock = SystemClock()
        self.api = api()
        informers = InformerFactory(self.api, clock, system_rng())
        self.cache = ClusterCache(informers)
        self.informers = informers
        self.recorder = EventRecorder(self.api, "devservers.io/operator", "one", clock)
        writers = Writers(
            self.api,
            Applier(self.api, "devservers", informers),
            self.recorder,
            UNFENCED,
            keys=HostKeyGenerator(),
        )
        self.servers = DevServerController(
            self.cache, writers, replace(SETTINGS, tools_image="tools:1"), clock
        )

    async def look(self) -> str | None:
        """The host key that the server tells of after the operator has looked at it."""
        await self.servers.reconcile(ObjectKey("dev-ann", "mydev"))
        return (await self.api.get(DEVSERVERS, "mydev", "dev-ann")).status.ssh_host_key

    async def run(self, *, running: bool) -> None:
        changed = await self.api.patch(
            DEVSERVERS, "mydev", MergePatch({"spec": {"running": running}}), "dev-ann"
        )
        self.informers.observe(DEVSERVERS, changed)


@asynccontextmanager
async def shop() -> AsyncGenerator[Shop]:
    made = Shop()
    async with anyio.create_task_group() as group:
        group.start_soon(made.recorder.run)
        await made.api.create(DEVSERVERFLAVORS, a_flavor())
        server = {"metadata": {"name": "mydev", "namespace": "dev-ann"}, "spec": {"flavor": "cpu-small"}}
        made.informers.observe(DEVSERVERS, await made.api.create(DEVSERVERS, server))
        made.informers.observe(DEVSERVERFLAVORS, await made.api.get(DEVSERVERFLAVORS, "cpu-small"))
        yield made
        group.cancel_scope.cancel()


async def test_a_server_whose_key_was_deleted_starts_with_another_and_says_so():
    async with shop() as one:
        first = await one.look()
        await one.run(running=False)
        assert await one.look() == first
        await one.api.delete(SECRET, "mydev-ssh-host", "dev-ann")
        await one.run(running=True)
        second = await one.look()
        assert second not in {None, first}
        assert await one.api.get(SECRET, "mydev-ssh-host", "dev-ann")
        body = await one.api.get(DEPLOYMENTS, "mydev", "dev-ann")
        assert (body.spec.replicas, len(body.spec.template.spec.init_containers)) == (1, 1)
        async with one.api.watch(EVENT, "dev-ann") as events:
            async for event in events:
                if not isinstance(event, Bookmark) and event.object.reason == "HostKeyChanged":
                    break


async def test_a_key_that_is_there_stays_through_every_stop():
    async with shop() as one:
        first = await one.look()
        secret = await one.api.get(SECRET, "mydev-ssh-host", "dev-ann")
        await one.run(running=False)
        await one.look()
        await one.run(running=True)
        assert await one.look() == first
        assert await one.api.get(SECRET, "mydev-ssh-host", "dev-ann") == secret


def test_the_private_half_shows_itself_nowhere():
    key = HostKeyGenerator().host_key()
    assert key.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
    assert "PRIVATE" not in repr(key)
