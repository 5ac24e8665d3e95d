"""CoreWeave on a cluster in memory, played by drydock's own player, behind a door that can fail."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from neorion.capacity.coreweave import CoreWeaveProvider
from neorion.capacity.provider import Intent, IntentId
from neorion.drydock.coreweave import FAULT, Fault
from neorion.drydock.coreweave.simulator import CoreWeaveSimulator
from neorion.keel.base import Deadline, Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.kube import ALL, Kind, ListResult, Manifest, Selector
from neorion.keel.kube.errors import Status, StatusDetails, refusal
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

T = TypeVar("T")
H100 = "gd-8xh100ib-i128"
LOCKED_OUT = Status(
    code=403,
    reason="Forbidden",
    message='nodepools.compute.coreweave.com is forbidden: User "navarch" cannot list resource "nodepools"',
    details=StatusDetails(kind="nodepools"),
)


class Door(MemoryApi):
    """`fault` befalls the pools that are created through it; with `lose`, they are created and nobody hears of it."""

    fault: Fault | None = None
    lose = False
    refuse: Status | None = None

    async def create(self, kind: Kind[T], thing: T | Manifest) -> T:
        body: dict[str, Any] = dict(kind.manifest(thing))
        if self.fault is not None:
            body["metadata"] = {**body["metadata"], "annotations": {FAULT: self.fault.value}}
        made = await super().create(kind, body)
        if self.lose:
            raise Deadline("kube.lost", "The connection broke before the answer was complete.")
        return made

    async def list(self, kind: Kind[T], namespace: str = "", select: Selector = ALL) -> ListResult[T]:
        if self.refuse is not None:
            raise refusal(self.refuse)
        return await super().list(kind, namespace, select)


class NodePoolRig:
    def __init__(self, door: Door) -> None:
        self.api = door
        self.provider = CoreWeaveProvider("coreweave", door)
        self.intent = Intent(SystemIds().new(IntentId), "navarch-a", H100, "us-east-04")

    def empty(self) -> None:
        self.api.fault = Fault.NO_CAPACITY

    def fill_quota(self) -> None:
        self.api.fault = Fault.QUOTA

    def lock_out(self) -> None:
        self.api.refuse = LOCKED_OUT

    def lose_answers(self) -> None:
        self.api.lose = True

    def answer_again(self) -> None:
        self.api.lose = False


@asynccontextmanager
async def node_pools() -> AsyncGenerator[NodePoolRig]:
    clock = SystemClock()
    cluster = MemoryCluster(clock)
    player = CoreWeaveSimulator(MemoryApi(cluster, clock, "coreweave"), Duration(0), clock, system_rng())
    stopping = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(player.operator.run, stopping)
        yield NodePoolRig(Door(cluster, clock, "navarch"))
        stopping.set()
