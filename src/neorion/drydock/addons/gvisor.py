"""gVisor: a RuntimeClass whose pods have a kernel of their own. Nodes that start once it is built can run them."""

from typing import Final

from neorion.drydock.cluster import Cluster

NAME: Final = "gvisor"
PROGRAMS: Final = ("runsc", "containerd-shim-runsc-v1")
_HANDLER: Final = "runsc"


async def start(cluster: Cluster) -> None:
    async with cluster.api() as api:
        runtime_class = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": NAME},
            "handler": _HANDLER,
        }
        await api.apply(f"/apis/node.k8s.io/v1/runtimeclasses/{NAME}", runtime_class)
