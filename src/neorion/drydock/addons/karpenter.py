"""Karpenter with its simulated cloud: pending pods make it buy nodes that KWOK runs."""

import json
from typing import Any, Final

from neorion.drydock.addons.definitions import publish_definitions
from neorion.drydock.api import Object
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import PortOffset
from neorion.drydock.pki import Subject
from neorion.drydock.simulated import TYPES, start_kwok

NAME: Final = "karpenter"
POOL: Final = "accelerators"
PROGRAMS: Final = ("karpenter",)
_NAMESPACE: Final = "kube-system"
_ZONE: Final = "simulated-a"
# Of a simulated price list: larger machines cost more, so that the smallest fitting one is bought.
_PRICE_PER_CPU: Final = 0.05
_PRICE_PER_GPU: Final = 3.0


async def start(cluster: Cluster) -> None:
    """Returns when it is ready, with one pool of machines that have accelerators."""
    await start_kwok(cluster)
    layout = cluster.layout
    cluster.pki.issue(NAME, Subject("drydock-karpenter", ("system:masters",)))
    cluster.pki.kubeconfig(layout.kubeconfig_of(NAME), NAME, layout.server)
    types = layout.data("karpenter-types.json")
    types.write_text(json.dumps(_instance_types()))
    program = cluster.shelf.path(NAME)
    await publish_definitions(cluster, json.loads((program.parent / "manifests.json").read_text()))
    async with cluster.api() as api:
        for path, body in _pool():
            await api.apply(path, body)
        await cluster.ensure(_part(cluster))
    await cluster.reachable(_part(cluster), layout.port(PortOffset.KARPENTER_HEALTH))


def _pool() -> list[tuple[str, Object]]:
    """Machines with accelerators, bought one by one and given back soon after they are empty."""
    group = "karpenter.kwok.sh"
    reference = {"group": group, "kind": "KWOKNodeClass", "name": POOL}
    types = [name for name, kind in TYPES.items() if kind.gpus]
    requirements = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]
    spec: Object = {
        "template": {
            "spec": {"nodeClassRef": reference, "requirements": requirements, "expireAfter": "Never"}
        },
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s"},
        "limits": {"nvidia.com/gpu": "64"},
    }
    node_class: Object = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": POOL},
    }
    pool: Object = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": POOL},
        "spec": spec,
    }
    return [
        (f"/apis/{group}/v1alpha1/kwoknodeclasses/{POOL}", node_class),
        (f"/apis/karpenter.sh/v1/nodepools/{POOL}", pool),
    ]


def _part(cluster: Cluster) -> Component:
    layout = cluster.layout
    env = {
        "KUBECONFIG": str(layout.kubeconfig_of(NAME)),
        "SYSTEM_NAMESPACE": _NAMESPACE,
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(layout.port(PortOffset.KARPENTER_METRICS)),
        "HEALTH_PROBE_PORT": str(layout.port(PortOffset.KARPENTER_HEALTH)),
        "INSTANCE_TYPES_FILE_PATH": str(layout.data("karpenter-types.json")),
        "LOG_LEVEL": "error",
    }
    return Component(NAME, (str(cluster.shelf.path(NAME)),), env)


def _instance_types() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name, kind in TYPES.items():
        price = kind.cpus * _PRICE_PER_CPU + kind.gpus * _PRICE_PER_GPU
        requirement = {"karpenter.sh/capacity-type": "on-demand", "topology.kubernetes.io/zone": _ZONE}
        offering = {
            "Price": price,
            "Available": True,
            "Requirements": [
                {"key": key, "operator": "In", "values": [value]} for key, value in requirement.items()
            ],
        }
        found.append(
            {
                "name": name,
                "offerings": [offering],
                "architecture": "amd64",
                "operatingSystems": ["linux"],
                "resources": {**kind.resources, "ephemeral-storage": "100Gi"},
            }
        )
    return found
