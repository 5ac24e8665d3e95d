"""Kueue: Jobs of a queue become Workloads."""

from collections.abc import Sequence
from typing import Final

from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import CLUSTER_QUEUE, FLAVOR, JOB, LOCAL_QUEUE, WORKLOAD, Json
from neorion.conformance.adapters.operators.operator import Edit
from neorion.conformance.adapters.pods import MOMENT, ON_SIMULATED, pod_spec
from neorion.conformance.adapters.workspace import Workspace

_QUEUE: Final = {"kueue.x-k8s.io/queue-name": "queue"}
_LABEL: Final = "conformance.neorion.dev/size"


class KueueOperator:
    """The operator of queues."""

    name = "kueue"
    needs = "Kueue (kueue.x-k8s.io/v1beta2)"
    rights = (
        "create resourceflavors.kueue.x-k8s.io",
        "create clusterqueues.kueue.x-k8s.io",
        "patch clusterqueues.kueue.x-k8s.io",
        "create localqueues.kueue.x-k8s.io",
        "watch workloads.kueue.x-k8s.io",
        "delete workloads.kueue.x-k8s.io",
        "create jobs.batch",
    )
    definitions = tuple(
        f"{plural}.kueue.x-k8s.io"
        for plural in ("clusterqueues", "localqueues", "resourceflavors", "workloads")
    )
    webhook = "vresourceflavor.kb.io"
    guarded = FLAVOR
    owner = JOB
    child = WORKLOAD
    end = (WORKLOAD, "Finished")

    def body(self, workspace: Workspace, *, wrong: bool) -> Json:
        """A label's value has no blanks."""
        del workspace
        return {"spec": {"nodeLabels": {_LABEL: "not a label's value!" if wrong else "any"}}}

    async def is_served(self, workspace: Workspace) -> bool:
        return await served(workspace, WORKLOAD)

    async def prepare(self, workspace: Workspace) -> None:
        name = workspace.namespace
        await workspace.create(FLAVOR, name, {"spec": {}})
        quotas = [{"name": "cpu", "nominalQuota": "1"}, {"name": "memory", "nominalQuota": "1Gi"}]
        groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": quotas}]}]
        queue: Json = {"spec": {"namespaceSelector": {}, "resourceGroups": groups}}
        await workspace.create(CLUSTER_QUEUE, name, queue)
        await workspace.create(LOCAL_QUEUE, "queue", {"spec": {"clusterQueue": name}})

    async def make_waiting(self, workspace: Workspace, name: str) -> Json:
        """A Job larger than the quota."""
        return await _make_job(workspace, name, "50", _QUEUE)

    async def make_fitting(self, workspace: Workspace, name: str) -> Json:
        return await _make_job(workspace, name, "10m", _QUEUE)

    async def make_unmanaged(self, workspace: Workspace, name: str) -> Json:
        """A Job of no queue."""
        return await _make_job(workspace, name, "10m", {})

    async def edits(self, workspace: Workspace) -> Sequence[Edit]:
        """The queue is stopped, and opened again."""
        name = workspace.namespace
        return [
            Edit(words, CLUSTER_QUEUE, name, {"spec": {"stopPolicy": policy}}, "Active", status)
            for words, policy, status in (
                ("an edit is reconciled", "Hold", "False"),
                ("an edit taken back is reconciled", "None", "True"),
            )
        ]


async def _make_job(workspace: Workspace, name: str, cpu: str, labels: dict[str, str]) -> Json:
    spec = pod_spec(workspace, None, 0, MOMENT)
    spec["containers"][0]["resources"]["requests"]["cpu"] = cpu
    spec["tolerations"] = ON_SIMULATED
    suspended = {"suspend": True} if labels else {}
    return await workspace.create(
        JOB, name, {"spec": {**suspended, "backoffLimit": 0, "template": {"spec": spec}}}, labels
    )
