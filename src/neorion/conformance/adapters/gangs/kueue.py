"""Gangs by Kueue with topology-aware scheduling: Jobs of a queue that are placed on one node by what is free there."""

from typing import Final

from neorion.conformance.adapters.gangs.gang import Gang, delete_job, job_spec, template_of
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import CLUSTER_QUEUE, FLAVOR, JOB, LOCAL_QUEUE, TOPOLOGY, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply, tolerations

# The flavor's topology has one level, so a gang is placed on one node by what is free there.
TOPOLOGY_REQUEST: Final = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}
QUEUED: Final = {"kueue.x-k8s.io/queue-name": "queue"}
QUEUE_RIGHTS: Final = (
    "create topologies.kueue.x-k8s.io",
    "create resourceflavors.kueue.x-k8s.io",
    "create clusterqueues.kueue.x-k8s.io",
    "create localqueues.kueue.x-k8s.io",
)


class Kueue:
    """Jobs of a queue."""

    name = "kueue"
    needs = "Kueue with topology-aware scheduling (kueue.x-k8s.io/v1beta2)"
    rights = QUEUE_RIGHTS

    async def is_served(self, workspace: Workspace) -> bool:
        return await served(workspace, TOPOLOGY)

    async def prepare(self, workspace: Workspace, node: NodeSupply) -> None:
        await make_queue(workspace, node)

    async def start(self, workspace: Workspace, gang: Gang) -> None:
        placed = Gang(gang.name, gang.size, gang.spec, {**gang.annotations, **TOPOLOGY_REQUEST})
        spec = job_spec(gang.size, template_of(placed), suspend=True)
        await workspace.create(JOB, gang.name, {"spec": spec}, QUEUED)

    async def delete(self, workspace: Workspace, name: str) -> None:
        await delete_job(workspace, name)


async def make_queue(workspace: Workspace, node: NodeSupply) -> None:
    """A queue whose quota is twice what the node has: admission alone would not hold a gang back."""
    name = workspace.namespace
    resource = workspace.options.profile.resource
    await workspace.create(TOPOLOGY, name, {"spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}})
    flavor: Json = {"nodeLabels": {"kubernetes.io/hostname": node.hostname}, "topologyName": name}
    # Not an empty list: Kueue 0.18 takes its own removal of one for a change, refuses it, and the flavor never goes.
    if node.taints:
        flavor["tolerations"] = tolerations(node.taints)
    await workspace.create(FLAVOR, name, {"spec": flavor})
    quotas = {"cpu": "100", "memory": "100Gi", resource: str(node.allocatable * 2)}
    covered = [{"name": each, "nominalQuota": quota} for each, quota in quotas.items()]
    groups = [{"coveredResources": list(quotas), "flavors": [{"name": name, "resources": covered}]}]
    await workspace.create(CLUSTER_QUEUE, name, {"spec": {"namespaceSelector": {}, "resourceGroups": groups}})
    await workspace.create(LOCAL_QUEUE, "queue", {"spec": {"clusterQueue": name}})
    await workspace.until(LOCAL_QUEUE, lambda queues: _active(queues) or None)


def _active(queues: list[Json]) -> bool:
    conditions = [each for queue in queues for each in queue.get("status", {}).get("conditions", ())]
    return any(each["type"] == "Active" and each["status"] == "True" for each in conditions)
