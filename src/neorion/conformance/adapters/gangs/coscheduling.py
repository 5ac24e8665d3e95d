"""Gangs by the plugin Coscheduling of kubernetes-sigs/scheduler-plugins: a PodGroup, and pods that name it."""

from typing import Final

from neorion.conformance.adapters.gangs.gang import Gang, delete_job, job_spec, template_of
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import COSCHEDULING_GROUP, JOB
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply

_POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
# The name that the plugins' own chart gives their scheduler.
_SCHEDULER: Final = "scheduler-plugins-scheduler"


class Coscheduling:
    """Jobs of a second scheduler, each with a PodGroup."""

    name = "coscheduling"
    needs = f"PodGroups (scheduling.x-k8s.io/v1alpha1), and the scheduler {_SCHEDULER} with Coscheduling"
    rights = ("create podgroups.scheduling.x-k8s.io",)

    async def is_served(self, workspace: Workspace) -> bool:
        return await served(workspace, COSCHEDULING_GROUP)

    async def prepare(self, workspace: Workspace, node: NodeSupply) -> None:
        """A gang needs its PodGroup alone."""

    async def start(self, workspace: Workspace, gang: Gang) -> None:
        body = {"spec": {"minMember": gang.size, "scheduleTimeoutSeconds": 10}}
        await workspace.create(COSCHEDULING_GROUP, gang.name, body)
        template = template_of(gang, labels={_POD_GROUP: gang.name}, schedulerName=_SCHEDULER)
        await workspace.create(JOB, gang.name, {"spec": job_spec(gang.size, template)})

    async def delete(self, workspace: Workspace, name: str) -> None:
        await delete_job(workspace, name)
