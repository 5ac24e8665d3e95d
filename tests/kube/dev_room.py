"""A namespace for development servers: what is in it, the laws that hold in it, and operators that may be killed in it."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any

import anyio
import yaml

from neorion.devservers.app import OperatorOptions, build
from neorion.devservers.decide import HOME_DELETE_AFTER, SERVER_LABEL, home_name
from neorion.devservers.model import Phase
from neorion.devservers.model.kube_types import (
    DEPLOYMENTS,
    DEVSERVERFLAVORS,
    DEVSERVERS,
    STORAGE_CLASSES,
    DevServerObject,
)
from neorion.devservers.testing import SETTINGS
from neorion.drydock.storage.volumes import CLASS
from neorion.keel.base import Duration
from neorion.keel.clock import Clock, SystemClock, system_rng
from neorion.keel.kube import Kind, KubeApi, KubeObject, MergePatch, ObjectKey, UnknownKind
from neorion.keel.kube.client import Client
from neorion.keel.kube.client.transport import HttpRequest, KubeTransport
from neorion.keel.kube.control import Informer, InformerFactory, Operator, Priority
from neorion.keel.kube.core import CLAIM, DEFINITION, EVENT, POD, SERVICE, PersistentVolumeClaim, Pod
from tests.contracts.kube_control import until

CLOCK, RNG = SystemClock(), system_rng()
# The machine may be busy with other things; what takes longer has gone wrong.
PATIENCE_S = 90.0
CRDS = Path(__file__).parent.parent.parent / "infra/devservers/crds"
# What an operator writes besides its work.
_ASIDE = ("/leases", "/events")


async def define(client: Client) -> None:
    """Installs the kinds of development servers."""
    for file in sorted(CRDS.glob("*.yaml")):
        await client.apply(DEFINITION, yaml.safe_load(file.read_text()), "test")
    for kind in (DEVSERVERS, DEVSERVERFLAVORS):
        await served(client, kind)


async def served(client: Client, kind: Kind[Any]) -> None:
    """Waits until a kind just defined can be used, which is a moment after its definition says so."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            with suppress(UnknownKind):
                await client.list(kind)
                return
            await CLOCK.sleep(Duration.of(ms=50))


class Room:
    """Mirrors of one namespace, wishes to be made in it, and what was seen to go wrong in it."""

    def __init__(self, api: Client, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.informers = InformerFactory(api, CLOCK, RNG)
        self.servers = self.informers.of(DEVSERVERS, namespace)
        self.homes = self.informers.of(CLAIM, namespace)
        self.bodies = self.informers.of(DEPLOYMENTS, namespace)
        self.pods = self.informers.of(POD, namespace)
        self.services = self.informers.of(SERVICE, namespace)
        self.mirrors: tuple[Informer[Any], ...] = (
            self.servers,
            self.homes,
            self.bodies,
            self.pods,
            self.services,
        )
        self.events = self.informers.of(EVENT, namespace)
        self.broken: list[str] = []
        self.pods.listen(self._one_pod)
        self.homes.listen(self._homes_are_kept)

    def _one_pod(self, _before: Pod | None, after: Pod | None, _lane: Priority) -> None:
        owner = after.meta.controller if after else None
        if after is None or (owner is not None and owner.kind == "StatefulSet"):
            return
        living = self.pods_of(after.meta.labels.get(SERVER_LABEL, ""))
        if len(living) > 1:
            self.broken.append(f"two pods at once: {[pod.meta.name for pod in living]}")

    def _homes_are_kept(
        self, before: PersistentVolumeClaim | None, after: PersistentVolumeClaim | None, _lane: Priority
    ) -> None:
        if before is not None and after is None and HOME_DELETE_AFTER not in before.meta.annotations:
            self.broken.append(f"{before.meta.name} went, and nobody had said so")

    async def flavor(self, name: str, cpu: str = "100m", **spec: Any) -> str:
        """Flavors are for the whole cluster: this one carries the name of the room."""
        whole = f"{self.namespace}-{name}"
        resources = {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"cpu": cpu, "memory": "64Mi"}}
        await self.api.create(
            DEVSERVERFLAVORS, {"metadata": {"name": whole}, "spec": {"resources": resources, **spec}}
        )
        return whole

    async def create(self, name: str, flavor: str, **spec: Any) -> DevServerObject:
        whole = {"flavor": flavor, "persistentHomeSize": "1Gi", **spec}
        made = {"metadata": {"name": name, "namespace": self.namespace}, "spec": whole}
        return await self.api.create(DEVSERVERS, made)

    async def change(self, name: str, **spec: Any) -> DevServerObject:
        return await self.api.patch(DEVSERVERS, name, MergePatch({"spec": spec}), self.namespace)

    async def delete(self, name: str) -> None:
        await self.api.delete(DEVSERVERS, name, self.namespace)

    def server(self, name: str) -> DevServerObject | None:
        return self.servers.get(ObjectKey(self.namespace, name))

    def home(self, name: str) -> PersistentVolumeClaim | None:
        return self.homes.get(ObjectKey(self.namespace, home_name(name)))

    def pods_of(self, name: str) -> list[Pod]:
        """Those that live and have a node."""
        return [
            pod
            for pod in self.pods
            if pod.meta.labels.get(SERVER_LABEL) == name and not pod.meta.deleted and pod.spec.node_name
        ]

    def pod(self, name: str) -> Pod:
        [pod] = self.pods_of(name)
        return pod

    def rank_homes(self, name: str) -> dict[str, str]:
        """Names and uids of the homes of a distributed server."""
        return {
            home.meta.name: home.meta.uid for home in self.homes if home.meta.name.startswith(f"home-{name}-")
        }

    def cpu(self, name: str) -> str:
        return self.pod(name).spec.containers[0].resources.requests["cpu"]

    def home_uid(self, name: str) -> str:
        home = self.home(name)
        assert home is not None
        return home.meta.uid

    def told(self, name: str, reason: str) -> bool:
        return any(event.regarding.name == name and event.reason == reason for event in self.events)

    def versions(self, name: str) -> dict[str, str]:
        """Of everything that belongs to one server."""
        return {
            f"{mirror.kind.name} {thing.meta.name}": thing.meta.resource_version
            for mirror in self.mirrors
            for thing in mirror
            if thing.meta.name.startswith(name)
        }

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(holds, *self.mirrors, self.events, patience_s=PATIENCE_S)

    async def _level(self) -> None:
        """Each mirror hears by a stream of its own: one may know already what another is still to hear."""
        with anyio.fail_after(PATIENCE_S):
            for mirror in self.mirrors:
                while _versions((await self.api.list(mirror.kind, self.namespace)).items) != _versions(
                    mirror
                ):
                    await CLOCK.sleep(Duration.of(ms=20))

    async def until_phase(self, name: str, *phases: Phase) -> DevServerObject:
        """In this phase, of the newest wish; and whatever was so by then is known."""

        def reached() -> bool:
            server = self.server(name)
            return (
                server is not None
                and server.status.phase in phases
                and server.status.observed_generation == server.meta.generation
            )

        await self.until(reached)
        found = self.server(name)
        assert found is not None
        await self._level()
        return found

    async def until_gone(self, name: str) -> None:
        await self.until(lambda: self.server(name) is None)
        await self._level()


