"""CoreWeave, played: NodePools become nodes, and fail as they are asked to."""

import os
from collections.abc import Generator
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.coreweave import (
    FAULT,
    MACHINES,
    NODE_POOL,
    NOTICE,
    OLD_NAMES,
    POOL,
    Fault,
    NodePool,
    PoolNode,
    PoolSpec,
    decide,
)
from neorion.drydock.coreweave.nodepool_types import Lifecycle
from neorion.keel.base import Duration, Retry, Terminal
from neorion.keel.kube import MergePatch, ObjectMeta
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from tests.drydock.workloads import H100, apply, pool, wait

ON_A_CLUSTER = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(480)]

GIVEN = st.lists(
    st.builds(PoolNode, st.uuids().map(str), st.booleans(), st.booleans(), st.booleans()), max_size=6
)


def _pool(target: int, strategy: str, fault: str) -> NodePool:
    meta = ObjectMeta(name="p", annotations={FAULT: fault} if fault else {})
    return NodePool(meta, PoolSpec(H100, target_nodes=target, lifecycle=Lifecycle(strategy)))


POOLS = st.builds(
    _pool,
    st.integers(0, 6),
    st.sampled_from(["IdleOnly", "PreferIdle"]),
    st.sampled_from(["", *Fault]),
)


@given(POOLS, GIVEN)
def test_a_plan_leads_to_the_target_and_never_past_it(pool: NodePool, machines: list[PoolNode]):
    plan = decide(pool, machines, {H100})
    after = len(machines) - len(plan.remove) + plan.order
    busy = {each.name for each in machines if not each.idle and not each.lost}
    if pool.spec.lifecycle.scale_down_strategy == "IdleOnly":
        assert busy.isdisjoint(plan.remove)
    else:
        assert after + plan.queued == pool.spec.target
    assert plan.order == 0 or after == pool.spec.target
    assert plan.queued == 0 or plan.order == 0
    met = next(verdict for verdict in plan.verdicts if verdict.type == "AtTarget").holds
    assert not (met and (plan.order or plan.queued))


def test_an_unknown_instance_type_is_invalid_and_buys_nothing():
    plan = decide(NodePool(ObjectMeta(name="p"), PoolSpec("gd-9xh100", target_nodes=3)), [], {H100})
    assert plan.order == 0
    assert [(verdict.type, verdict.holds) for verdict in plan.verdicts] == [("Validated", False)]


@pytest.mark.parametrize(
    ("machines", "reason"), [("real", "NoRealMachines"), ("wooden", "InvalidMachines")], ids=str
)
def test_machines_that_cannot_be_had_are_not_bought(machines: str, reason: str):
    meta = ObjectMeta(name="p", annotations={MACHINES: machines})
    plan = decide(NodePool(meta, PoolSpec(H100, target_nodes=3)), [], {H100})
    assert (plan.order, [verdict.reason for verdict in plan.verdicts]) == (0, [reason])


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("cloud"))})
    try:
        yield anyio.run(yard.up, "cloud", ClusterOptions(coreweave=True))
    finally:
        anyio.run(yard.down, "cloud")


async def _apply(cluster: Cluster, name: str, fault: str = "", **spec: Any) -> None:
    await apply(cluster, pool(name, fault, **spec))


async def _nodes(cluster: Cluster, pool: str) -> list[dict[str, Any]]:
    async with cluster.api() as api:
        return (await api.get(f"/api/v1/nodes?labelSelector={POOL}={pool}"))["items"]


async def _told_of(cluster: Cluster, pool: str) -> None:
    """Returns when there is an Event of it: they are written a moment after what they tell of."""
    with anyio.fail_after(60):
        async with cluster.api() as api:
            while not (await api.get(f"/api/v1/events?fieldSelector=involvedObject.name={pool}"))["items"]:
                await cluster.clock.sleep(Duration.of(ms=100))


async def _change_for_ever(api: Client, name: str) -> None:
    """A server hears of its webhooks a moment after they are made."""
    while True:
        for target in (1, 0):
            await api.patch(NODE_POOL, name, MergePatch({"spec": {"targetNodes": target}}))


