"""Open connections as DevServerSessions: shown by each replica, and closed when they are deleted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from neorion.devservers.bastion import Replica, SessionObjects
from neorion.devservers.bastion.sessions import OpenConnection, Sessions
from neorion.devservers.model.kube_types import SESSIONS
from neorion.devservers.model.tenancy import SYSTEM_NAMESPACE
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

pytestmark = pytest.mark.anyio


@dataclass
class OneReplica:
    """A bastion process, as far as its sessions go."""

    sessions: Sessions = field(default_factory=Sessions)
    cut: list[str] = field(default_factory=list[str])

    def open(self, name: str) -> OpenConnection:
        made = OpenConnection(
            name, "ann", "192.0.2.1", b"", "now", lambda why: self.cut.append(f"{name}: {why}")
        )
        self.sessions.add(made)
        return made


@asynccontextmanager
async def replica(api: MemoryApi, name: str) -> AsyncGenerator[OneReplica]:
    clock, rng = SystemClock(), system_rng()
    made, informers = OneReplica(), InformerFactory(api, clock, rng)
    loop = SessionObjects(api, informers, made.sessions, Replica(name)).loop(clock, rng)
    async with anyio.create_task_group() as group:
        group.start_soon(informers.run)
        await informers.wait_synced()
        group.start_soon(loop.run)
        yield made
        group.cancel_scope.cancel()


async def until_shown(api: MemoryApi, *expected: str) -> None:
    with anyio.fail_after(10):
        while True:
            found = (await api.list(SESSIONS, SYSTEM_NAMESPACE)).items
            if sorted(one.meta.name for one in found) == sorted(expected):
                return
            await SystemClock().sleep(Duration.of(ms=10))


@pytest.fixture
def api() -> MemoryApi:
    clock = SystemClock()
    return MemoryApi(MemoryCluster(clock), clock, "bastion")


async def test_the_sessions_of_two_replicas_are_seen_together(api: MemoryApi):
    async with replica(api, "bastion-0") as one, replica(api, "bastion-1") as two:
        first, _ = one.open("ssh-a"), two.open("ssh-b")
        await until_shown(api, "ssh-a", "ssh-b")
        one.sessions.remove(first)
        await until_shown(api, "ssh-b")
        assert one.cut == two.cut == []


async def test_a_deleted_object_closes_its_connection_and_no_other(api: MemoryApi):
    async with replica(api, "bastion-0") as one, replica(api, "bastion-1") as two:
        killed, _ = one.open("ssh-a"), one.open("ssh-c")
        two.open("ssh-b")
        await until_shown(api, "ssh-a", "ssh-b", "ssh-c")
        await api.delete(SESSIONS, "ssh-a", SYSTEM_NAMESPACE)
        with anyio.fail_after(10):
            while not one.cut:
                await SystemClock().sleep(Duration.of(ms=10))
        assert (one.cut, two.cut) == (["ssh-a: an administrator ended the session"], [])
        one.sessions.remove(killed)
        await until_shown(api, "ssh-b", "ssh-c")


async def test_a_replica_that_starts_again_removes_what_its_killed_process_left(api: MemoryApi):
    async with replica(api, "bastion-0") as one:
        one.open("ssh-a")
        await until_shown(api, "ssh-a")
    async with replica(api, "bastion-0") as again:
        again.open("ssh-d")
        await until_shown(api, "ssh-d")
