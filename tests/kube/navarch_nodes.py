"""Nodes and pods without kubelets, and a scheduler over them: what the tests of navarch on Kubernetes share."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Bookmark, DeleteOptions, Kind, KubeObject, Selector, StrategicMergePatch
from neorion.keel.kube.client import Client
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import NODE, POD
from neorion.navarch.adapters.kube import DrainRules, KubeScheduler

T = TypeVar("T", bound=KubeObject)
PATIENCE_S = 120
_NOW = DeleteOptions(grace=Duration(0))


@asynccontextmanager
async def scheduling(api: Client, rules: DrainRules | None = None) -> AsyncGenerator[KubeScheduler]:
    """As in a control plane: mirrors, and the loop that keeps marks as they should be."""
    clock, rng = SystemClock(), system_rng()
    informers = InformerFactory(api, clock, rng)
    labels = {"workload": "training"}
    scheduler = KubeScheduler(api, informers, rules or DrainRules(), lambda _: labels, clock, rng)
    async with anyio.create_task_group() as group:
        group.start_soon(informers.run)
        group.start_soon(scheduler.run)
        await informers.wait_synced()
        yield scheduler
        group.cancel_scope.cancel()


@asynccontextmanager
async def kube_node(api: Client, name: str, **parts: Any) -> AsyncGenerator[str]:
    """A node of the cluster that is Ready, with no machine behind it."""
    metadata = {"name": name} | parts.pop("metadata", {})
    await api.create(NODE, {"metadata": metadata, "spec": parts})
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "test"}]}}
    await api.patch(NODE, name, StrategicMergePatch(ready), subresource="status")
    yield name
    try:
        await api.delete(NODE, name)
    except NotFound:
        return


def pod(namespace: str, name: str, node: str, **metadata: Any) -> dict[str, Any]:
    labels = {"app": "web"} | metadata.pop("labels", {})
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels, **metadata},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "none"}],
            "tolerations": [{"operator": "Exists"}],
        },
    }


async def running(api: Client, *pods: dict[str, Any]) -> None:
    """No kubelet says so here."""
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for one in pods:
        await api.create(POD, one)
        meta = one["metadata"]
        await api.patch(POD, meta["name"], StrategicMergePatch(ready), meta["namespace"], "status")


async def stopped(api: Client, namespace: str) -> list[str]:
    """Plays the kubelet: pods that were asked to leave are gone. Returns who was."""
    leaving = [one for one in (await api.list(POD, namespace)).items if one.meta.deleted is not None]
    for one in leaving:
        await api.delete(POD, one.meta.name, namespace, _NOW)
    return sorted(one.meta.name for one in leaving)


async def until(api: Client, kind: Kind[T], name: str, holds: Callable[[T], bool], namespace: str = "") -> T:
    """The object as soon as it is so."""
    select = Selector(fields=f"metadata.name={name}")
    with anyio.fail_after(PATIENCE_S):
        while True:
            async with api.watch(kind, namespace, select) as events:
                async for event in events:
                    if not isinstance(event, Bookmark) and holds(event.object):
                        return event.object
