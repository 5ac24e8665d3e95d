"""The provider port over NodePools."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TypeVar

import anyio

from neorion.capacity.coreweave.errors import promised, queued, refusal, verdict
from neorion.capacity.coreweave.nodepools import INTENT, NODE_POOL, OWNER, NodePool, machine_of, pool_of
from neorion.capacity.provider import (
    Capability,
    Intent,
    Machine,
    MachineId,
    Offering,
    no_machine,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Duration, Error, NotFound, is_name
from neorion.keel.kube import Added, AlreadyExists, DeleteOptions, KubeApi, Modified, Selector
from neorion.keel.kube.core import NODE, Node

T = TypeVar("T")

# CoreWeave validates a new pool within seconds; the machine itself takes half an hour.
PATIENCE: Final = Duration.of(seconds=20)
# A pool that is queued may still be filled: it is not given up as quickly as one without an answer.
QUEUE_PATIENCE: Final = Duration.of(minutes=2)


class CoreWeaveProvider:
    """CoreWeave through one cluster, which is in one region."""

    capabilities = frozenset({Capability.SPOT})

    def __init__(
        self,
        name: str,
        api: KubeApi,
        patience: Duration = PATIENCE,
        queue_patience: Duration = QUEUE_PATIENCE,
    ) -> None:
        self.name = name
        self._api = api
        self._patience = patience
        self._queue_patience = queue_patience

    async def provision(self, intent: Intent) -> Machine:
        """Creates a pool named after the intent, so a repeated call finds it.

        Removes a pool that is rejected or queued.
        """
        if intent.zone or intent.reservation or intent.image or intent.startup:
            raise refused(self.name, "a NodePool takes no zone, reservation, image or start script")
        scope = intent.region or "its cluster"
        try:
            pool = await self._ensure(intent)
            if pool.meta.deleted:
                return machine_of(pool, None)
            pool = await self._judged(pool)
            # A queued pool is removed too, because the buyer tries other clouds before it waits.
            error = verdict(self.name, scope, pool) or queued(self.name, scope, pool)
            if error is not None:
                await self._remove(pool)
        except Error as failure:
            raise self._translated(scope, failure) from None
        if error is None and not promised(pool):
            error = unknown_outcome(self.name, f"{intent.id} was not judged within {self._patience}")
        if error is not None:
            raise error
        return machine_of(pool, None)

    async def list(self, owner: str) -> Sequence[Machine]:
        try:
            mine = Selector(labels=f"{OWNER}={owner}")
            pools = (await self._api.list(NODE_POOL, select=mine)).items
            nodes = (await self._api.list(NODE, select=mine)).items if pools else ()
        except Error as error:
            raise self._translated(owner, error) from None
        there = {node.meta.labels.get(INTENT, ""): node for node in nodes}
        return [machine_of(pool, there.get(pool.meta.name)) for pool in pools]

    async def describe(self, machine: MachineId) -> Machine:
        pool = await self._pool(machine)
        try:
            nodes: Sequence[Node] = (
                await self._api.list(NODE, select=Selector(labels=f"{INTENT}={pool.meta.name}"))
            ).items
        except Error as error:
            raise self._translated(machine, error) from None
        return machine_of(pool, nodes[0] if nodes else None)

    async def terminate(self, machine: MachineId) -> None:
        pool = await self._pool(machine)
        try:
            await self._remove(pool)
        except Error as error:
            raise self._translated(machine, error) from None

    async def reboot(self, machine: MachineId) -> None:
        """Refuses: CoreWeave reboots its machines itself, so REBOOT is not among the capabilities."""
        raise refused(self.name, f"{machine} cannot be rebooted from here")

    async def offerings(self, instance_types: Sequence[str]) -> Sequence[Offering]:
        del instance_types
        return []

    async def _ensure(self, intent: Intent) -> NodePool:
        try:
            return await self._api.create(NODE_POOL, pool_of(intent))
        except AlreadyExists:
            pool = await self._api.get(NODE_POOL, intent.id)
        if pool.meta.labels.get(OWNER) != intent.owner:
            raise refused(self.name, f"the NodePool {intent.id} belongs to another owner")
        return pool

    async def _judged(self, pool: NodePool) -> NodePool:
        """Waits until CoreWeave accepts or rejects the pool, up to the patience, and returns its latest state."""
        one = Selector(fields=f"metadata.name={pool.meta.name}")
        queue_until = anyio.current_time() + self._queue_patience.seconds
        with anyio.move_on_after(self._patience.seconds) as wait:
            async with self._api.watch(NODE_POOL, select=one) as events:
                async for event in events:
                    if isinstance(event, Added | Modified):
                        pool = event.object
                    if queued(self.name, "", pool) is not None:
                        wait.deadline = queue_until
                    if promised(pool) or verdict(self.name, "", pool) is not None:
                        break
        return pool

    async def _remove(self, pool: NodePool) -> None:
        with suppress(NotFound):
            await self._api.delete(NODE_POOL, pool.meta.name, how=DeleteOptions(uid=pool.meta.uid))

    async def _pool(self, machine: MachineId) -> NodePool:
        """Returns the pool of a machine. Pools of other programs do not count."""
        if not is_name(machine):
            raise no_machine(self.name, machine)
        try:
            pool = await self._api.get(NODE_POOL, machine)
        except Error as error:
            raise self._translated(machine, error) from None
        if pool.meta.labels.get(INTENT) != machine:
            raise no_machine(self.name, machine)
        return pool

    def _translated(self, scope: str, error: Error) -> Error:
        return error if error.code.startswith("provider.") else refusal(self.name, scope, error)