def _versions(things: Iterable[KubeObject]) -> set[tuple[str, str]]:
    return {(thing.meta.uid, thing.meta.resource_version) for thing in things}


@asynccontextmanager
async def room_in(api: Client, namespace: str) -> AsyncGenerator[Room]:
    room = Room(api, namespace)
    async with anyio.create_task_group() as group:
        group.start_soon(room.informers.run)
        await room.informers.wait_synced()
        yield room
        group.cancel_scope.cancel()
    assert room.broken == []
    # They are the cluster's, and would be left over.
    for flavor in (await api.list(DEVSERVERFLAVORS)).items:
        if flavor.meta.name.startswith(namespace):
            await api.delete(DEVSERVERFLAVORS, flavor.meta.name)


@asynccontextmanager
async def growing_homes(api: Client) -> AsyncGenerator[None]:
    """The class is everybody's."""
    await api.patch(STORAGE_CLASSES, CLASS, MergePatch({"allowVolumeExpansion": True}))
    yield
    await api.patch(STORAGE_CLASSES, CLASS, MergePatch({"allowVolumeExpansion": False}))


class Moment(Enum):
    """When an operator dies at a write: before it has happened, or after, without having heard of it."""

    BEFORE = "before"
    AFTER = "after"


Fate = Callable[[int], Moment | None]


def spared(_number: int) -> None:
    """Nothing happens to this one."""


class Tap(KubeTransport):
    """The way of an operator to its API server: writes are written down, and at one of them it may die.

    It dies by a cancellation of all it does, and the write in hand never returns.
    """

    def __init__(self, inner: KubeTransport, fate: Fate = spared) -> None:
        self.__dict__.update(inner.__dict__)
        self.writes: list[str] = []
        self.life = anyio.CancelScope()
        self._fate = fate

    async def call(self, request: HttpRequest) -> bytes:
        if request.method == "GET" or any(part in request.path for part in _ASIDE):
            return await super().call(request)
        self.writes.append(f"{request.method} {request.path}")
        moment = self._fate(len(self.writes))
        if moment is Moment.BEFORE:
            await self._die()
        answer = await super().call(request)
        if moment is Moment.AFTER:
            await self._die()
        return answer

    async def _die(self) -> None:
        self.life.cancel()
        await anyio.sleep_forever()


def operator(api: KubeApi, namespace: str, identity: str = "one", clock: Clock = CLOCK) -> Operator:
    plan = OperatorOptions(SETTINGS, namespace, identity, scope=namespace)
    return build(api, plan, clock, RNG)


@asynccontextmanager
async def operating(
    client: Client, namespace: str, identity: str = "one", clock: Clock = CLOCK
) -> AsyncGenerator[Tap]:
    """An operator that lives as long as the block; then it finishes what it has in hand."""
    tap = Tap(client.transport)
    stopping = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(operator(Client(tap), namespace, identity, clock).run, stopping)
        yield tap
        stopping.set()


def owned_by(thing: KubeObject, server: DevServerObject) -> bool:
    return any(owner.uid == server.meta.uid for owner in thing.meta.owners)
