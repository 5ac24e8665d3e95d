"""The flavor a server stands on: how it is come by, left, and gone back to."""

from dataclasses import replace as changed
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from neorion.devservers.decide import (
    STOPPED_BECAUSE,
    ClusterFacts,
    Decision,
    Observed,
    RevertFlavor,
    StopServer,
    decide,
)
from neorion.devservers.decide.running import UNDO_AFTER
from neorion.devservers.model import (
    AppliedFlavor,
    ConditionType,
    DevServerSpec,
    DevServerStatus,
    FlavorLimits,
    Lifecycle,
    StopReason,
)
from neorion.devservers.model.kube_types import ServerDeployment, ServerDeploymentSpec
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import Pod, PodStatus

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
LENT = a_flavor(replace(FLAVOR, limits=FlavorLimits(max_ttl="4h")), "lent")
FREE = a_flavor(replace(FLAVOR, node_selector={"zone": "b"}), "free")
FEW = a_flavor(replace(FLAVOR, limits=FlavorLimits(max_per_user=1)), "few")
ON_LENT = DevServerStatus(running_since=CREATED, flavor=AppliedFlavor(applied="lent"))
BODY = ServerDeployment(spec=ServerDeploymentSpec(replicas=1))
NO_ROOM = Condition(
    type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are free."
)
STUCK = PodStatus(phase="Pending", conditions=(NO_ROOM,))


def asking(flavor: str, *, running: bool = True) -> DevServerSpec:
    return DevServerSpec(flavor=flavor, running=running, lifecycle=Lifecycle(auto_shutdown=False))


def without_room(spec: DevServerSpec, status: DevServerStatus, now: datetime) -> Decision:
    """Its pod finds no node."""
    seen = Observed(
        a_server(spec, status), a_flavor(name=spec.flavor), a_claim(), pods=(a_pod(status=STUCK),)
    )
    return decide(seen, SETTINGS, now)


def moved_from_old_to_new(now: datetime) -> DevServerStatus:
    before = DevServerStatus(running_since=CREATED, flavor=AppliedFlavor(applied="old"))
    return without_room(asking("new"), before, now).status


def test_a_change_that_was_taken_back_is_not_made_again_where_the_old_flavor_has_no_room_either():
    late = CREATED + UNDO_AFTER
    status = moved_from_old_to_new(CREATED)
    assert without_room(asking("new"), status, late).edit == RevertFlavor("old")
    back = without_room(asking("old"), status, late)
    assert back.status.flavor == AppliedFlavor(applied="old")
    assert without_room(asking("old"), back.status, late + UNDO_AFTER).edit is None


def test_a_server_that_rested_gets_the_whole_time_to_find_its_place():
    resting = decide(
        Observed(
            a_server(
                asking("new", running=False),
                moved_from_old_to_new(CREATED),
                {STOPPED_BECAUSE: StopReason.ASKED.value},
            ),
            a_flavor(name="new"),
            a_claim(),
        ),
        SETTINGS,
        CREATED,
    ).status
    started = without_room(asking("new"), resting, CREATED + DAY)
    assert started.status.flavor == AppliedFlavor(applied="new", previous="old", changed=CREATED + DAY)
    assert without_room(asking("new"), started.status, CREATED + DAY + UNDO_AFTER).edit == RevertFlavor("old")


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            Observed(a_server(asking("nope"), ON_LENT), pods=(a_pod(),)), id="there is no such flavor"
        ),
        pytest.param(Observed(a_server(asking("nope"), ON_LENT), body=BODY), id="and its pod is replaced"),
        pytest.param(
            Observed(a_server(asking("free"), ON_LENT), FREE, pods=(a_pod(),), around=ClusterFacts()),
            id="there is no node",
        ),
        pytest.param(
            Observed(a_server(asking("few"), ON_LENT), FEW, body=BODY, ahead=1), id="others have all of it"
        ),
    ],
)
def test_a_server_that_does_not_get_what_it_asks_for_ends_when_the_flavor_it_has_says(seen: Observed):
    seen = changed(seen, home=a_claim(), standing=LENT)
    assert decide(seen, SETTINGS, CREATED + 4 * HOUR).edit == StopServer(StopReason.EXPIRED)
    before = decide(seen, SETTINGS, CREATED + 3 * HOUR)
    assert before.edit is None
    assert before.status.flavor == AppliedFlavor(applied="lent")
    assert before.status.deadline is not None
    assert before.status.deadline.time == CREATED + 4 * HOUR


def test_a_server_that_gets_what_it_asks_for_leaves_the_limits_behind_at_once():
    there = a_flavor(name="free")
    seen = Observed(a_server(asking("free"), ON_LENT), there, a_claim(), pods=(a_pod(),), standing=LENT)
    moved = decide(seen, SETTINGS, CREATED + 3 * HOUR).status
    assert moved.flavor == AppliedFlavor(applied="free", previous="lent", changed=CREATED + 3 * HOUR)
    assert moved.deadline is None


def resized(reason: str, *, heard: bool = True) -> Pod:
    """It was asked to have what the new flavor gives, and its kubelet says why it has not."""
    made = a_pod()
    told = Condition(type="PodResizePending", status="True", reason=reason, observed_generation=2)
    status = replace(made.status, conditions=(told,) if reason else (), observed_generation=2 if heard else 1)
    return replace(made, meta=replace(made.meta, generation=2), status=status)


def after_resize(pod: Pod, now: datetime) -> Decision:
    moving = AppliedFlavor(applied="new", previous="old", changed=CREATED)
    status = DevServerStatus(running_since=CREATED, flavor=moving)
    seen = Observed(
        a_server(asking("new"), status), a_flavor(name="new"), a_claim(), pods=(pod,), around=ClusterFacts()
    )
    return decide(seen, SETTINGS, now)


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
def test_a_resize_for_which_the_node_has_no_room_is_not_told_as_done_and_is_undone(reason: str):
    waits = after_resize(resized(reason), CREATED + HOUR / 60)
    assert waits.status.ready
    assert waits.status.flavor == AppliedFlavor(applied="new", previous="old", changed=CREATED)
    assert waits.edit is None
    [resizing] = [one for one in waits.status.conditions if one.type is ConditionType.RESIZING]
    assert "The server goes on as it is." in resizing.message
    assert after_resize(resized(reason), CREATED + UNDO_AFTER).edit == RevertFlavor("old")


def test_a_resize_is_done_when_the_kubelet_has_heard_of_it_and_does_not_object():
    unheard = after_resize(resized("", heard=False), CREATED + UNDO_AFTER)
    assert unheard.status.flavor == AppliedFlavor(applied="new", previous="old", changed=CREATED)
    assert unheard.edit is None
    assert after_resize(resized(""), CREATED).status.flavor == AppliedFlavor(applied="new")
