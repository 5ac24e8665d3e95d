"""Objects for simulated nodes, Kueue and NodePools, and the two words said about them: apply and wait."""

import json
from typing import Any

from neorion.drydock.cluster import Cluster
from neorion.drydock.coreweave import FAULT
from neorion.drydock.simulated import RUNS_FOR

GPU = "nvidia.com/gpu"
H100 = "gd-8xh100ib-i128"


def pod(annotations: dict[str, str], gpus: int) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "resources": {"limits": {GPU: str(gpus)}}}
    # Where there are real nodes, simulated ones are kept for those who ask for them.
    tolerations = [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]
    spec = {"restartPolicy": "Never", "containers": [container], "tolerations": tolerations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": annotations}, "spec": spec}


def job(name: str, queue: str, runs_for: str) -> dict[str, Any]:
    one = pod({RUNS_FOR: runs_for}, 8)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {"template": {key: one[key] for key in ("metadata", "spec")}},
    }


def queue(name: str, gpus: int) -> list[dict[str, Any]]:
    version = "kueue.x-k8s.io/v1beta2"
    flavors = [{"name": name, "resources": [{"name": GPU, "nominalQuota": gpus}]}]
    groups = [{"coveredResources": [GPU], "flavors": flavors}]
    specs = {
        "ResourceFlavor": {},
        "ClusterQueue": {"namespaceSelector": {}, "resourceGroups": groups},
        "LocalQueue": {"clusterQueue": name},
    }
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in specs.items()
    ]


async def apply(cluster: Cluster, *objects: dict[str, Any]) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    await cluster.kubectl("apply", "-f", "-", say=json.dumps(items))


async def wait(cluster: Cluster, what: str, until: str) -> None:
    await cluster.kubectl("wait", what, f"--for={until}", "--timeout=180s")


def pool(name: str, fault: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "compute.coreweave.com/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": name, "annotations": {FAULT: fault}},
        "spec": {"instanceType": H100, **spec},
    }