class TestOnACluster:
    pytestmark = ON_A_CLUSTER

    async def test_two_nodes_arrive_as_described_and_go_with_their_pool(self, cloud: Cluster):
        taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
        await _apply(cloud, "two", targetNodes=2, nodeLabels={"team": "a"}, nodeTaints=taints)
        await wait(cloud, "nodepool/two", "condition=AtTarget")
        nodes = await _nodes(cloud, "two")
        assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
        assert [node["metadata"]["labels"]["team"] for node in nodes] == ["a", "a"]
        assert all("team" in str(node["spec"]["taints"]) for node in nodes)
        await cloud.kubectl("delete", "nodepool", "two")
        await cloud.kubectl("wait", "nodes", "-l", f"{POOL}=two", "--for=delete", "--timeout=180s")
        assert await _nodes(cloud, "two") == []

    @pytest.mark.parametrize(
        ("spec", "says"),
        [
            ({"targetNodes": 1, "instanceType": "gd-8xa100-i128"}, "instanceType is immutable"),
            ({"targetNodes": 1, "computeClass": "spot"}, "computeClass is immutable"),
            ({"targetNodes": 1, "nodeLabels": {"node.coreweave.cloud/state": "x"}}, "reserved"),
            ({"targetNodes": 1, "nodeLabels": {"coreweave.com/team": "x"}}, "reserved"),
            ({"targetNodes": 1, "targetRacks": 1}, "exactly one of"),
            ({"targetNodes": 1, "minNodes": 3, "maxNodes": 2}, "minNodes exceeds maxNodes"),
            ({"targetNodes": 1, "image": {}, "gpu": {}}, "mutually exclusive"),
            ({"targetNodes": -1}, "should be greater than or equal to 0"),
        ],
    )
    async def test_what_coreweave_refuses_is_refused(self, cloud: Cluster, spec: dict[str, Any], says: str):
        await _apply(cloud, "strict", targetNodes=0)
        with pytest.raises(Terminal, match=says):
            await _apply(cloud, "strict", **spec)

    @pytest.mark.parametrize(
        ("spec", "says"),
        [
            ({"targetNodes": 4}, "must be a multiple of 18"),
            ({"targetNodes": 18, "autoscaling": True}, "autoscaling is not supported on rack types"),
            ({"targetNodes": 18, "computeClass": "spot"}, "spot is not offered"),
        ],
    )
    async def test_racks_are_sold_whole(self, cloud: Cluster, spec: dict[str, Any], says: str):
        with pytest.raises(Terminal, match=says):
            await _apply(cloud, "rack", instanceType="gb200-4x", **spec)

    async def test_nodes_look_like_those_of_coreweave(self, cloud: Cluster):
        await _apply(cloud, "marks", Fault.SLOW_BOOT, targetNodes=1, computeClass="spot")
        await wait(cloud, "nodepool/marks", "jsonpath={.status.inProgress}=1")
        (node,) = await _nodes(cloud, "marks")
        labels = node["metadata"]["labels"]
        assert labels["compute.coreweave.com/compute-class"] == "spot"
        assert labels["gpu.nvidia.com/class"] == "H100_NVLINK_80GB"
        assert labels["node.coreweave.cloud/state"] == "production"
        assert labels["backend.coreweave.cloud/flavor"] == "infiniband"
        assert labels["topology.kubernetes.io/zone"] == "US-EAST-04A"
        assert node["status"]["allocatable"]["rdma/ib"] == "6300"
        assert "qos.coreweave.cloud/interruptable" in str(node["spec"]["taints"])
        await wait(cloud, f"node/{node['metadata']['name']}", "condition=CWActive=False")
        (node,) = await _nodes(cloud, "marks")
        assert "qos.coreweave.cloud/interruptable" not in str(node["spec"])

    async def test_a_spot_machine_gets_a_notice_leaves_and_is_replaced(self, cloud: Cluster):
        spot: dict[str, Any] = {"targetNodes": 1, "computeClass": "spot"}
        await _apply(cloud, "spot", **spot)
        await wait(cloud, "nodepool/spot", "condition=AtTarget")
        (before,) = await _nodes(cloud, "spot")
        body = pool("spot", Fault.SPOT_RECLAIM, **spot)
        body["metadata"]["annotations"][NOTICE] = "2s"
        await apply(cloud, body)
        await wait(cloud, f"node/{before['metadata']['name']}", "condition=PendingPhaseState")
        await wait(cloud, f"node/{before['metadata']['name']}", "delete")
        await wait(cloud, "nodepool/spot", "condition=AtTarget")
        (after,) = await _nodes(cloud, "spot")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]

    @pytest.mark.parametrize(
        ("fault", "kind", "reason"),
        [
            (Fault.QUOTA, "Quota", "Over"),
            (Fault.QUOTA_NOT_SET, "Quota", "NotSet"),
            (Fault.NO_CAPACITY, "Capacity", "NoneAvailable"),
            (Fault.QUEUED, "Capacity", "QueuedAwaitingCapacity"),
            (Fault.CAPACITY_UNKNOWN, "Capacity", "CapacityUnknown"),
        ],
        ids=str,
    )
    async def test_a_pool_that_is_held_says_why_and_goes_on_later(
        self, cloud: Cluster, fault: Fault, kind: str, reason: str
    ):
        name = f"held-{fault}"
        await _apply(cloud, name, fault, targetNodes=1)
        await wait(cloud, f"nodepool/{name}", f"condition={kind}=False")
        said = f"jsonpath={{.status.conditions[?(@.type=='{kind}')].reason}}={reason}"
        await wait(cloud, f"nodepool/{name}", said)
        await wait(cloud, f"nodepool/{name}", "jsonpath={.status.queuedNodes}=1")
        assert await _nodes(cloud, name) == []
        await _told_of(cloud, name)
        await _apply(cloud, name, targetNodes=1)
        await wait(cloud, f"nodepool/{name}", "condition=AtTarget")

    async def test_a_pool_may_show_the_older_name_of_its_first_condition(self, cloud: Cluster):
        body = pool("old", targetNodes=0)
        body["metadata"]["annotations"][OLD_NAMES] = "true"
        await apply(cloud, body)
        await wait(cloud, "nodepool/old", "condition=Valid")

    async def test_a_node_that_never_gets_ready_stays_in_progress(self, cloud: Cluster):
        await _apply(cloud, "never", Fault.NEVER_READY, targetNodes=1)
        await wait(cloud, "nodepool/never", "jsonpath={.status.inProgressNodes}=1")
        await wait(cloud, "nodepool/never", "condition=AtTarget=False")

    async def test_a_lost_node_is_not_ready_and_replaced_when_the_fault_is_over(self, cloud: Cluster):
        await _apply(cloud, "lost", targetNodes=1)
        await wait(cloud, "nodepool/lost", "condition=AtTarget")
        (before,) = await _nodes(cloud, "lost")
        await _apply(cloud, "lost", Fault.NODE_LOST, targetNodes=1)
        await wait(cloud, f"node/{before['metadata']['name']}", "condition=Ready=Unknown")
        await _apply(cloud, "lost", targetNodes=1)
        await wait(cloud, "nodepool/lost", "condition=AtTarget")
        (after,) = await _nodes(cloud, "lost")
        assert after["metadata"]["uid"] != before["metadata"]["uid"]

    async def test_a_limited_pool_answers_429_until_the_fault_is_over(self, cloud: Cluster):
        await _apply(cloud, "hurried", Fault.RATE_LIMIT, targetNodes=0)
        more = MergePatch({"spec": {"targetNodes": 1}})
        async with connect(read_kubeconfig([cloud.kubeconfig]).cluster(), "test") as api:
            with anyio.fail_after(60), pytest.raises(Retry, match="changed too often") as told:
                await _change_for_ever(api, "hurried")
            assert (told.value.code, told.value.after) == ("kube.throttled", Duration.of(seconds=1))
            await _apply(cloud, "hurried", targetNodes=0)
            assert (await api.patch(NODE_POOL, "hurried", more)).spec.target == 1
