"""Carries out steps: each is safe to repeat, and meant for the very object that was seen."""

from contextlib import suppress
from typing import Any

from neorion.capacity.coreweave import NODE_POOL
from neorion.iris.adapters.platforms.kubernetes import record as records
from neorion.iris.adapters.platforms.kubernetes.errors import platform_error
from neorion.iris.adapters.platforms.kubernetes.manifests import pod_manifest, pool_manifest
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.adapters.platforms.kubernetes.record import Record, secret_of
from neorion.iris.adapters.platforms.kubernetes.settings import KubernetesSettings
from neorion.iris.adapters.platforms.kubernetes.steps import (
    CreatePod,
    CreatePool,
    DeletePod,
    DeletePool,
    Forget,
    MarkStarted,
    Step,
)
from neorion.iris.ports import SliceRequest
from neorion.keel.base import Conflict, Error, NotFound, Retry
from neorion.keel.kube import AlreadyExists, DeleteOptions, Kind, KubeApi, KubeObject, MergePatch
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import POD, SECRET, Secret


class Applier:
    """The only writer of a platform's objects. What it writes is in the mirrors when it returns."""

    def __init__(
        self, api: KubeApi, informers: InformerFactory, settings: KubernetesSettings, names: Names
    ) -> None:
        self._api = api
        self._informers = informers
        self._settings = settings
        self._names = names

    async def order(self, order: SliceRequest) -> None:
        """Writes the record; the wheel does the rest."""
        try:
            await self._create(SECRET, secret_of(order, self._names))
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

    async def note(self, secret: Secret, patch: dict[str, Any]) -> None:
        """Changes the record, unless it is gone."""
        meta = secret.meta
        with suppress(NotFound):
            written = await self._api.patch(SECRET, meta.name, MergePatch(patch), meta.namespace)
            self._informers.observe(SECRET, written)

    async def delete(self, kind: Kind[Any], thing: KubeObject) -> None:
        """Of an object that is gone already, or replaced by another of its name, nothing is deleted."""
        meta = thing.meta
        with suppress(NotFound, Conflict):
            await self._api.delete(kind, meta.name, meta.namespace, DeleteOptions(uid=meta.uid))

    async def _apply(self, secret: Secret, record: Record, step: Step) -> None:
        match step:
            case CreatePool():
                template = self._settings.groups[record.group].pool
                if template is not None:
                    await self._create(NODE_POOL, pool_manifest(record, template, self._names))
            case CreatePod(number):
                await self._create(POD, pod_manifest(record, number, self._settings, self._names))
            case MarkStarted():
                await self.note(secret, records.started(secret.meta))
            case DeletePod(pod):
                await self.delete(POD, pod)
            case DeletePool(pool):
                await self.delete(NODE_POOL, pool)
            case Forget():
                await self.delete(SECRET, secret)
            case _:
                pass

    async def _create(self, kind: Kind[Any], manifest: dict[str, Any]) -> None:
        """An object of that name is this one: names carry the slice's id, which is used once."""
        with suppress(AlreadyExists):
            self._informers.observe(kind, await self._api.create(kind, manifest))
