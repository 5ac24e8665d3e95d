"""What the cluster refuses to make for a server is told in its status, in words that stay the same from one attempt to the next."""

from datetime import timedelta

import msgspec
import pytest

from neorion.devservers.client.server_diagnosis import diagnose
from neorion.devservers.decide import Observed, RevertFlavor, decide, pod_refusal
from neorion.devservers.decide.running import RECHECK_AFTER, UNDO_AFTER
from neorion.devservers.model import ConditionType, DevServerSpec, DevServerStatus, Lifecycle, Phase
from neorion.devservers.model.kube_types import DeploymentCondition, ServerDeployment, ServerDeploymentStatus
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import PodStatus
from neorion.keel.kube.core.pods import ContainerState, ContainerStateWaiting, ContainerStatus

QUOTA = "exceeded quota: dev-user, requested: limits.cpu=2, used: limits.cpu=63, limited: limits.cpu=64"
FULL = 'The quota "dev-user" has no room: limits.cpu=2 is asked for, limits.cpu=63 is used, limits.cpu=64 is the most.'
QUIET = DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(auto_shutdown=False))


def a_body(message: str) -> ServerDeployment:
    conditions = (
        DeploymentCondition("Progressing", "it was there"),
        DeploymentCondition("ReplicaFailure", message),
    )
    return ServerDeployment(status=ServerDeploymentStatus(conditions))


def refused_pod(attempt: str, why: str = QUOTA) -> ServerDeployment:
    return a_body(f'pods "mydev-7c9d-{attempt}" is forbidden: {why}')


def test_a_pod_without_room_in_the_quota_is_told_once_however_often_it_is_tried():
    seen = Observed(a_server(QUIET), a_flavor(), a_claim(), refused_pod("abcde"))
    first = decide(seen, SETTINGS, CREATED)
    assert (first.status.phase, first.status.message) == (Phase.PENDING, FULL)
    quota = next(one for one in first.status.conditions if one.type is ConditionType.QUOTA)
    assert (quota.status, quota.reason) == ("False", "QuotaExceeded")
    assert [(note.reason, note.warning) for note in first.notes] == [("QuotaExceeded", True)]
    again = Observed(a_server(QUIET, first.status), a_flavor(), a_claim(), refused_pod("zyxwv"))
    assert pod_refusal(refused_pod("abcde")) == pod_refusal(refused_pod("zyxwv"))
    later = decide(again, SETTINGS, CREATED + timedelta(minutes=1))
    assert (later.status, later.notes) == (first.status, ())


def test_a_server_that_has_its_pod_is_not_refused_whatever_its_deployment_still_says():
    seen = Observed(a_server(QUIET), a_flavor(), a_claim(), refused_pod("abcde"), (a_pod(),))
    status = decide(seen, SETTINGS, CREATED).status
    assert (status.phase, status.message) == (Phase.RUNNING, None)
    assert ConditionType.QUOTA not in {one.type for one in status.conditions}


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (f'persistentvolumeclaims "mydev-home" is forbidden: {QUOTA}', FULL),
        (
            'Deployment.apps "mydev" is invalid: spec.template.spec: Invalid value.',
            "The cluster refuses what the server needs: spec.template.spec: Invalid value.",
        ),
        ("x" * 5000, f"The cluster refuses what the server needs: {'x' * 400}."),
    ],
    ids=["quota", "invalid", "endless"],
)
@pytest.mark.parametrize("running", [True, False])
def test_what_could_not_be_written_is_told_in_short(told: str, sentence: str, *, running: bool):
    spec = DevServerSpec(flavor="cpu-small", running=running)
    decision = decide(Observed(a_server(spec), a_flavor(), refused=told), SETTINGS, CREATED)
    # Nobody tells when there is room: it is tried again.
    assert (decision.status.message, decision.wake) == (sentence, CREATED + RECHECK_AFTER)


def test_a_flavor_whose_pod_is_refused_is_undone():
    moved = DevServerSpec(flavor="huge", lifecycle=Lifecycle(auto_shutdown=False))
    ran = decide(Observed(a_server(QUIET), a_flavor(), a_claim(), pods=(a_pod(),)), SETTINGS, CREATED).status
    huge = a_flavor(name="huge")
    change = decide(Observed(a_server(moved, ran), huge, a_claim(), pods=(a_pod(),)), SETTINGS, CREATED)
    stuck = Observed(a_server(moved, change.status), huge, a_claim(), refused_pod("abcde"))
    waited = decide(stuck, SETTINGS, CREATED)
    assert (waited.edit, waited.wake) == (None, CREATED + UNDO_AFTER)
    assert decide(stuck, SETTINGS, CREATED + UNDO_AFTER).edit == RevertFlavor("cpu-small")


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "CreateContainerError", "Unschedulable"])
def test_however_much_the_cluster_says_the_status_has_room_for_it(reason: str):
    words = "1 node had a taint; " * 1000
    waits = ContainerStatus(name="dev", state=ContainerState(waiting=ContainerStateWaiting(reason, words)))
    placed = Condition(type="PodScheduled", status="False", reason=reason, message=words)
    pod = a_pod(status=PodStatus(phase="Pending", conditions=(placed,), containers=(waits,)))
    told = decide(Observed(a_server(QUIET), a_flavor(), a_claim(), pods=(pod,)), SETTINGS, CREATED).status
    assert msgspec.convert(msgspec.to_builtins(told), DevServerStatus) == told
    assert (told.message or "").endswith("...")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            '0/1 nodes are available: persistentvolumeclaim "team" not found. not found',
            'The volume claim "team" is not there.',
        ),
        (
            '0/1 nodes are available: persistentvolumeclaim "team" is being deleted.',
            'The volume claim "team" is being deleted.',
        ),
    ],
)
def test_a_claim_that_is_missing_is_no_lack_of_room(words: str, told: str):
    placed = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=words)
    pod = a_pod(status=PodStatus(phase="Pending", conditions=(placed,)))
    status = decide(Observed(a_server(QUIET), a_flavor(), a_claim(), pods=(pod,)), SETTINGS, CREATED).status
    assert (status.phase, status.message) == (Phase.PENDING, told)
    found = diagnose(a_server(QUIET, status))
    assert (found.sentence, found.hint.partition(";")[0]) == (told, "Make that claim")
