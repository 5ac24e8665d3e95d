"""Both ways to use navarch with Kubernetes, from the queue of pods to the node that is replaced under them."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.simulated import start_kwok
from neorion.drydock.testing import namespace
from neorion.keel.kube import Bookmark, Deleted, condition
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import DEPLOYMENT, POD
from neorion.navarch.model.gen import navarch_pb as pb
from tests.kube.navarch_cluster import Yard, deployment, yard
from tests.kube.navarch_nodes import until
from tests.kube.test_navarch_scheduler import BUDGET

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cut_connections"), pytest.mark.timeout(600)]

# Pattern 1: navarch sizes the pool by the pods that want it. A pod that moves is not wanted for a moment, which is
# longer on a busy machine: that must not count as less demand.
MANAGED = """
  - name: k8s-gpu-workers
    provider: lambda
    instance_type: gpu_8x_h100_sxm5
    region: us-west-2
    stabilization: 5s
    scaling:
      min_nodes: 1
      max_nodes: 4
      cooldown_period: 1s
      autoscaler: { type: queue, jobs_per_node: 1 }
    health: { unhealthy_threshold: 2, auto_replace: true }
    labels: { workload: training }
"""
# Pattern 2: somebody else decides how large it is; navarch watches and replaces.
WATCHED = """
  - name: k8s-gpu-workers
    provider: lambda
    instance_type: gpu_8x_h100_sxm5
    region: us-west-2
    scaling:
      min_nodes: 0
      max_nodes: 100
    health: { unhealthy_threshold: 2, auto_replace: true }
"""
# Work that hangs is started anew.
RESTARTS = """
version: v1
metadata: { name: restarts }
rules:
  - name: hung
    condition: event.xid == 8
    result: unhealthy
    action: restart_workload
    certain: true
