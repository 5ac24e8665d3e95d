"""Puts an installation into a cluster, takes it out again, and finds the controller's Pod."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final

from neorion.capacity.coreweave import NODE_POOL, promised
from neorion.iris.adapters.installation.manifests import DEPLOYMENT_NAME, MANAGER, POOL_NAME, kind_of
from neorion.iris.adapters.platforms.kubernetes.health import loss, waiting
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.keel.base import Denied, Duration, NotFound
from neorion.keel.clock import Clock
from neorion.keel.kube import (
    DeleteOptions,
    DeletionPropagation,
    Kind,
    KubeApi,
    Selector,
    UnknownKind,
    condition,
)
from neorion.keel.kube.core import CLAIM, DEPLOYMENT, NAMESPACE, POD, SECRET, Pod

_CONTROLLER: Final = Selector(labels=f"app={DEPLOYMENT_NAME}")
# What users' jobs and results hang on.
_KEPT: Final = frozenset({CLAIM.name, NAMESPACE.name})
LOOK_EVERY: Final = Duration.of(seconds=1)


class Installer:
    """One installation. Everything may be repeated."""

    def __init__(self, api: KubeApi, clock: Clock, manifests: Sequence[dict[str, Any]], names: Names) -> None:
        self._api = api
        self._clock = clock
        self._manifests = manifests
        self._names = names
        self._namespace = names.namespace

    async def apply(self) -> AsyncIterator[str]:
        """Applies every object, and names each when it is there."""
        for manifest in self._manifests:
            await self._api.apply(kind_of(manifest), manifest, MANAGER, force=True)
            yield _name(manifest)

    async def wait(self) -> AsyncIterator[str]:
        """Ends when the controller answers. Until then says what it waits for, again and again."""
        while (why := await self._missing()) is not None:
            yield why
            await self._clock.sleep(LOOK_EVERY)

    async def controller(self) -> Pod:
        """The Pod of the controller that answers."""
        for pod in (await self._api.list(POD, self._namespace, _CONTROLLER)).items:
            ready = condition(pod.status.conditions, "Ready")
            if ready is not None and ready.holds and pod.meta.deleted is None:
                return pod
        raise NotFound(
            "iris.no_controller_pod",
            f"No controller is ready in the namespace {self._namespace}.",
            hint="See what it waits for: iris cluster up --config FILE.",
        )

    async def remove(self, *, purge: bool) -> AsyncIterator[str]:
        """The controller first, so that it buys nothing more; then slices, their machines, and the rest.

        The volume with the database stays, and the namespace around it, unless it is to be purged.
        """
        await self._delete(DEPLOYMENT, DEPLOYMENT_NAME, DeletionPropagation.FOREGROUND)
        yield f"Deployment {DEPLOYMENT_NAME}"
        while (await self._api.list(POD, self._namespace, _CONTROLLER)).items:
            await self._clock.sleep(LOOK_EVERY)
        mine = Selector(labels=self._names.selector)
        for kind, namespace in ((POD, self._namespace), (NODE_POOL, ""), (SECRET, self._namespace)):
            async for name in self._clear(kind, namespace, mine):
                yield name
        for manifest in reversed(self._manifests):
            if purge or manifest["kind"] not in _KEPT:
                await self._delete(kind_of(manifest), manifest["metadata"]["name"])
                yield _name(manifest)

    async def _clear(self, kind: Kind[Any], namespace: str, mine: Selector) -> AsyncIterator[str]:
        """Everything of one kind; returns when it is gone."""
        told = set[str]()
        with suppress(UnknownKind, Denied):
            while things := (await self._api.list(kind, namespace, mine)).items:
                for thing in things:
                    if thing.meta.deleted is None:
                        with suppress(NotFound):
                            how = DeleteOptions(uid=thing.meta.uid)
                            await self._api.delete(kind, thing.meta.name, namespace, how)
                    if thing.meta.name not in told:
                        told.add(thing.meta.name)
                        yield f"{kind.name} {thing.meta.name}"
                await self._clock.sleep(LOOK_EVERY)

    async def _delete(
        self, kind: Kind[Any], name: str, propagation: DeletionPropagation = DeletionPropagation.BACKGROUND
    ) -> None:
        with suppress(NotFound):
            namespace = self._namespace if kind.namespaced else ""
            await self._api.delete(kind, name, namespace, DeleteOptions(propagation=propagation))

    async def _missing(self) -> str | None:
        deployment = await self._api.get(DEPLOYMENT, DEPLOYMENT_NAME, self._namespace)
        status = deployment.status
        current = status.observed_generation >= deployment.meta.generation
        # Of two replicas the one that leads is available.
        if current and status.updated_replicas == status.replicas and status.available_replicas:
            return None
        pods = [
            pod
            for pod in (await self._api.list(POD, self._namespace, _CONTROLLER)).items
            if pod.meta.deleted is None
        ]
        if why := next((why for pod in pods if (why := loss(pod))), ""):
            return why
        if pool := await self._pool():
            return pool
        return next((why for pod in pods if (why := waiting(pod))), "The controller starts.")

    async def _pool(self) -> str:
        """Reason why the controller's own NodePool is not ready, or an empty string."""
        if not any(manifest["kind"] == NODE_POOL.name for manifest in self._manifests):
            return ""
        try:
            pool = await self._api.get(NODE_POOL, POOL_NAME)
        except NotFound:
            return ""
        met = pool.says("AtTarget")
        if met is not None and met.holds:
            return ""
        refused = [one for one in pool.status.conditions if one.status == "False" and one.type != "AtTarget"]
        if refused and not promised(pool):
            return f"The NodePool {POOL_NAME} waits: {refused[0].reason}: {refused[0].message}"
        return f"The machine of {POOL_NAME} boots; this can take half an hour."


def _name(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"
