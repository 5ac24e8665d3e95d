"""A whole navarch beside a real API server and scheduler: fake machines whose Kubernetes nodes are simulated."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from neorion.capacity.fake import FakeCloud, FakeMachine, Fault
from neorion.drydock.simulated import PLAYED, machine_type
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.config import loads
from neorion.keel.kube import AlreadyExists
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import NODE, POD, Pod
from neorion.keel.kube.core import Node as KubeNode
from neorion.navarch.adapters.config_file import ConfigFile
from neorion.navarch.app.server import serving
from neorion.navarch.client import NavarchClient
from neorion.navarch.model.gen import navarch_pb as pb
from tests.kube.navarch_nodes import PATIENCE_S

CLOCK = SystemClock()
# Machines and control planes send no events: they are looked at.
_LOOK = Duration.of(ms=50)
_GPUS = {"nvidia.com/gpu": "8"}


@dataclass(frozen=True, slots=True)
class Yard:
    """A control plane, its cloud, and the cluster that its machines join."""

    client: NavarchClient
    cloud: FakeCloud
    api: Client
    pool: str

    def strike(self, machine: str, xid: int = 79) -> None:
        found = next(one for one in self.cloud.alive() if one.id == machine)
        found.faults.put_nowait(Fault(xid=xid, message="struck by a test"))

    async def story(self) -> list[str]:
        """What happened in the pool, in order."""
        request = pb.HistoryRequest(subject=f"pool/{self.pool}")
        return [line.event for line in (await self.client.calls.history(request)).lines]

    async def members(self) -> list[KubeNode]:
        return [
            one
            for one in (await self.api.list(NODE)).items
            if one.meta.labels.get("navarch.dev/pool") == self.pool
        ]

    async def pods(self, namespace: str) -> list[Pod]:
        return [one for one in (await self.api.list(POD, namespace)).items if one.meta.deleted is None]

    async def active(self, count: int) -> list[pb.Node]:
        """When so many serve, and nothing else is there."""
        found: list[pb.Node] = []

        async def there() -> bool:
            found[:] = [node async for node in self.client.nodes(self.pool)]
            return [node.state for node in found] == ["active"] * count

        await self.until(there)
        return found

    async def until(self, holds: Callable[[], Any]) -> None:
        with anyio.fail_after(PATIENCE_S):
            while not await holds():
                await CLOCK.sleep(_LOOK)


@asynccontextmanager
async def yard(api: Client, kubeconfig: Path, folder: Path, pool: str) -> AsyncGenerator[Yard]:
    """`pool` is the YAML of one pool that buys from `lambda`, which is fake here."""
    text = f"""
server:
  address: 127.0.0.1:0
  state_dir: {folder}/state
  autoscale_interval: 200ms
  heartbeat_interval: 1s
  heartbeat_timeout: 60s
  kubernetes: {{ kubeconfig: {kubeconfig} }}
providers: {{ lambda: {{ type: fake, boot: 100ms }} }}
pools:
{pool}
"""
    file = loads(text, ConfigFile, {})
    async with serving(file, folder, {"HOME": str(folder)}) as running:
        cloud = running.fakes["lambda"].provider.cloud
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_join, api, cloud)
                name = next(name for name, _, _ in file.named_pools())
                async with NavarchClient.remote(running.address, token=running.token) as client:
                    yield Yard(client, cloud, api, name)
                group.cancel_scope.cancel()
        finally:
            # The next test has machines of the same names, however this one ends.
            for machine in cloud.machines.values():
                with suppress(NotFound):
                    await api.delete(NODE, str(machine.id))


async def _join(api: Client, cloud: FakeCloud) -> None:
    """What a machine's kubelet does when it boots."""
    joined: set[str] = set()
    while True:
        for machine in cloud.alive():
            if machine.id not in joined and machine.boots <= CLOCK.now():
                joined.add(machine.id)
                await _add(api, machine)
        await CLOCK.sleep(_LOOK)


async def _add(api: Client, machine: FakeMachine) -> None:
    kind, name = machine_type("h100x8"), str(machine.id)
    body = {
        "metadata": {
            "name": name,
            "annotations": {PLAYED: "fake"},
            "labels": {**kind.labels(0), "kubernetes.io/hostname": name},
        },
        "spec": {"providerID": f"lambda://us-west-2/{name}"},
        "status": {"capacity": kind.resources, "allocatable": kind.resources},
    }
    try:
        await api.create(NODE, body)
    except AlreadyExists:
        return


def deployment(namespace: str, pool: str, replicas: int) -> dict[str, Any]:
    """So many pods that take a whole node of the pool each."""
    labels = {"app": "train", "navarch.dev/pool": pool}
    container = {"name": "main", "image": "any", "resources": {"limits": _GPUS}}
    return {
        "metadata": {"name": "train", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "nodeSelector": {"navarch.dev/pool": pool}},
            },
        },
    }
