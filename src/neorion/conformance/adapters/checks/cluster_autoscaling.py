"""cluster_autoscaling: pending pods make a pool of accelerator nodes grow, and it shrinks back without them."""

from typing import Final

from msgspec import Struct

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import CONFIG_MAP, COREWEAVE_POOL, KARPENTER_POOL, NODE, POD, Json
from neorion.conformance.adapters.pods import make_pod, named, node_supplies, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import environment_of, is_ready, worst
from neorion.conformance.decide.scaling import grew_for, shrank_back, untouched
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome
from neorion.keel.base import Duration, NotFound

_GROUP: Final = {"conformance.neorion.dev/group": "demand"}
# More than any machine has.
_IMPOSSIBLE: Final = 1000
# A pool with much free room would need as many pods to fill it.
_PODS_MAX: Final = 64
# Nodes go later than they come: autoscalers wait before they take an empty one away.
_DOWN_FACTOR: Final = 2


class Pool(Struct, frozen=True):
    """A pool that may grow, and the label by which pods ask for its nodes."""

    name: str
    label: str
    autoscaler: str


async def _run(workspace: Workspace) -> Outcome:
    pools, looked = await _pools(workspace)
    if not pools:
        return Outcome(
            absent=f"There is no autoscaler with a pool that may grow. Looked for: {'; '.join(looked)}."
        )
    pool = pools[0]
    before = {node["metadata"]["uid"] for node in await workspace.api.list(NODE)}
    seconds = await _grows(workspace, pool, before)
    await _impossible(workspace, pool, seconds)
    nodes = [node for node in await workspace.api.list(NODE) if _in_pool(node, pool)]
    hardware = workspace.options.hardware
    environment = worst(environment_of(node, hardware=hardware) for node in nodes)
    await _shrinks(workspace, pool, before)
    return Outcome(
        environment, tuple(workspace.assertions), tuple(workspace.controls), subject=pool.autoscaler
    )


async def _pools(workspace: Workspace) -> tuple[list[Pool], list[str]]:
    """Pools of every autoscaler that is known, and what was looked for."""
    found: list[Pool] = []
    looked: list[str] = []
    if await served(workspace, KARPENTER_POOL):
        pools = await workspace.api.list(KARPENTER_POOL)
        looked.append(f"{len(pools)} NodePools of Karpenter")
        found += [Pool(each["metadata"]["name"], "karpenter.sh/nodepool", "karpenter") for each in pools]
    else:
        looked.append("NodePools of Karpenter, which are not served")
    if await served(workspace, COREWEAVE_POOL):
        pools = [each for each in await workspace.api.list(COREWEAVE_POOL) if _may_grow(each)]
        looked.append(f"{len(pools)} NodePools of CoreWeave with autoscaling")
        found += [
            Pool(each["metadata"]["name"], "compute.coreweave.com/node-pool", "coreweave") for each in pools
        ]
    try:
        await workspace.api.get(CONFIG_MAP, "cluster-autoscaler-status", "kube-system")
        looked.append("the cluster autoscaler, whose groups this check cannot name")
    except NotFound:
        looked.append("the status of the cluster autoscaler, which is not there")
    return found, looked


def _may_grow(pool: Json) -> bool:
    """A pool whose least and most sizes are the same cannot show anything."""
    spec = pool["spec"]
    return bool(spec.get("autoscaling")) and int(spec.get("maxNodes", 0)) > int(spec.get("minNodes", 0))


async def _grows(workspace: Workspace, pool: Pool, before: set[str]) -> float:
    names = {node["metadata"]["name"] for node in await workspace.api.list(NODE) if _in_pool(node, pool)}
    free = sum(node.free for node in await node_supplies(workspace) if node.name in names)
    count = min(free + 1, _PODS_MAX)
    began = workspace.clock.monotonic()
    for index in range(count):
        await make_pod(workspace, f"demand-{index}", _spec(workspace, pool, 1), _GROUP)

    def placed(pods: list[Json]) -> list[Json] | None:
        mine = named(pods, **_GROUP)
        return mine if mine and all(pod["spec"].get("nodeName") for pod in mine) else None

    pods = await workspace.until(POD, placed) or []
    seconds = workspace.clock.monotonic() - began
    nodes = {node["metadata"]["name"]: node for node in await workspace.api.list(NODE)}
    # The node of the pod that needed a new one, if there is any.
    homes = [nodes[name] for pod in pods if (name := pod["spec"]["nodeName"]) in nodes]
    new = next((node for node in homes if node["metadata"]["uid"] not in before and is_ready(node)), None)
    shown = new or (homes[0] if homes else None)
    name, uid = (shown["metadata"]["name"], shown["metadata"]["uid"]) if shown else ("", "")
    workspace.assert_that(grew_for(name, uid, before, seconds))
    return seconds


async def _impossible(workspace: Workspace, pool: Pool, seconds: float) -> None:
    """A pod that no machine can hold: within the time that the growth took, nothing may grow."""
    known = {node["metadata"]["uid"] for node in await workspace.api.list(NODE)}
    pod = await make_pod(workspace, "impossible", _spec(workspace, pool, _IMPOSSIBLE))
    window = Duration.of(seconds=max(seconds, workspace.options.window.seconds))

    def grown(nodes: list[Json]) -> Json | None:
        return next(
            (node for node in nodes if node["metadata"]["uid"] not in known and _in_pool(node, pool)), None
        )

    new = await workspace.until(NODE, grown, window)
    found = await workspace.api.get(POD, pod["metadata"]["name"], workspace.namespace)
    uid = new["metadata"]["uid"] if new is not None else ""
    name = found["spec"].get("nodeName", "") or (new["metadata"]["name"] if new is not None else "")
    assertion = grew_for(name, uid, known, window.seconds)
    workspace.control(control_of("a pod that no machine can hold", assertion))
    await workspace.api.delete(POD, "impossible", workspace.namespace, at_once=True)


async def _shrinks(workspace: Workspace, pool: Pool, before: set[str]) -> None:
    began = workspace.clock.monotonic()
    for pod in await workspace.api.list(POD, workspace.namespace):
        await workspace.api.delete(POD, pod["metadata"]["name"], workspace.namespace, at_once=True)

    def left(nodes: list[Json]) -> set[str]:
        return {node["metadata"]["uid"] for node in nodes if _in_pool(node, pool)} - before

    patience = Duration.of(seconds=workspace.options.patience.seconds * _DOWN_FACTOR)
    await workspace.until(NODE, lambda nodes: True if not left(nodes) else None, patience)
    nodes = await workspace.api.list(NODE)
    workspace.assert_that(shrank_back(left(nodes), workspace.clock.monotonic() - began))
    workspace.assert_that(untouched(before, {node["metadata"]["uid"] for node in nodes}))


def _spec(workspace: Workspace, pool: Pool, accelerators: int) -> Json:
    spec = pod_spec(workspace, None, accelerators)
    taint = workspace.options.profile.taint
    tolerations = [{"key": taint, "operator": "Exists"}] if taint else []
    return {**spec, "nodeSelector": {pool.label: pool.name}, "tolerations": tolerations}


def _in_pool(node: Json, pool: Pool) -> bool:
    return node["metadata"].get("labels", {}).get(pool.label) == pool.name


CLUSTER_AUTOSCALING: Final = Check(
    "cluster_autoscaling",
    CheckPlan(
        ("as many Pods as the pool has free accelerators, and one more",),
        ("Karpenter, or CoreWeave NodePools with autoscaling", "a pool that may grow"),
        60,
    ),
    _run,
    ("watch nodes", "get configmaps"),
)
