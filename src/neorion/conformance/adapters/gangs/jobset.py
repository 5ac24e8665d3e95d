"""Gangs as JobSets of two Jobs, which Kueue admits and places as one."""

from neorion.conformance.adapters.gangs.gang import Gang, job_spec, template_of
from neorion.conformance.adapters.gangs.kueue import QUEUE_RIGHTS, QUEUED, TOPOLOGY_REQUEST, make_queue
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import JOB_SET, TOPOLOGY, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply


class JobSets:
    """JobSets of a queue."""

    name = "jobset"
    needs = "JobSet (jobset.x-k8s.io/v1alpha2), and Kueue with topology-aware scheduling and that integration"
    rights = (*QUEUE_RIGHTS, "create jobsets.jobset.x-k8s.io", "delete jobsets.jobset.x-k8s.io")

    async def is_served(self, workspace: Workspace) -> bool:
        return await served(workspace, JOB_SET) and await served(workspace, TOPOLOGY)

    async def prepare(self, workspace: Workspace, node: NodeSupply) -> None:
        await make_queue(workspace, node)

    async def start(self, workspace: Workspace, gang: Gang) -> None:
        placed = Gang(gang.name, gang.size, gang.spec, {**gang.annotations, **TOPOLOGY_REQUEST})
        # A leader and its workers: both Jobs are admitted together.
        sizes = {"leader": 1, "workers": gang.size - 1}
        jobs: list[Json] = [
            {"name": name, "replicas": 1, "template": {"spec": job_spec(size, template_of(placed))}}
            for name, size in sizes.items()
            if size
        ]
        await workspace.create(
            JOB_SET, gang.name, {"spec": {"suspend": True, "replicatedJobs": jobs}}, QUEUED
        )

    async def delete(self, workspace: Workspace, name: str) -> None:
        await workspace.api.delete(JOB_SET, name, workspace.namespace)
