"""The current state of a cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.cluster import Cluster
from neorion.drydock.cluster_addons import FITTED
from neorion.drydock.control import PARTS
from neorion.drydock.host import RunningComponent, running
from neorion.drydock.node import nodes
from neorion.keel.base import Duration, Error, Quantity

# A control plane that is down must not make its status slow.
_ANSWER_MOST: Final = Duration.of(seconds=3)


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """The number of nodes, and of Ready ones."""

    ready: int
    all: int

    def __str__(self) -> str:
        return f"{self.ready}/{self.all}"


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The state of a cluster. `nodes` is None if the API server does not answer; `memory` is that of all its processes."""

    name: str
    server: str
    running: tuple[str, ...]
    missing: tuple[str, ...]
    nodes: NodeCounts | None
    memory: Quantity
    kubeconfig: str
    folder: str


async def status_of(cluster: Cluster) -> ClusterStatus:
    found = running(cluster.layout.folder)
    parts = {process.part for process in found}
    wanted = [*PARTS]
    wanted += [part for part in ("kwok", "kueue") if any(cluster.layout.folder.glob(f"data/{part}.*"))]
    wanted += ["coreweave"] if cluster.layout.kubeconfig_of("coreweave").exists() else []
    wanted += FITTED if cluster.layout.networked else []
    wanted += [node.part for node in nodes(cluster.layout)]
    return ClusterStatus(
        name=cluster.name,
        server=cluster.layout.server,
        running=tuple(sorted(parts)),
        missing=tuple(part for part in wanted if part not in parts),
        nodes=await _nodes(cluster),
        memory=Quantity.parse(f"{sum(map(_share_kib, found)) // 1024}Mi"),
        kubeconfig=str(cluster.kubeconfig),
        folder=str(cluster.layout.folder),
    )


async def _nodes(cluster: Cluster) -> NodeCounts | None:
    with anyio.move_on_after(_ANSWER_MOST.seconds):
        try:
            async with cluster.api() as api:
                listed = (await api.get("/api/v1/nodes"))["items"]
        except Error:
            return None
        conditions = [node["status"].get("conditions", []) for node in listed]
        ready = [any(c["type"] == "Ready" and c["status"] == "True" for c in each) for each in conditions]
        return NodeCounts(sum(ready), len(ready))
    return None


def _share_kib(process: RunningComponent) -> int:
    """The proportional memory of a process: shared pages are divided among their users."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
