"""The platform port over worker Pods of a Kubernetes cluster, with NodePools where a scale group buys its machines.

One wheel turns for every slice and one for every NodePool: what the cluster shows of it decides the next steps. A controller
that comes back finds each slice by its record and goes on where the last one stopped.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

import anyio

from neorion.iris.adapters.platforms.kubernetes import record as records
from neorion.iris.adapters.platforms.kubernetes.applier import Applier
from neorion.iris.adapters.platforms.kubernetes.errors import trouble_of
from neorion.iris.adapters.platforms.kubernetes.informers import SliceInformers
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.pools import RequeueAfter, next_pool_steps
from neorion.iris.adapters.platforms.kubernetes.record import Record
from neorion.iris.adapters.platforms.kubernetes.settings import KubernetesSettings
from neorion.iris.adapters.platforms.kubernetes.steps import Fail, Wait, accepted, describe, next_steps
from neorion.iris.adapters.platforms.slice_watch import SliceBroadcaster, wait_at_most
from neorion.iris.model import SliceId, SliceState
from neorion.iris.ports import SliceRequest, SliceStatus
from neorion.keel.base import Conflict, Duration, Error, Invalid, NotFound, Retry, is_name
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import KubeApi
from neorion.keel.kube.control import Controller, InformerFactory, Operator
from neorion.keel.kube.core import POD, Secret
from neorion.keel.telemetry import logger

log = logger(__name__)


class _Verdict:
    """The outcome of a slice whose buyer still waits."""

    def __init__(self) -> None:
        self.decided = anyio.Event()
        self.error: Error | None = None

    async def wait(self) -> None:
        await self.decided.wait()


class KubernetesPlatform(AbstractAsyncContextManager["KubernetesPlatform"]):
    """Slices of worker Pods. Entering finds existing slices; leaving does not change them."""

    def __init__(self, settings: KubernetesSettings, api: KubeApi, clock: Clock, rng: Rng) -> None:
        self._settings = settings
        self._clock = clock
        self._names = Names(settings.label_prefix, settings.namespace)
        self._broadcaster = SliceBroadcaster()
        # The last published status of each slice, by name: only changes are published.
        self._published: dict[str, SliceStatus] = {}
        self._verdicts: dict[str, _Verdict] = {}
        informers = InformerFactory(api, clock, rng)
        pools = any(template.pool for template in settings.groups.values())
        self._slices = SliceInformers(informers, self._names, pools=pools)
        self._applier = Applier(api, informers, settings, self._names)
        slices = Controller("slices", self._reconcile, clock, rng)
        self._slices.wake_slices(slices)
        controllers = [slices]
        if pools:
            node_pools = Controller("node-pools", self._reconcile_pool, clock, rng)
            self._slices.wake_pools(node_pools)
            controllers.append(node_pools)
        self._informers = informers
        self._operator = Operator(informers, controllers)
        self._exit = AsyncExitStack()

    async def create_slice(self, order: SliceRequest) -> None:
        """Waits a moment for CoreWeave's verdict. A later one arrives through `changes`."""
        if not is_name(order.id) or order.machines < 1:
            raise Invalid("iris.slice_order", f"{order.id[:80]!r} × {order.machines} is not a valid slice.")
        name = self._names.slice(order.group, order.id)
        if self._slices.find(name) is not None:
            return
        verdict = self._verdicts.setdefault(name, _Verdict())
        try:
            await self._applier.order(order)
            await wait_at_most(self._clock, self._settings.acceptance_timeout, verdict.wait)
        finally:
            self._verdicts.pop(name, None)
        if verdict.error is not None:
            raise verdict.error

    async def list_slices(self, group: str) -> Sequence[SliceStatus]:
        return [seen for seen in await self.list_all_slices() if seen.group == group]

    async def list_all_slices(self) -> Sequence[SliceStatus]:
        found = [self._seen(record) for _, record in self._slices.records()]
        return sorted(found, key=lambda seen: seen.id)

    async def describe(self, piece: SliceId) -> SliceStatus:
        for _, record in self._slices.records():
            if record.id == piece:
                return self._seen(record)
        raise NotFound(
            "iris.no_slice", f"There is no slice {piece}.", hint="See which there are: iris slice list."
        )

    async def terminate(self, piece: SliceId) -> None:
        for secret, record in self._slices.records():
            if record.id == piece and not record.deleting:
                await self._applier.note(secret, records.deleting(secret.meta))

    def changes(self) -> AsyncIterator[SliceStatus]:
        return self._broadcaster.listen()

    def discover_controller(self) -> str:
        return self._settings.controller

    @asynccontextmanager
    async def tunnel(self, address: str) -> AsyncGenerator[str, None]:
        """The controller runs inside the cluster, where every address is reached directly."""
        yield address

    async def shutdown(self) -> None:
        changes = self._broadcaster.listen()
        for seen in await self.list_all_slices():
            await self.terminate(seen.id)
        while await self.list_all_slices():
            await anext(changes)

    def _seen(self, record: Record) -> SliceStatus:
        return describe(self._slices.observed(record, self._clock.now()))

    async def _reconcile(self, name: str) -> Duration | None:
        found = self._slices.find(name)
        if found is None:
            await self._delete_orphans(name)
            self._publish_gone(name)
            return None
        secret, record = found
        wait = await self._run_steps(secret, record)
        self._publish(name)
        return wait

    async def _run_steps(self, secret: Secret, record: Record) -> Duration | None:
        wait = None
        template = self._settings.groups.get(record.group)
        seen = self._slices.observed(record, self._clock.now())
        if accepted(seen, template) and (verdict := self._verdicts.get(record.name)) is not None:
            verdict.decided.set()
        for step in next_steps(seen, template, self._settings.capacity_patience):
            if isinstance(step, Fail):
                await self._fail(secret, record, step.error)
            elif isinstance(step, Wait):
                wait = step.span
            else:
                try:
                    await self._applier.apply(secret, record, step)
                except (Retry, Conflict):
                    raise
                except Error as error:
                    await self._fail(secret, record, error)
                    break
        return wait

    async def _reconcile_pool(self, name: str) -> Duration | None:
        wait = None
        seen = self._slices.observed_pool(name, self._clock.now())
        group = seen.slices[0].record.group if seen.slices else ""
        if seen.pool is not None and not seen.slices:
            log.warning("NodePool without a slice", pool=name)
        for step in next_pool_steps(seen):
            if isinstance(step, RequeueAfter):
                wait = step.after
                continue
            try:
                await self._applier.apply_to_pool(group, step)
            except (Retry, Conflict):
                raise
            except Error as error:
                found = self._slices.find(seen.youngest.name) if seen.youngest is not None else None
                if found is None:
                    raise
                await self._fail(*found, error)
                break
        return wait

    async def _fail(self, secret: Secret, record: Record, error: Error) -> None:
        """Fails a waiting `create_slice` and removes the slice. Otherwise the slice stays until it is terminated."""
        verdict = self._verdicts.get(record.name)
        if record.deleting:
            raise error
        if verdict is None:
            log.warning("slice failed", slice=record.id, group=record.group, why=error.sentence)
            patch = records.failed(secret.meta, error.sentence, trouble_of(error))
        else:
            verdict.error = error
            patch = records.deleting(secret.meta)
        await self._applier.note(secret, patch)

    async def _delete_orphans(self, name: str) -> None:
        """Deletes the Pods of a slice whose record is gone."""
        for pod in self._slices.pods_of(name):
            if pod.meta.deleted is None:
                await self._applier.delete(POD, pod)

    def _publish(self, name: str) -> None:
        found = self._slices.find(name)
        if found is None:
            return
        seen = self._seen(found[1])
        if self._published.get(name) != seen:
            self._published[name] = seen
            self._broadcaster.publish(seen)

    def _publish_gone(self, name: str) -> None:
        if (verdict := self._verdicts.get(name)) is not None and verdict.error is not None:
            verdict.decided.set()
        if (last := self._published.pop(name, None)) is not None:
            self._broadcaster.publish(SliceStatus(last.id, last.group, SliceState.DELETING))

    async def __aenter__(self) -> Self:
        group = await self._exit.enter_async_context(anyio.create_task_group())
        self._exit.callback(group.cancel_scope.cancel)
        self._exit.callback(self._broadcaster.close)
        group.start_soon(self._operator.run, anyio.Event(), name="slices")
        await self._informers.wait_synced()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._exit.__aexit__(kind, error, trace)
