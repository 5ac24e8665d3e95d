"""What is done next about a NodePool, as values: how slices share one, and how machines are given back."""

from typing import Any

import msgspec
import pytest

from neorion.capacity.coreweave import NodePool, reclaim_notice
from neorion.iris.adapters.platforms.kubernetes.pools import (
    CORDONED,
    AssignNode,
    CordonNode,
    CreatePool,
    DeletePool,
    ObservedPool,
    PoolSlice,
    ReleaseNode,
    RequeueAfter,
    ResizePool,
    next_pool_steps,
)
from neorion.iris.adapters.platforms.kubernetes.record import Record, SliceSpec
from neorion.iris.model import Resources
from neorion.keel.base import Duration
from neorion.keel.kube import instant, time_text
from neorion.keel.kube.core import Node, Pod

NOW = instant("2026-01-31T12:00:00Z")
POOL = "iris-iris-h100"


def record(name: str, machines: int = 1, shared: str = POOL, **said: Any) -> Record:
    spec = SliceSpec(f"slice-{name}", "h100", machines, Resources(gpus=8), (), "here:1", shared)
    return Record(f"iris-h100-{name}", "u1", spec, **said)


def node(name: str, *, cordoned: str = "", ready: str = "True") -> Node:
    meta = {"name": name, "annotations": {CORDONED: "true"} if cordoned == "here" else {}}
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return msgspec.convert(
        {"metadata": meta, "spec": {"unschedulable": bool(cordoned)}, "status": status}, Node
    )


def pod(on: str = "", **meta: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": f"worker-{on}", **meta}, "spec": {"nodeName": on}}, Pod)


def pool(target: int, **meta: Any) -> NodePool:
    return msgspec.convert({"metadata": {"name": POOL, **meta}, "spec": {"targetNodes": target}}, NodePool)


def running(name: str, *on: str, **said: Any) -> PoolSlice:
    nodes = [node(each) for each in on]
    return PoolSlice(record(name, len(on), **said), nodes, [pod(each) for each in on])


def waiting(name: str, machines: int = 1, **said: Any) -> PoolSlice:
    return PoolSlice(record(name, machines, **said), [], [])


def steps(of: NodePool | None, *slices: PoolSlice, free: tuple[Node, ...] = ()) -> list[Any]:
    return list(next_pool_steps(ObservedPool(of, slices, free, NOW)))


def test_a_pool_begins_with_what_its_slices_need_and_grows_with_each():
    first, second = waiting("a"), waiting("b", 2)
    assert steps(None, first) == [CreatePool(first.record, 1)]
    assert steps(pool(1), first, second) == [ResizePool(pool(1), 3)]
    assert steps(pool(3), first, second) == []


def test_the_oldest_slice_gets_the_first_nodes_and_all_of_them_at_once():
    pair, single = waiting("a", 2), waiting("b", 1)
    (n0, n1) = node("n0"), node("n1")
    assert steps(pool(3), pair, single, free=(n0, n1)) == [
        AssignNode(n0, pair.record),
        AssignNode(n1, pair.record),
    ]
    assert steps(pool(4), pair, waiting("b", 2), free=(n0,)) == []


@pytest.mark.parametrize("unusable", [node("n", cordoned="by CoreWeave"), node("n", ready="False")])
def test_a_node_that_others_cordoned_or_that_boots_is_not_assigned(unusable: Node):
    assert steps(pool(1), waiting("a"), free=(unusable,)) == []


def test_a_node_that_was_cordoned_here_serves_again():
    kept = node("n", cordoned="here")
    a = waiting("a")
    assert steps(pool(1), a, free=(kept,)) == [AssignNode(kept, a.record)]


def test_a_node_is_cordoned_then_emptied_then_released_and_only_then_the_target_falls():
    kept, going = running("a", "n0"), running("b", "n1", deleting=True)
    (n1,) = going.nodes
    assert steps(pool(2), kept, going) == [CordonNode(n1)]
    cordoned = node("n1", cordoned="here")
    emptying = PoolSlice(going.record, [cordoned], going.workers)
    assert steps(pool(2), kept, emptying) == []
    task = PoolSlice(going.record, [cordoned], [], [pod("n1")])
    assert steps(pool(2), kept, task) == []
    emptied = PoolSlice(going.record, [cordoned], [])
    assert steps(pool(2), kept, emptied) == [ReleaseNode(cordoned), ResizePool(pool(2), 1)]
    assert steps(pool(1), kept, free=(cordoned,)) == []


def test_the_target_does_not_fall_while_a_worker_is_on_its_way_to_its_node():
    """Its node looks idle, so CoreWeave could take it."""
    placing = PoolSlice(record("a"), [node("n0")], [pod("")])
    assert steps(pool(2), placing, free=(node("n1"),)) == []
    placed = running("a", "n0")
    idle = node("n1")
    assert steps(pool(2), placed, free=(idle,)) == [CordonNode(idle), ResizePool(pool(2), 1)]


def test_a_slice_that_failed_holds_the_machines_that_it_has_and_no_more():
    failed = PoolSlice(record("b", 2, failure="lost"), [node("n1")], [pod("n1")])
    assert steps(pool(3), running("a", "n0"), failed) == [ResizePool(pool(3), 2)]


def test_the_pool_goes_with_its_last_slice_and_is_bought_again_for_the_next():
    last = PoolSlice(record("a", deleting=True), [node("n0")], [])
    assert steps(pool(1), last) == [DeletePool(pool(1))]
    going = pool(1, deletionTimestamp=time_text(NOW))
    assert steps(going, last, waiting("b")) == []
    after = waiting("b")
    assert steps(None, after) == [CreatePool(after.record, 1)]
    assert steps(pool(1)) == [DeletePool(pool(1))]


@pytest.mark.parametrize(
    ("passed", "expected"), [(0, [RequeueAfter(Duration.of(seconds=30))]), (31, [DeletePool(pool(1))])]
)
def test_machines_of_pods_whose_kubelet_is_gone_are_given_back_after_a_while(
    passed: int, expected: list[Any]
):
    ending = pod("n0", deletionTimestamp=time_text(NOW))
    last = PoolSlice(record("a", deleting=True, shared=""), [node("n0")], [ending])
    assert next_pool_steps(ObservedPool(pool(1), [last], [], NOW + Duration.of(seconds=passed))) == expected


def test_a_pool_of_one_slice_that_somebody_deleted_is_not_bought_again():
    assert steps(None, waiting("a", shared="")) != []
    assert steps(None, waiting("a", shared="", started=True)) == []


def test_only_a_spot_machine_is_taken_back():
    pending = {"conditions": [{"type": "PendingPhaseState", "status": "True", "reason": "SpotReclaim"}]}

    def of(kind: str) -> Node:
        labels = {"compute.coreweave.com/compute-class": kind}
        return msgspec.convert({"metadata": {"name": "n", "labels": labels}, "status": pending}, Node)

    assert (reclaim_notice(of("spot")), reclaim_notice(of("default"))) == ("SpotReclaim", "")
