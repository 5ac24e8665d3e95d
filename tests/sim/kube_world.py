"""Two replicas of a small operator, an API server between them and the truth, and people who change their minds."""

from functools import partial
from typing import Any

import anyio

from neorion.keel.base import Deadline, Error, Finding, Retry, Severity
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.control import LeaderLeaseTiming
from neorion.keel.kube.core import CONFIG_MAP, EVENT, LEASE
from neorion.keel.kube.testing import MemoryApi, MemoryCluster, WriteRequest
from neorion.keel.sim import Host, LinkConditions, World
from tests.contracts.kube_api import WIDGET
from tests.keel.kube.control.widgets import LEASE_KEY, Surroundings, WidgetOperator, widget

REPLICAS = ("one", "two")
WIDGETS = 6
# What a client waits for an answer; well within the time between one holder's stop and the next one's start.
ANSWER_S = 0.5
# What may be written without the lease: the lease itself, and news.
_ANYBODYS = frozenset({LEASE.resource, EVENT.resource})


class WiredApi(MemoryApi):
    """Reads at once, writes over the network: what a paused or slow host has not sent cannot arrive."""

    def __init__(self, world: World, cluster: MemoryCluster, host: Host, identity: str) -> None:
        super().__init__(cluster, host.clock, identity)
        self._world = world
        self._identity = identity

    async def create(self, *args: Any, **options: Any) -> Any:
        return await self._send("create", args, options)

    async def apply(self, *args: Any, **options: Any) -> Any:
        return await self._send("apply", args, options)

    async def patch(self, *args: Any, **options: Any) -> Any:
        return await self._send("patch", args, options)

    async def replace(self, *args: Any, **options: Any) -> Any:
        return await self._send("replace", args, options)

    async def delete(self, *args: Any, **options: Any) -> Any:
        return await self._send("delete", args, options)

    async def _send(self, verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        try:
            with anyio.fail_after(ANSWER_S):
                return await self._world.network.call("api:write", (self._identity, verb, args, options))
        except TimeoutError:
            raise Deadline("test.timeout", "The server did not answer.") from None


class Truth:
    """What the API server knows, and the law it watches over: who writes holds the lease."""

    def __init__(self, world: World, lease: ObjectKey = LEASE_KEY) -> None:
        self.cluster = MemoryCluster(world.clock)
        self.cluster.admit = self.admit
        self._lease = lease
        self.found: list[Finding] = []
        self.writes = 0

    def violations(self) -> list[Finding]:
        return self.found

    def admit(self, request: WriteRequest) -> None:
        if request.resource in _ANYBODYS or not request.user.startswith(REPLICAS):
            return
        self.writes += 1
        lease = self.cluster.entries(LEASE).get(self._lease)
        holder = lease.body["spec"].get("holderIdentity") if lease else None
        if holder != request.user:
            sentence = f"{request.user} does {request.verb} {request.resource} while {holder} holds the lease"
            self.found.append(Finding(Severity.ERROR, "kube.two_writers", str(request.key), sentence))


async def api_server(host: Host, world: World, truth: Truth) -> None:
    async def write(_caller: str, request: tuple[str, str, tuple[Any, ...], dict[str, Any]]) -> object:
        identity, verb, args, options = request
        return await getattr(MemoryApi(truth.cluster, host.clock, identity), verb)(*args, **options)

    with world.network.serve("api:write", write):
        await anyio.sleep_forever()


async def replica(
    host: Host, world: World, truth: Truth, boots: dict[str, int], tenure: LeaderLeaseTiming
) -> None:
    boots[host.name] = boots.get(host.name, 0) + 1
    identity = f"{host.name}-{boots[host.name]}"
    api = WiredApi(world, truth.cluster, host, identity)
    program = WidgetOperator(Surroundings(api, host.clock, host.rng, identity), tenure=tenure)
    await program.operator.run(anyio.Event())


async def people(world: World, api: MemoryApi, changes: int) -> None:
    """Create, resize and delete widgets, and edit and delete what is not theirs."""
    for _ in range(changes):
        await world.sleep(world.rng.uniform(0, 1))
        name = f"w{world.rng.randrange(0, WIDGETS)}"
        size = world.rng.randrange(0, 100)
        act = world.rng.choice((_create, _resize, _delete, _vandalize, _remove_config))
        try:
            await act(api, name, size)
        except Error as error:
            world.note(f"people: {error.code}")


async def _create(api: MemoryApi, name: str, size: int) -> None:
    await api.create(WIDGET, widget(name, size))


async def _resize(api: MemoryApi, name: str, size: int) -> None:
    await api.patch(WIDGET, name, MergePatch({"spec": {"size": size}}), "default")


async def _delete(api: MemoryApi, name: str, _size: int) -> None:
    await api.delete(WIDGET, name, "default")


async def _vandalize(api: MemoryApi, name: str, size: int) -> None:
    await api.patch(CONFIG_MAP, name, MergePatch({"data": {"size": f"vandal {size}"}}), "default")


async def _remove_config(api: MemoryApi, name: str, _size: int) -> None:
    await api.delete(CONFIG_MAP, name, "default")


async def unlike_wanted(api: MemoryApi) -> list[str]:
    """The widgets that do not have what they should have."""
    configs = {config.meta.key: config for config in (await api.list(CONFIG_MAP)).items}
    wrong = list[str]()
    for one in (await api.list(WIDGET)).items:
        config = configs.get(ObjectKey("default", one.meta.name))
        if config is None or config.data != {"size": str(one.spec.size)} or one.status.ready != one.spec.size:
            wrong.append(one.meta.name)
    return wrong


def start(world: World, tenure: LeaderLeaseTiming) -> tuple[Truth, MemoryApi]:
    truth = Truth(world)
    # Slow enough that whatever happens to a host mostly happens while it waits for an answer.
    world.links.weather = LinkConditions(delay_s=(0.01, 0.15))
    world.check(truth.violations)
    world.host("api").start(partial(api_server, world=world, truth=truth))
    boots = dict[str, int]()
    for name in REPLICAS:
        world.host(name).start(partial(replica, world=world, truth=truth, boots=boots, tenure=tenure))
    return truth, MemoryApi(truth.cluster, world.clock, "people")


def broken() -> Exception:
    return Retry("test.cut", "The connection broke.")
