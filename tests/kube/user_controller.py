"""The user controller in a test's own process: what runs beside the bastion in a cluster."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
from anyio.from_thread import start_blocking_portal

from neorion.devservers.adapters.host_keys import HostKeyGenerator
from neorion.devservers.adapters.install import Overlay, bundle
from neorion.devservers.adapters.users import TenantManager, UserRequest
from neorion.devservers.app.user_controller import UserPlan, UserPorts, build_user_controller
from neorion.devservers.model.user import UserQuota
from neorion.devservers.ports import EvidenceChecker, KeyServer
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from tests.kube.new_kinds import install, restart_controllers

PATIENCE = Duration.of(minutes=2)


@asynccontextmanager
async def provisioning(
    client: Client,
    namespace: str = "kube-system",
    key_server: KeyServer | None = None,
    checker: EvidenceChecker | None = None,
) -> AsyncGenerator[None]:
    """Users are provisioned while the block lasts. The lease and the bastion's keys are kept in `namespace`."""
    ports = UserPorts(HostKeyGenerator(), key_server, checker)
    plan = UserPlan("test", namespace)
    controller = build_user_controller(client, plan, SystemClock(), system_rng(), ports)
    stopping = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(controller.run, stopping)
        yield
        stopping.set()


@asynccontextmanager
async def administered(cluster: Cluster) -> AsyncGenerator[Client]:
    """The administrator of an installation, whose users are removed at the end."""
    async with connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test") as client:
        await install(cluster, client, bundle(Overlay.LOCAL))
        yield client
        for user in await TenantManager(client).all():
            await TenantManager(client).remove(user.name, PATIENCE, with_homes=True)


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(60):
        while not await done():
            await SystemClock().sleep(Duration.of(ms=100))


async def provision(client: Client, name: str, quota: UserQuota | None = None) -> None:
    """A user with this quota, ready to work."""
    async with provisioning(client):
        users = TenantManager(client)
        await users.add(name, UserRequest(quota or UserQuota()))
        await users.wait_provisioned(name, PATIENCE)


@contextmanager
def provisioning_beside(cluster: Cluster) -> Generator[None]:
    """For tests of commands, which run loops of their own. The kinds may have come just before."""

    @asynccontextmanager
    async def beside() -> AsyncGenerator[None]:
        async with (
            connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "test") as client,
            provisioning(client),
        ):
            yield

    anyio.run(restart_controllers, cluster)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(beside()):
        yield
