"""gang_scheduling by Kueue with topology-aware scheduling, on one node with one accelerator too few."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import CLUSTER_QUEUE, FLAVOR, JOB, LOCAL_QUEUE, POD, TOPOLOGY, Json
from neorion.conformance.adapters.pods import MOMENT, RUNS_ON, make_pod, named, node_supplies, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.gang import (
    both_finish,
    bound,
    placed_whole,
    waits_for_room,
    whole_or_not_at_all,
)
from neorion.conformance.decide.nodes import NodeSupply, tolerations
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome

_JOB: Final = "batch.kubernetes.io/job-name"
_GROUP: Final = "conformance.neorion.dev/group"
# The flavor's topology has one level, so a gang is placed on one node by what is free there.
_TOPOLOGY_REQUEST: Final = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}
# Of a gang that fits alone and not beside another of its size.
_LARGE_SHARE: Final = 0.8
# More would take long to create and show nothing more.
_SIZE_MAX: Final = 16


async def _run(workspace: Workspace) -> Outcome:
    if not await served(workspace, TOPOLOGY):
        return Outcome(
            missing="Kueue with topology-aware scheduling (kueue.x-k8s.io/v1beta2) is not installed."
        )
    nodes = [node for node in await node_supplies(workspace) if node.free >= 2]
    if not nodes:
        resource = workspace.options.profile.resource
        return Outcome(missing=f"No ready node has two free {resource}.")
    node = nodes[0]
    size = min(node.free, _SIZE_MAX)
    await _make_queue(workspace, node)
    # Leaves room for one pod fewer than a gang has. From the same queue: Kueue looks again at what waits when one of
    # its own leaves.
    await _make_job(workspace, "blocker", 1, _blocking(workspace, node, node.free - size + 1))
    if await workspace.until(POD, lambda pods: bound(pods) == 1 or None) is None:
        workspace.assert_that(placed_whole(0, 1, workspace.options.patience.seconds))
        return Outcome(node.environment, tuple(workspace.assertions), subject="kueue")
    await _held_back(workspace, node, size)
    await _released(workspace, size)
    await _control(workspace, node, size)
    await _two_gangs(workspace, node, size)
    return Outcome(node.environment, tuple(workspace.assertions), tuple(workspace.controls), subject="kueue")


async def _held_back(workspace: Workspace, node: NodeSupply, size: int) -> None:
    await _make_gang(workspace, "gang", node, size)
    counts = await _counts(workspace, _JOB, "gang", size)
    seconds = workspace.options.window.seconds
    workspace.assert_that(whole_or_not_at_all(counts, size, seconds))
    workspace.assert_that(waits_for_room(counts, size))


async def _released(workspace: Workspace, size: int) -> None:
    began = workspace.clock.monotonic()
    await workspace.api.delete(JOB, "blocker", workspace.namespace)
    found = await workspace.until(POD, lambda pods: _whole(pods, _JOB, "gang", size))
    pods = named(await workspace.api.list(POD, workspace.namespace), **{_JOB: "gang"})
    count = found or bound(pods)
    workspace.assert_that(placed_whole(count, size, workspace.clock.monotonic() - began))
    await workspace.until(JOB, lambda jobs: _finished(jobs, "gang") or None)


async def _control(workspace: Workspace, node: NodeSupply, size: int) -> None:
    """The same number of pods without the gang scheduler, in the same room."""
    await workspace.until(POD, lambda pods: _ended(pods) or None)
    await make_pod(workspace, "blocker-again", pod_spec(workspace, node, node.free - size + 1))
    await workspace.until(POD, lambda pods: bound(_of_name(pods, "blocker-again")) == 1 or None)
    for index in range(size):
        await make_pod(workspace, f"alone-{index}", pod_spec(workspace, node, 1), {_GROUP: "alone"})
    counts = await _counts(workspace, _GROUP, "alone", size)
    assertion = whole_or_not_at_all(counts, size, workspace.options.window.seconds)
    workspace.control(control_of("the same pods without a gang scheduler", assertion))
    for pod in await workspace.api.list(POD, workspace.namespace):
        if pod["metadata"]["name"].startswith(("alone-", "blocker")):
            await workspace.api.delete(POD, pod["metadata"]["name"], workspace.namespace, at_once=True)


async def _two_gangs(workspace: Workspace, node: NodeSupply, size: int) -> None:
    large = max(2, int(node.free * _LARGE_SHARE)) if node.free <= _SIZE_MAX else size
    if large * 2 <= node.free:
        # They fit side by side, so they could not wait for each other.
        return
    names = ("first", "second")
    for name in names:
        await _make_gang(workspace, name, node, large)

    def done(jobs: list[Json]) -> bool | None:
        return all(_finished(jobs, name) for name in names) or None

    await workspace.until(JOB, done)
    jobs = await workspace.api.list(JOB, workspace.namespace)
    workspace.assert_that(both_finish({name: _finished(jobs, name) for name in names}))


async def _counts(workspace: Workspace, label: str, value: str, size: int) -> list[int]:
    """How many were bound at each change within the window."""
    counts: list[int] = [0]

    def look(pods: list[Json]) -> None:
        counts.append(bound(named(pods, **{label: value})))

    await workspace.until(POD, look, workspace.options.window)
    workspace.api.note("counts", {"group": value, "size": size, "bound": counts[-20:]})
    # What is bound in the end counts: pods of a gang are bound one after the other.
    return counts[-1:]


async def _make_queue(workspace: Workspace, node: NodeSupply) -> None:
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


async def _make_gang(workspace: Workspace, name: str, node: NodeSupply, size: int) -> None:
    template = {"metadata": {"annotations": _TOPOLOGY_REQUEST}, "spec": pod_spec(workspace, node, 1, MOMENT)}
    await _make_job(workspace, name, size, template)


def _blocking(workspace: Workspace, node: NodeSupply, accelerators: int) -> Json:
    """A pod that stays and holds so many accelerators."""
    spec = pod_spec(workspace, node, accelerators)
    return {"metadata": {"annotations": {**_TOPOLOGY_REQUEST, **RUNS_ON}}, "spec": spec}


async def _make_job(workspace: Workspace, name: str, size: int, template: Json) -> None:
    spec = {
        "parallelism": size,
        "completions": size,
        "backoffLimit": 0,
        "suspend": True,
        "template": template,
    }
    await workspace.create(JOB, name, {"spec": spec}, {"kueue.x-k8s.io/queue-name": "queue"})


def _active(queues: list[Json]) -> bool:
    conditions = [each for queue in queues for each in queue.get("status", {}).get("conditions", ())]
    return any(each["type"] == "Active" and each["status"] == "True" for each in conditions)


def _whole(pods: list[Json], label: str, value: str, size: int) -> int | None:
    return size if bound(named(pods, **{label: value})) == size else None


def _of_name(pods: list[Json], name: str) -> list[Json]:
    return [pod for pod in pods if pod["metadata"]["name"] == name]


def _finished(jobs: list[Json], name: str) -> bool:
    found = [job for job in jobs if job["metadata"]["name"] == name]
    conditions = [each for job in found for each in job.get("status", {}).get("conditions", ())]
    return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)


def _ended(pods: list[Json]) -> bool:
    return all(pod.get("status", {}).get("phase") in {"Succeeded", "Failed"} for pod in pods)


GANG_SCHEDULING: Final = Check(
    "gang_scheduling",
    CheckPlan(
        ("Topology", "ResourceFlavor", "ClusterQueue", "LocalQueue", "3 Jobs", "up to 18 Pods"),
        ("Kueue with topology-aware scheduling", "a node with two free accelerators"),
        60,
    ),
    _run,
    (
        "create topologies.kueue.x-k8s.io",
        "create resourceflavors.kueue.x-k8s.io",
        "create clusterqueues.kueue.x-k8s.io",
        "create localqueues.kueue.x-k8s.io",
        "create jobs.batch",
        "watch jobs.batch",
    ),
)
