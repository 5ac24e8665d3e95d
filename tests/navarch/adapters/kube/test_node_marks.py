"""What the cluster sees of a node in each of its states."""

import pytest

from neorion.capacity.node import TaintEffect, marks
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import Node as KubeNode
from neorion.keel.kube.core.nodes import NodeSpec, NodeStatus
from neorion.keel.kube.core.nodes import Taint as KubeTaint
from neorion.keel.kube.objects import Condition as KubeCondition
from neorion.navarch.adapters.kube.node_marks import (
    OUR_CONDITIONS,
    OUR_TAINTS,
    NodeMarks,
    scheduling_status,
    signs,
)
from neorion.navarch.model import Health, Node, NodeState
from neorion.navarch.testing import ailment, node

TOLD = [
    NodeState.VERIFYING,
    NodeState.SPARE,
    NodeState.UNCORDONING,
    NodeState.ACTIVE,
    NodeState.CORDONED,
    NodeState.DRAINING,
    NodeState.DRAINED,
]


def of(one: Node, drain: str = "") -> NodeMarks:
    return signs(one, {"workload": "training"}, drain)


@pytest.mark.parametrize("state", TOLD)
def test_every_sign_is_one_that_is_also_taken_off(state: NodeState):
    sick = node(state=state, health=Health.UNHEALTHY, ailment=ailment(), why="XID 79")
    found = of(sick)
    assert {one.key for one in found.taints} <= OUR_TAINTS
    assert {one.type for one in found.conditions} <= OUR_CONDITIONS
    assert found.away is (not state.open)


def test_a_healthy_node_at_work_carries_labels_and_nothing_that_keeps_work_away():
    found = of(node())
    assert (found.away, found.taints) == (False, ())
    assert found.own_labels == {
        marks.POOL: "training",
        marks.NODE_ID: "node-0001",
        marks.PROVIDER: "fake",
    }
    assert [(one.type, one.status) for one in found.conditions] == [(marks.GPU_HEALTHY, True)]


@pytest.mark.parametrize("state", [NodeState.VERIFYING, NodeState.SPARE])
def test_daemons_may_get_new_and_spare_nodes_ready(state: NodeState):
    assert {one.effect for one in of(node(state=state)).taints} == {TaintEffect.PREFER_NO_SCHEDULE}


def test_a_sick_node_takes_nothing_new_and_says_why():
    found = of(node(state=NodeState.CORDONED, health=Health.UNHEALTHY, ailment=ailment(), why="XID 79 (bus)"))
    assert [(one.key, one.value, one.effect) for one in found.taints] == [
        (marks.CORDONED, "XID-79--bus", TaintEffect.NO_SCHEDULE),
        (marks.UNHEALTHY, "xid-79", TaintEffect.NO_SCHEDULE),
    ]
    assert (marks.GPU_HEALTHY, False) in [(one.type, one.status) for one in found.conditions]


def test_a_drain_says_what_it_waits_for():
    found = of(node(state=NodeState.DRAINING, why="XID 79"), drain="1 pod is left: team/db-0 is stopping")
    assert [one.message for one in found.conditions if one.type == marks.DRAIN_IN_PROGRESS] == [
        "1 pod is left: team/db-0 is stopping"
    ]


def test_nobody_claims_to_know_the_health_of_a_node_that_was_not_heard():
    assert of(node(state=NodeState.VERIFYING, health=Health.UNKNOWN)).conditions == ()


READY = KubeCondition("Ready", "True")


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        (NodeSpec(), NodeStatus(conditions=(READY,)), ""),
        (NodeSpec(taints=(KubeTaint("nvidia.com/gpu", "NoSchedule"),)), NodeStatus(conditions=(READY,)), ""),
        (NodeSpec(unschedulable=True), NodeStatus(conditions=(READY,)), "is cordoned in the cluster"),
        (NodeSpec(), NodeStatus(), "the kubelet of n is not ready"),
        (
            NodeSpec(),
            NodeStatus(conditions=(KubeCondition("Ready", "Unknown"),)),
            "the kubelet of n is not ready",
        ),
        (
            NodeSpec(taints=(KubeTaint("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),)),
            NodeStatus(conditions=(READY,)),
            "has the taint node.cloudprovider.kubernetes.io/uninitialized",
        ),
    ],
)
def test_a_node_is_schedulable_when_nothing_of_the_cluster_keeps_pods_away(
    spec: NodeSpec, status: NodeStatus, why: str
):
    found = scheduling_status(KubeNode(ObjectMeta("n"), spec, status))
    assert found.schedulable is (not why)
    assert why in found.sentence
