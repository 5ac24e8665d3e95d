"""Gangs by Kubernetes itself: PodGroups of scheduling.k8s.io, an alpha API of Kubernetes 1.36."""

from neorion.conformance.adapters.gangs.gang import Gang, delete_job, job_spec, template_of
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import JOB, NATIVE_GROUP
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply


class NativePodGroups:
    """Jobs of the cluster's own scheduler, each with a PodGroup."""

    name = "native"
    needs = "PodGroups of Kubernetes 1.36 (scheduling.k8s.io/v1alpha2, feature gate GangScheduling)"
    rights = ("create podgroups.scheduling.k8s.io",)

    async def is_served(self, workspace: Workspace) -> bool:
        return await served(workspace, NATIVE_GROUP)

    async def prepare(self, workspace: Workspace, node: NodeSupply) -> None:
        """A gang needs its PodGroup alone."""

    async def start(self, workspace: Workspace, gang: Gang) -> None:
        policy = {"gang": {"minCount": gang.size}}
        await workspace.create(NATIVE_GROUP, gang.name, {"spec": {"schedulingPolicy": policy}})
        template = template_of(gang, schedulingGroup={"podGroupName": gang.name})
        await workspace.create(JOB, gang.name, {"spec": job_spec(gang.size, template)})

    async def delete(self, workspace: Workspace, name: str) -> None:
        await delete_job(workspace, name)
