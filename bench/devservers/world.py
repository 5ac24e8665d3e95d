"""What Kubernetes' controllers, its scheduler and its kubelets would do for a server, done at once and by the fewest writes."""

from typing import Any, Final

import anyio

from neorion.devservers.decide import SERVER_LABEL
from neorion.devservers.model.kube_types import DEPLOYMENTS
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.client import Client
from neorion.keel.kube.control import Controller, InformerFactory, self_key
from neorion.keel.kube.core import CLAIM, POD

# Of a pod that runs, as a kubelet would tell it; whoever reads it cares for no other times.
SINCE: Final = "2026-01-01T00:00:00Z"
_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
RUNNING: Final = {
    "phase": "Running",
    "startTime": SINCE,
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": SINCE}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ],
    "containerStatuses": [
        {
            "name": "dev",
            "image": "any",
            "imageID": "any",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": SINCE}},
            "resources": _RESOURCES,
        }
    ],
}


def pod_of(server: ObjectKey) -> dict[str, Any]:
    container = {"name": "dev", "image": "any", "resources": _RESOURCES}
    return {
        "metadata": {
            "name": f"{server.name}-0",
            "namespace": server.namespace,
            "labels": {SERVER_LABEL: server.name},
        },
        "spec": {"nodeName": "any", "automountServiceAccountToken": False, "containers": [container]},
    }


class World:
    """Binds every volume and runs a pod for every Deployment."""

    def __init__(self, api: Client) -> None:
        self._api = api
        clock, rng = SystemClock(), system_rng()
        self._informers = InformerFactory(api, clock, rng)
        self._claims = self._informers.of(CLAIM)
        self._bodies = self._informers.of(DEPLOYMENTS)
        self._pods = self._informers.of(POD)
        self._binder = Controller("binder", self._bind, clock, rng)
        self._binder.watch(self._claims, self_key)
        self._runner = Controller("runner", self._start, clock, rng)
        self._runner.watch(self._bodies, self_key)

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for part in (self._informers.run, self._binder.run, self._runner.run):
                group.start_soon(part)

    async def _bind(self, key: ObjectKey) -> None:
        claim = self._claims.get(key)
        if claim is not None and claim.status.phase != "Bound":
            status = {"phase": "Bound", "capacity": claim.spec.resources.requests}
            await self._api.patch(CLAIM, key.name, MergePatch({"status": status}), key.namespace, "status")

    async def _start(self, key: ObjectKey) -> None:
        pod = ObjectKey(key.namespace, pod_of(key)["metadata"]["name"])
        if self._bodies.get(key) is None or self._pods.get(pod) is not None:
            return
        await self._api.create(POD, pod_of(key))
        await self._api.patch(POD, pod.name, MergePatch({"status": RUNNING}), pod.namespace, "status")
