"""A running server that is asked for what cannot be: it goes on as it is, and says why."""

from dataclasses import replace as changed
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from neorion.devservers.decide import ClusterFacts, Decision, Observed, decide, needs_cluster_facts
from neorion.devservers.decide.running import RECHECK_AFTER
from neorion.devservers.model import (
    AppliedFlavor,
    Condition,
    ConditionType,
    DevServerSpec,
    HomeVolume,
    Lifecycle,
)
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import ObjectMeta
from neorion.keel.kube.core import Node, NodeStatus, PersistentVolumeClaim, PodStatus
from neorion.keel.kube.core.core_v1 import (
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResources,
)

NOW = CREATED + timedelta(minutes=5)
ELSEWHERE = replace(FLAVOR, node_selector={"zone": "b"})
ROOMY = {"cpu": "64", "memory": "256Gi"}
HERE = Node(meta=ObjectMeta(name="n1", labels={"zone": "a"}), status=NodeStatus(allocatable=ROOMY))
THERE = Node(meta=ObjectMeta(name="n2", labels={"zone": "b"}), status=NodeStatus(allocatable=ROOMY))


def wanting(**spec: object) -> DevServerSpec:
    calm = Lifecycle(auto_shutdown=False)
    return DevServerSpec(flavor="cpu-small", lifecycle=calm, **spec)  # pyright: ignore[reportArgumentType] -- each test's own fields


def moving(*nodes: Node, pod: PodStatus | None = None) -> Observed:
    """A server that runs, was on another flavor, and now wants one with nodes of its own."""
    first = Observed(
        server=a_server(wanting()), flavor=a_flavor(name="old"), home=a_claim(), pods=(a_pod(status=pod),)
    )
    status = decide(first, SETTINGS, NOW).status
    status = replace(status, flavor=AppliedFlavor(applied="old"))
    return Observed(
        server=a_server(wanting(), status),
        flavor=a_flavor(ELSEWHERE),
        home=a_claim(),
        pods=first.pods,
        around=ClusterFacts(nodes=nodes),
    )


def resizing(decision: Decision) -> Condition:
    return next(one for one in decision.status.conditions if one.type is ConditionType.RESIZING)


def kinds(decision: Decision) -> list[str]:
    return [made["kind"] for made in decision.objects]


def test_a_pod_that_has_its_place_is_not_given_up_for_one_that_never_gets_any():
    told = decide(moving(HERE), SETTINGS, NOW)
    assert "Deployment" not in kinds(told)
    assert told.status.ready
    assert told.status.flavor == AppliedFlavor(applied="old")
    assert (resizing(told).status, resizing(told).reason) == ("False", "NoSuchNode")
    assert told.status.message == (
        'No node is of the kind the flavor "cpu-small" asks for: zone=b. The server goes on as it is.'
    )
    assert [note.reason for note in told.notes] == ["NoSuchNode"]
    assert told.wake == NOW + RECHECK_AFTER


def test_it_is_told_once_and_costs_nothing_more_while_it_lasts():
    first = decide(moving(HERE), SETTINGS, NOW)
    again = changed(moving(HERE), server=a_server(wanting(), first.status))
    later = decide(again, SETTINGS, NOW + RECHECK_AFTER)
    assert later.status == first.status
    assert later.notes == ()


def test_it_moves_when_there_is_a_node_or_nodes_come_by_themselves():
    assert "Deployment" in kinds(decide(moving(HERE, THERE), SETTINGS, NOW))
    assert "Deployment" in kinds(decide(moving(HERE), changed(SETTINGS, autoscaled=True), NOW))


def test_only_a_pod_that_has_its_place_is_worth_a_look_around():
    assert needs_cluster_facts(moving(HERE))
    assert not needs_cluster_facts(moving(HERE, pod=PodStatus(phase="Pending")))
    assert not needs_cluster_facts(changed(moving(HERE), flavor=a_flavor()))


def home_of(size: str) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(
        resources=VolumeResources(requests={"storage": size}), storage_class_name="slow"
    )
    return PersistentVolumeClaim(
        meta=ObjectMeta(name="mydev-home", namespace="dev-ann"),
        spec=spec,
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )


def asked_of_home(there: str, wanted: str, *, home_grows: bool, running: bool = True) -> Decision:
    seen = Observed(
        server=a_server(wanting(persistent_home_size=wanted, running=running)),
        flavor=a_flavor(),
        home=home_of(there),
        pods=(a_pod(),),
    )
    assert needs_cluster_facts(seen) is (wanted == "200Gi")
    return decide(changed(seen, around=ClusterFacts(home_grows=home_grows)), SETTINGS, NOW)


def size_of(decision: Decision) -> Any:
    [home] = [made for made in decision.objects if made["kind"] == "PersistentVolumeClaim"]
    return home["spec"]["resources"]["requests"]["storage"]


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.parametrize(
    ("wanted", "home_grows", "size"),
    [("200Gi", True, "200Gi"), ("200Gi", False, "100Gi"), ("50Gi", True, "100Gi"), ("100Gi", False, "100Gi")],
)
def test_a_home_grows_where_it_can_and_never_shrinks(
    wanted: str, size: str, *, home_grows: bool, running: bool
):
    assert size_of(asked_of_home("100Gi", wanted, home_grows=home_grows, running=running)) == size


def test_a_home_that_cannot_grow_says_so():
    told = asked_of_home("100Gi", "200Gi", home_grows=False)
    assert resizing(told).reason == "HomeCannotGrow"
    assert told.status.message == (
        'The home stays at 100Gi: its storage class "slow" lets no volume grow. The server goes on as it is.'
    )


def test_a_home_that_cannot_grow_is_marked_all_the_same_when_its_server_goes():
    leaving = Observed(
        server=a_server(wanting(persistent_home_size="200Gi"), deleted=NOW.isoformat()), home=home_of("100Gi")
    )
    assert not needs_cluster_facts(leaving)
    assert size_of(decide(leaving, SETTINGS, NOW)) == "100Gi"


@pytest.mark.parametrize("deleted", [None, NOW.isoformat()])
@pytest.mark.parametrize(
    ("first", "then", "named"),
    [
        ("slow", "fast", "slow"),
        ("slow", None, "slow"),
        # The cluster's default, which nobody named, is nobody's to name.
        (None, None, None),
        (None, "fast", "slow"),
    ],
)
def test_a_kept_home_stays_in_its_class_whatever_its_next_server_asks_for(
    first: str | None, then: str | None, named: str | None, deleted: str | None
):
    made = claimed(
        Observed(server=a_server(wanting(home=HomeVolume(storage_class=first))), flavor=a_flavor())
    )
    home = home_of("100Gi")
    home = replace(home, meta=replace(home.meta, annotations=made["metadata"].get("annotations", {})))
    next_one = a_server(wanting(home=HomeVolume(storage_class=then)), deleted=deleted)
    seen = Observed(server=next_one, flavor=a_flavor(), home=home)
    assert claimed(seen)["spec"].get("storageClassName") == named


def claimed(seen: Observed) -> dict[str, Any]:
    found = decide(seen, SETTINGS, NOW).objects
    return next(made for made in found if made["kind"] == "PersistentVolumeClaim")
