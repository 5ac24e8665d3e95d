"""Whether a running server may give up its pod for another flavor's."""

import pytest
from msgspec.structs import replace

from neorion.devservers.decide.flavor_change import ClusterFacts, FlavorChange, block_reason
from neorion.devservers.model import DevServerFlavorSpec, Resources, Toleration
from neorion.devservers.model.kube_types import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from neorion.devservers.testing import FLAVOR, a_pod
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import Node, NodeSpec, NodeStatus, ResourceQuota, Taint
from neorion.keel.kube.core.core_v1 import ResourceQuotaStatus

ZONE = "topology.kubernetes.io/zone"
GPU = DevServerFlavorSpec(
    resources=Resources(
        requests={"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 1}
    ),
    node_selector={"gpu": "l4"},
    tolerations=(Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoSchedule"),),
)
KEPT_FOR_GPUS = Taint(key="nvidia.com/gpu", effect="NoSchedule", value="present")


def a_node(zone: str = "a", *taints: Taint, cpu: str = "8", gpus: str = "1", kind: str = "l4") -> Node:
    has = {"cpu": cpu, "memory": "32Gi", "nvidia.com/gpu": gpus}
    return Node(
        meta=ObjectMeta(name=f"node-{zone}", labels={ZONE: zone, "gpu": kind}),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable=has),
    )


def in_zone(*zones: str, operator: str = "In") -> PersistentVolume:
    term = NodeSelectorTerm(
        match_expressions=(NodeSelectorRequirement(key=ZONE, operator=operator, values=zones),)
    )
    return PersistentVolume(
        spec=PersistentVolumeSpec(
            node_affinity=VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
        )
    )


def quota(hard: dict[str, str], used: dict[str, str]) -> ResourceQuota:
    return ResourceQuota(meta=ObjectMeta(name="team"), status=ResourceQuotaStatus(hard=hard, used=used))


def found(around: ClusterFacts, flavor: DevServerFlavorSpec = GPU, *, autoscaled: bool = False) -> str | None:
    """The word for what is in the way, of a server that has one core and two gigabytes."""
    told = block_reason(FlavorChange(a_pod(), "gpu", flavor, autoscaled=autoscaled), around)
    return told.reason if told else None


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        pytest.param(ClusterFacts(nodes=(a_node(),)), None, id="a node has all of it"),
        pytest.param(ClusterFacts(nodes=(a_node("a", KEPT_FOR_GPUS),)), None, id="a taint it tolerates"),
        pytest.param(
            ClusterFacts(nodes=(a_node("a", Taint(key="team", effect="NoSchedule", value="x")),)),
            "NoSuchNode",
            id="a taint it does not",
        ),
        pytest.param(
            ClusterFacts(nodes=(a_node("a", Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")),)),
            None,
            id="a node that is ill will be well",
        ),
        pytest.param(ClusterFacts(nodes=(a_node(kind="h100"),)), "NoSuchNode", id="nodes of another kind"),
        pytest.param(ClusterFacts(), "NoSuchNode", id="no nodes"),
        pytest.param(ClusterFacts(nodes=(a_node(cpu="3"),)), "NodesTooSmall", id="too few cores"),
        pytest.param(ClusterFacts(nodes=(a_node(gpus="0"),)), "NodesTooSmall", id="no device"),
        pytest.param(
            ClusterFacts(volume=in_zone("a", "b"), nodes=(a_node("b"),)), None, id="the home comes along"
        ),
        pytest.param(
            ClusterFacts(volume=in_zone("a"), nodes=(a_node("b"),)), "HomeElsewhere", id="the home does not"
        ),
        pytest.param(
            ClusterFacts(volume=in_zone("a"), nodes=(a_node("a", cpu="1"), a_node("b"))),
            "NodesTooSmall",
            id="where the home is there is no room, and where there is room no home",
        ),
        pytest.param(
            ClusterFacts(volume=in_zone("b", operator="NotIn"), nodes=(a_node("a"),)),
            None,
            id="anywhere else",
        ),
    ],
)
def test_a_node_must_be_of_the_kind_within_reach_and_large_enough(around: ClusterFacts, reason: str | None):
    assert found(around) == reason


@pytest.mark.parametrize(
    ("hard", "used", "reason"),
    [
        ({"requests.cpu": "5"}, {"requests.cpu": "2"}, None),
        ({"requests.cpu": "4"}, {"requests.cpu": "2"}, "QuotaShort"),
        ({"cpu": "4500m"}, {"cpu": "2"}, "QuotaShort"),
        ({"requests.nvidia.com/gpu": "0"}, {}, "QuotaShort"),
        ({"limits.nvidia.com/gpu": "1"}, {"limits.nvidia.com/gpu": "1"}, "QuotaShort"),
        ({"requests.memory": "20Gi"}, {"requests.memory": "6Gi"}, None),
        ({"limits.cpu": "1"}, {"limits.cpu": "9"}, None),
    ],
)
def test_a_quota_counts_what_the_old_pod_gives_back(
    hard: dict[str, str], used: dict[str, str], reason: str | None
):
    assert found(ClusterFacts(nodes=(a_node(),), quotas=(quota(hard, used),))) == reason


def test_a_quota_that_is_exceeded_already_forbids_nothing_that_takes_less():
    smaller = replace(FLAVOR, resources=Resources(requests={"cpu": "500m"}), node_selector={"gpu": "l4"})
    around = ClusterFacts(nodes=(a_node(),), quotas=(quota({"requests.cpu": "1"}, {"requests.cpu": "9"}),))
    assert found(around, smaller) is None


def test_what_changes_in_place_stays_where_it_is_and_counts_against_quotas_alone():
    move = FlavorChange(a_pod(), "gpu", GPU, in_place=True)
    assert block_reason(move, ClusterFacts()) is None
    assert block_reason(move, ClusterFacts(quotas=(quota({"cpu": "1"}, {"cpu": "1"}),))) is not None


def test_where_nodes_come_by_themselves_only_contradictions_and_quotas_count():
    assert found(ClusterFacts(), autoscaled=True) is None
    here = replace(GPU, node_selector={ZONE: "b"})
    assert found(ClusterFacts(volume=in_zone("a")), here, autoscaled=True) == "HomeElsewhere"
    assert found(ClusterFacts(volume=in_zone("a", "b")), here, autoscaled=True) is None


def test_what_is_in_the_way_is_told_in_a_sentence():
    move = FlavorChange(a_pod(), "gpu", GPU)
    short = block_reason(
        move, ClusterFacts(quotas=(quota({"requests.cpu": "4"}, {"requests.cpu": "2"}),), nodes=(a_node(),))
    )
    assert short is not None
    assert short.sentence == (
        'The quota "team" allows 4 of requests.cpu, and with the flavor "gpu" 5 would be used.'
    )
    elsewhere = block_reason(move, ClusterFacts(volume=in_zone("a"), nodes=(a_node("b"),)))
    assert elsewhere is not None
    assert elsewhere.sentence == (
        'The home is tied to topology.kubernetes.io/zone a, and the flavor "gpu" has no node there.'
    )
