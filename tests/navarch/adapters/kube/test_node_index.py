"""Which Kubernetes node is which node of the fleet."""

from typing import Any

import pytest

from neorion.capacity.node import marks
from neorion.capacity.provider import MachineId
from neorion.keel.base import Conflict
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.control import Informer
from neorion.keel.kube.core import NODE
from neorion.keel.kube.core import Node as KubeNode
from neorion.keel.kube.core.nodes import NodeSpec
from neorion.navarch.adapters.kube.node_index import KubeNodeIndex
from neorion.navarch.model import Node
from neorion.navarch.testing import node


def kube(name: str, provider: str = "", **labels: str) -> KubeNode:
    return KubeNode(
        ObjectMeta(name=name, labels=labels, resource_version="1"), NodeSpec(provider_id=provider)
    )


def roster(*found: KubeNode) -> KubeNodeIndex:
    mirror = Informer(NODE)
    made = KubeNodeIndex(mirror)
    mirror.replace_all({one.meta.key: one for one in found}, 1)
    return made


def known(number: int, **names: Any) -> Node:
    said: dict[str, Any] = {"machine": MachineId(""), **names}
    return node(number, **said)


@pytest.mark.parametrize(
    ("kubernetes", "fleet"),
    [
        (kube("ip-10-0-0-1", "aws:///us-west-2a/i-0abc"), known(1, machine=MachineId("i-0abc"))),
        (kube("gpu-7", "gce://project/zone/vm-7"), known(1, machine_name="vm-7")),
        (kube("gpu-7"), known(1, kube_name="gpu-7")),
        (kube("gpu-7"), known(1, agent="gpu-7")),
        (kube("x", **{"kubernetes.io/hostname": "host-7"}), known(1, machine_name="host-7")),
        (kube("x", **{marks.NODE_ID: "node-0001"}), known(1)),
    ],
)
def test_a_node_is_found_by_any_name_that_only_it_goes_by(kubernetes: KubeNode, fleet: Node):
    them = roster(kubernetes, kube("another", "aws:///us-west-2a/i-other"))
    them.learn(fleet)
    assert them.find(fleet) == kubernetes
    assert them.owner(kubernetes) == fleet


def test_what_fits_two_is_nobodys_until_a_label_says_whose():
    """An agent that claims another's name gains nothing by it."""
    mine, liar = known(1, machine=MachineId("i-0abc")), known(2, agent="gpu-7")
    them = roster(kube("gpu-7", "aws:///us-west-2a/i-0abc"))
    them.learn(mine)
    them.learn(liar)
    assert (them.find(mine), them.find(liar)) == (None, None)
    labelled = kube("gpu-7", "aws:///us-west-2a/i-0abc", **{marks.NODE_ID: "node-0001"})
    them = roster(labelled)
    them.learn(mine)
    them.learn(liar)
    assert (them.find(mine), them.find(liar)) == (labelled, None)


def test_a_label_of_a_node_that_is_no_more_counts_for_nothing():
    them = roster(kube("gpu-7", **{marks.NODE_ID: "node-0009"}))
    fresh = known(1, kube_name="gpu-7")
    them.learn(fresh)
    found = them.find(fresh)
    assert found is not None
    assert found.meta.name == "gpu-7"


def test_one_that_goes_by_new_names_does_not_keep_its_old_ones():
    them = roster(kube("gpu-7"))
    them.learn(known(1, kube_name="gpu-7"))
    moved = known(1, kube_name="gpu-8")
    them.learn(moved)
    assert them.find(moved) is None
    them.forget(moved.id)
    assert them.owner(kube("gpu-8")) is None


def test_two_nodes_that_could_be_one_are_refused_with_what_to_do():
    them = roster(kube("gpu-7"), kube("gpu-8"))
    twice = known(1, kube_name="gpu-7", machine_name="gpu-8")
    them.learn(twice)
    with pytest.raises(Conflict) as refused:
        them.find(twice)
    assert refused.value.code == "navarch.two_kube_nodes"


def test_a_name_leads_to_what_else_the_cluster_calls_its_machine():
    them = roster(
        kube("ip-10-0-0-1", "aws:///us-west-2a/i-0abc", **{"kubernetes.io/hostname": "host-1"}),
        kube("gpu-7", **{marks.NODE_ID: "node-0007"}),
    )
    assert them.aliases("ip-10-0-0-1") == {"ip-10-0-0-1", "i-0abc", "host-1"}
    assert them.aliases("gpu-7") == {"gpu-7", "node-0007"}
    assert them.aliases("nobody") == frozenset()
