"""Carries out steps: each is safe to repeat, and meant for the very object that was seen."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from neorion.capacity.coreweave import NODE_POOL, NodePool
from neorion.iris.adapters.platforms.kubernetes import record as records
from neorion.iris.adapters.platforms.kubernetes.errors import platform_error
from neorion.iris.adapters.platforms.kubernetes.manifests import pod_manifest, pool_manifest
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.pools import (
    CORDONED,
    AssignNode,
    CordonNode,
    CreatePool,
    DeletePool,
    PoolStep,
    ReleaseNode,
    ResizePool,
)
from neorion.iris.adapters.platforms.kubernetes.record import Record, secret_of
from neorion.iris.adapters.platforms.kubernetes.settings import KubernetesSettings
from neorion.iris.adapters.platforms.kubernetes.steps import (
    CreatePod,
    DeletePod,
    DeleteRecord,
    MarkStarted,
    Step,
)
from neorion.iris.ports import SliceRequest
from neorion.keel.base import Conflict, Error, Invalid, NotFound, Retry
from neorion.keel.kube import AlreadyExists, DeleteOptions, Kind, KubeApi, KubeObject, MergePatch
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import NODE, POD, SECRET, Node, Secret


class Applier:
    """The only writer of a platform's objects. What it writes is in the informers when it returns."""

    def __init__(
        self, api: KubeApi, informers: InformerFactory, settings: KubernetesSettings, names: Names
    ) -> None:
        self._api = api
        self._informers = informers
        self._settings = settings
        self._names = names

    async def order(self, order: SliceRequest) -> None:
        """Writes the record; the wheel does the rest."""
        template = self._settings.groups.get(order.group)
        shared = template is not None and template.pool is not None and template.pool.shared
        pool = self._names.shared_pool(order.group) if shared else ""
        try:
            await self._create(SECRET, secret_of(order, self._names, pool))
        except (Retry, Conflict):
            raise
        except Error as error:
            raise platform_error(order.group, error) from None

    async def apply(self, secret: Secret, record: Record, step: Step) -> None:
        """Raises what a refusal means to the autoscaler, or what passes by itself."""
        try:
            await self._apply(secret, record, step)
        except (Retry, Conflict):
            raise
        except Error as error:
            raise platform_error(record.group, error) from None

    async def apply_to_pool(self, group: str, step: PoolStep) -> None:
        """Raises what a refusal means to the autoscaler, or what passes by itself."""
        try:
            await self._apply_to_pool(step)
        except (Retry, Conflict):
            raise
        except Error as error:
            raise platform_error(group, error) from None

    async def note(self, secret: Secret, patch: dict[str, Any]) -> None:
        """Changes the record, unless it is gone."""
        meta = secret.meta
        with suppress(NotFound):
            written = await self._api.patch(SECRET, meta.name, MergePatch(patch), meta.namespace)
            self._informers.observe(SECRET, written)

    async def delete(self, kind: Kind[Any], thing: KubeObject) -> None:
        """Deletes this very object. One that is gone or was replaced is left alone."""
        meta = thing.meta
        with suppress(NotFound, Conflict):
            await self._api.delete(kind, meta.name, meta.namespace, DeleteOptions(uid=meta.uid))

    async def _apply(self, secret: Secret, record: Record, step: Step) -> None:
        match step:
            case CreatePod(number):
                await self._create(POD, pod_manifest(record, number, self._settings, self._names))
            case MarkStarted():
                await self.note(secret, records.started(secret.meta))
            case DeletePod(pod):
                await self.delete(POD, pod)
            case DeleteRecord():
                await self.delete(SECRET, secret)
            case _:
                pass

    async def _apply_to_pool(self, step: PoolStep) -> None:
        match step:
            case CreatePool(record, target):
                await self._create_pool(record, target)
            case ResizePool(pool, target):
                change = {"metadata": {"uid": pool.meta.uid}, "spec": {"targetNodes": target}}
                written = await self._api.patch(NODE_POOL, pool.meta.name, MergePatch(change))
                self._informers.observe(NODE_POOL, written)
            case DeletePool(pool):
                await self.delete(NODE_POOL, pool)
            case AssignNode(node, record):
                freed = CORDONED in node.meta.annotations
                slice_label = {self._names.slice_id: str(record.id)}
                await self._change_node(node, slice_label, cordoned=False if freed else None)
            case CordonNode(node):
                await self._change_node(node, {}, cordoned=True)
            case ReleaseNode(node):
                await self._change_node(node, {self._names.slice_id: None}, cordoned=None)
            case _:
                pass

    async def _create_pool(self, record: Record, target: int) -> None:
        """A pool of that name may be there: of an earlier controller, or of another owner."""
        group = self._settings.groups.get(record.group)
        if group is None or group.pool is None:
            return
        manifest = pool_manifest(record, target, group.pool, self._names)
        try:
            pool: NodePool = await self._api.create(NODE_POOL, manifest)
        except AlreadyExists:
            pool = await self._api.get(NODE_POOL, record.pool)
        if pool.meta.labels.get(self._names.installation) != self._names.namespace:
            raise Invalid(
                "iris.pool_taken",
                f"The NodePool {record.pool} belongs to another installation.",
                hint="Delete it, or choose another label_prefix.",
            )
        self._informers.observe(NODE_POOL, pool)

    async def _change_node(
        self, node: Node, labels: Mapping[str, str | None], *, cordoned: bool | None
    ) -> None:
        """Changes this very node; `cordoned` None leaves it as it is."""
        meta: dict[str, Any] = {"uid": node.meta.uid, "labels": dict(labels)}
        body: dict[str, Any] = {"metadata": meta}
        if cordoned is not None:
            meta["annotations"] = {CORDONED: "true" if cordoned else None}
            body["spec"] = {"unschedulable": cordoned}
        with suppress(NotFound):
            self._informers.observe(NODE, await self._api.patch(NODE, node.meta.name, MergePatch(body)))

    async def _create(self, kind: Kind[Any], manifest: dict[str, Any]) -> None:
        """An object of that name is this one: names carry the slice's id, which is used once."""
        with suppress(AlreadyExists):
            self._informers.observe(kind, await self._api.create(kind, manifest))