"""
# The safe order: its successor serves before anything is moved.
ORDER = [
    "health.unhealthy",
    "node.cordoned",
    "node.ordered",
    "node.active",
    "node.draining",
    "node.drained",
    "node.terminating",
    "node.terminated",
]


@pytest.fixture(scope="module")
def played(own_cluster: Cluster) -> Cluster:
    """Simulated nodes, when there are any, are played from now on."""
    anyio.run(start_kwok, own_cluster)
    return own_cluster


@pytest.fixture
async def api(played: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([played.kubeconfig]).cluster(), "test/1") as client:
        yield client


@pytest.fixture
async def place(played: Cluster) -> AsyncGenerator[str]:
    async with namespace(played) as name:
        yield name


async def _ready(yard: Yard, place: str, count: int) -> None:
    await until(yard.api, DEPLOYMENT, "train", lambda one: one.status.ready_replicas == count, place)


async def _fewest_ready(api: Client, place: str, counts: list[int]) -> None:
    """Notes after every change how many pods are ready."""
    ready: dict[str, bool] = {}
    while True:
        async with api.watch(POD, place) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    counts += [sum(ready.values())] if event.initial_done else []
                    continue
                found = condition(event.object.status.conditions, "Ready")
                gone = isinstance(event, Deleted) or event.object.meta.deleted is not None
                ready[event.object.meta.name] = not gone and found is not None and found.holds
                if counts:
                    counts.append(sum(ready.values()))


def _after_the_fault(story: list[str]) -> list[str]:
    told = story[story.index("health.unhealthy") :]
    return [event for event in told if event in ORDER]


async def test_pattern_1_pods_bring_nodes_a_sick_one_is_replaced_and_idle_ones_go(
    played: Cluster, api: Client, place: str, tmp_path: Path
):
    async with yard(api, played.kubeconfig, tmp_path, MANAGED) as it:
        await it.active(1)
        await api.create(DEPLOYMENT, deployment(place, it.pool, 3))
        await it.active(3)
        await _ready(it, place, 3)
        assert {one.meta.labels["workload"] for one in await it.members()} == {"training"}

        budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "train"}}}
        await api.create(BUDGET, {"metadata": {"name": "train", "namespace": place}, "spec": budget})
        await until(api, BUDGET, "train", lambda one: one.status.current_healthy == 3, place)
        sick = (await it.pods(place))[0].spec.node_name
        counts: list[int] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_fewest_ready, api, place, counts)
            it.strike(sick)
            await it.until(lambda: _gone(it, sick))
            await it.active(3)
            await _ready(it, place, 3)
            group.cancel_scope.cancel()
        assert min(counts) >= 2
        assert _after_the_fault(await it.story()) == ORDER
        nodes = {one.meta.name for one in await it.members()}
        assert sick not in nodes
        assert {one.spec.node_name for one in await it.pods(place)} == nodes
        assert set(it.cloud.bought.values()) == {1}

        await api.delete(DEPLOYMENT, "train", place)
        await it.active(1)
        await it.until(lambda: _is_size(it, 1))


async def test_pattern_2_navarch_buys_only_when_asked_and_replaces_what_is_sick_or_named(
    played: Cluster, api: Client, place: str, tmp_path: Path
):
    async with yard(api, played.kubeconfig, tmp_path, WATCHED) as it:
        await api.create(DEPLOYMENT, deployment(place, it.pool, 2))
        # As often as an autoscaler would have looked by now, and more.
        plan = await it.client.calls.plan(pb.PlanRequest(pool=it.pool))
        assert not plan.steps
        assert not it.cloud.machines

        await it.client.calls.scale_pool(pb.ScalePoolRequest(pool=it.pool, nodes=2, why="autoscaler"))
        first, second = await it.active(2)
        await _ready(it, place, 2)

        it.strike(first.machine)
        await it.until(lambda: _gone(it, first.machine))
        assert _after_the_fault(await it.story()) == ORDER
        await it.active(2)

        await it.client.calls.replace_node(pb.NodeOrder(node=second.id, why="its fan is loud"))
        await it.until(lambda: _gone(it, second.machine))
        await it.active(2)
        await _ready(it, place, 2)
        assert len(it.cloud.bought) == 4
        (pool,) = await it.client.pools()
        assert (pool.wanted, pool.autoscaler) == (2, "")


async def test_restarted_work_leaves_and_comes_back_and_its_node_stays(
    played: Cluster, api: Client, place: str, tmp_path: Path
):
    (tmp_path / "restarts.yaml").write_text(RESTARTS)
    restarting = WATCHED.replace("unhealthy_threshold: 2", "policy: restarts.yaml")
    async with yard(api, played.kubeconfig, tmp_path, restarting) as it:
        await it.client.calls.scale_pool(pb.ScalePoolRequest(pool=it.pool, nodes=2, why="test"))
        nodes = await it.active(2)
        await api.create(DEPLOYMENT, deployment(place, it.pool, 2))
        await _ready(it, place, 2)
        sick = nodes[0].machine
        before = {one.spec.node_name: one.meta.uid for one in await it.pods(place)}
        it.strike(sick, 8)

        async def restarted() -> bool:
            after = {one.spec.node_name: one.meta.uid for one in await it.pods(place)}
            return sick in after and after[sick] != before[sick]

        await it.until(restarted)
        await _ready(it, place, 2)
        await it.active(2)
        after = {one.spec.node_name: one.meta.uid for one in await it.pods(place)}
        assert {node for node in before if before[node] != after[node]} == {sick}
        told = _after_the_fault(await it.story())
        assert told == ["health.unhealthy", "node.cordoned", "node.draining", "node.drained", "node.active"]
        assert len(it.cloud.bought) == 2


async def test_a_drain_that_a_budget_blocks_explains_itself(
    played: Cluster, api: Client, place: str, tmp_path: Path
):
    async with yard(api, played.kubeconfig, tmp_path, WATCHED) as it:
        await it.client.calls.scale_pool(pb.ScalePoolRequest(pool=it.pool, nodes=1, why="test"))
        (node,) = await it.active(1)
        await api.create(DEPLOYMENT, deployment(place, it.pool, 1))
        await _ready(it, place, 1)
        budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "train"}}}
        await api.create(BUDGET, {"metadata": {"name": "train", "namespace": place}, "spec": budget})
        await until(api, BUDGET, "train", lambda one: one.status.current_healthy == 1, place)
        await it.client.calls.drain_node(pb.NodeOrder(node=node.id, why="to be looked at"))

        async def explained() -> bool:
            said = (await it.client.calls.explain(pb.ExplainRequest(subject=node.id))).sentences
            return any(re.search(r"It waits: 1 pod is left: .*disruption budget", one) for one in said)

        await it.until(explained)
        await api.delete(BUDGET, "train", place)
        await it.until(lambda: _is(it, node.id, "drained"))
        await it.client.calls.uncordon_node(pb.NodeOrder(node=node.id, why="it is fine"))
        await _ready(it, place, 1)


async def _gone(it: Yard, machine: str) -> bool:
    """The machine from its cloud, and its node from the cluster."""
    return machine not in {one.id for one in it.cloud.alive()} and machine not in {
        one.meta.name for one in await it.members()
    }


async def _is_size(it: Yard, count: int) -> bool:
    return len(await it.members()) == count


async def _is(it: Yard, node: str, state: str) -> bool:
    return (await it.client.calls.get_node(pb.GetNodeRequest(node=node))).state == state
