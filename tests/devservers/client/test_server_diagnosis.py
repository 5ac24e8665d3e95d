from dataclasses import dataclass
from datetime import timedelta

import pytest
from msgspec.structs import replace

from neorion.devservers.client import Diagnosis, diagnose, obstacle, steps, stop_conditions
from neorion.devservers.decide import Observed, decide
from neorion.devservers.model import (
    AppliedFlavor,
    DevServerSpec,
    DevServerStatus,
    FlavorLimits,
    Lifecycle,
    Phase,
    Schedule,
    StopReason,
)
from neorion.devservers.model.kube_types import (
    DeploymentCondition,
    DevServerObject,
    ServerDeployment,
    ServerDeploymentStatus,
)
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import PersistentVolumeClaim, Pod, PodStatus
from neorion.keel.kube.core.core_v1 import PersistentVolumeClaimStatus
from neorion.keel.kube.core.pods import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)

NOW = CREATED + timedelta(hours=1)


def observed(
    spec: DevServerSpec,
    *,
    pod: Pod | None = None,
    known: bool = True,
    body: ServerDeployment | None = None,
    home: PersistentVolumeClaim | None = None,
) -> DevServerObject:
    """A server with the status that the operator would write."""
    server = a_server(spec)
    seen = Observed(server, a_flavor() if known else None, home or a_claim(), body, (pod,) if pod else ())
    return replace(server, status=decide(seen, SETTINGS, NOW).status)


def waiting(reason: str, message: str) -> Pod:
    state = ContainerState(waiting=ContainerStateWaiting(reason=reason, message=message))
    pod = a_pod(status=PodStatus(phase="Pending", containers=(ContainerStatus(name="dev", state=state),)))
    return replace(pod, spec=replace(pod.spec, node_name="node1"))


def unschedulable() -> Pod:
    told = Condition(
        type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are free."
    )
    return a_pod(status=PodStatus(phase="Pending", conditions=(told,)))


SPEC = DevServerSpec(flavor="cpu-small")
NO_ROOM = 'pods "x" is forbidden: exceeded quota: dev-user, requested: pods=1, used: pods=5, limited: pods=5'
FULL = ServerDeployment(status=ServerDeploymentStatus((DeploymentCondition("ReplicaFailure", NO_ROOM),)))


@dataclass(frozen=True)
class Case:
    server: DevServerObject
    sentence: str
    hint: str


CASES = {
    "unseen": Case(
        a_server(SPEC),
        "No operator has looked at mydev since it was last changed.",
        "Ask an administrator whether the operator runs.",
    ),
    "unknown flavor": Case(
        observed(SPEC, known=False),
        'There is no flavor "cpu-small"; devctl flavors lists those there are.',
        "devctl update mydev --flavor FLAVOR, with one that devctl flavors lists.",
    ),
    "no room": Case(
        observed(SPEC, pod=unschedulable()),
        "No node has room: 0/3 nodes are free.",
        "Take a smaller flavor (devctl update mydev --flavor FLAVOR), or wait for a node.",
    ),
    "no image": Case(
        observed(SPEC, pod=waiting("ImagePullBackOff", "not found")),
        "image cannot be pulled: not found.",
        "Check the name of the image and the right to pull it.",
    ),
    "crashes": Case(
        observed(SPEC, pod=waiting("CrashLoopBackOff", "back-off")),
        "The server does not start: back-off.",
        "devctl logs mydev --previous shows its last words.",
    ),
    "comes back": Case(
        observed(
            SPEC,
            pod=a_pod(
                status=PodStatus(
                    phase="Running",
                    containers=(
                        ContainerStatus(
                            name="dev", state=ContainerState(terminated=ContainerStateTerminated(0))
                        ),
                    ),
                )
            ),
        ),
        "The server is started again: it ended with exit code 0.",
        "Wait a moment; devctl logs mydev --previous shows its last words.",
    ),
    "no class for its home": Case(
        observed(SPEC, home=replace(a_claim(), status=PersistentVolumeClaimStatus(phase="Pending"))),
        "Nothing makes a volume for the home: the cluster has no default storage class.",
        "Let an administrator make a class the default; or delete the server, and name one in spec.home.storageClass.",
    ),
    "no room in the quota": Case(
        observed(SPEC, body=FULL),
        'The quota "dev-user" has no room: pods=1 is asked for, pods=5 is used, pods=5 is the most.',
        "Delete or stop another server, or ask for more; then devctl stop mydev and devctl start mydev.",
    ),
    "no pod yet": Case(observed(SPEC), "mydev is on its way: a node is being found.", "devctl events mydev"),
    "pulls": Case(
        observed(SPEC, pod=waiting("ContainerCreating", "")),
        "mydev is on its way: its image is being pulled.",
        "devctl events mydev",
    ),
    "stopped": Case(
        observed(replace(SPEC, running=False)), "mydev is stopped: a user stopped it.", "devctl start mydev"
    ),
    "stopping": Case(
        observed(replace(SPEC, running=False), pod=a_pod()),
        "mydev is stopping.",
        "devctl start mydev, once it has stopped.",
    ),
    "leaving": Case(
        a_server(SPEC, deleted=CREATED.isoformat()),
        "mydev is being deleted.",
        "Its home stays for its retention.",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_obstacle_is_one_sentence_and_one_cure(case: Case):
    assert diagnose(case.server) == Diagnosis(False, case.sentence, case.hint)


def test_a_server_that_runs_is_well():
    assert diagnose(observed(SPEC, pod=a_pod())) == Diagnosis(True, "mydev runs.")


def test_a_complaint_about_its_parts_counts_where_the_status_names_nothing():
    complaint = "exceeded quota: gpus."
    assert diagnose(observed(SPEC), complaint).sentence == complaint
    assert diagnose(observed(SPEC, pod=unschedulable()), complaint).sentence != complaint
    assert diagnose(observed(SPEC, pod=a_pod()), complaint).well


def test_a_status_of_an_older_wish_says_nothing():
    server = observed(SPEC, pod=a_pod())
    changed = replace(server, meta=replace(server.meta, generation=2))
    assert not diagnose(changed).well
    assert not any(step.done for step in steps(changed))


def test_steps_are_done_in_their_order():
    def done(pod: Pod | None) -> list[str]:
        return [step.name for step in steps(observed(SPEC, pod=pod)) if step.done]

    assert done(None) == ["volume"]
    assert done(unschedulable()) == ["volume"]
    assert done(waiting("ContainerCreating", "")) == ["volume", "quota", "scheduled"]
    assert done(a_pod()) == ["volume", "quota", "scheduled", "image", "ready"]


def test_a_server_in_a_queue_waits_for_its_quota():
    status = DevServerStatus(phase=Phase.QUEUED, observed_generation=1)
    assert obstacle(a_server(SPEC, status)) == "It waits for its turn in the queue."


def test_everything_that_would_stop_it_is_told_with_its_time():
    hours = Schedule(stop="0 19 * * *", time_zone="Europe/Athens")
    lifecycle = Lifecycle(time_to_live="4h", schedule=hours)
    told = stop_conditions(observed(replace(SPEC, lifecycle=lifecycle), pod=a_pod()), a_flavor(), NOW)
    assert told == (
        "At 2026-11-16 12:00 UTC, in 3h: its time is over then.",
        "After 1h without use.",
        'At its hours: "0 19 * * *" in Europe/Athens.',
    )


def test_the_flavors_limits_are_told_as_if_the_server_had_asked_for_them():
    flavor = a_flavor(replace(FLAVOR, limits=FlavorLimits(max_ttl="2h", max_idle="30m")))
    assert stop_conditions(observed(SPEC, pod=a_pod()), flavor, NOW) == (
        "At 2026-11-16 10:00 UTC, in 1h: its time is over then.",
        "After 30m without use.",
    )


def test_a_server_that_nothing_stops_says_so():
    spec = replace(SPEC, lifecycle=Lifecycle(auto_shutdown=False))
    assert stop_conditions(observed(spec, pod=a_pod()), a_flavor(), NOW) == ("Nothing stops it by itself.",)


def test_an_expired_server_says_when_it_is_deleted():
    status = DevServerStatus(
        phase=Phase.EXPIRED, stop_reason=StopReason.EXPIRED, delete_after=NOW + timedelta(days=7)
    )
    (told,) = stop_conditions(a_server(replace(SPEC, running=False), status), a_flavor(), NOW)
    assert "At 2026-11-23 09:00 UTC, in 7d: the server is deleted" in told


def test_of_a_server_that_runs_it_is_told_why_it_does_not_get_another_flavor():
    spec = DevServerSpec(flavor="rare")
    status = DevServerStatus(flavor=AppliedFlavor(applied="cpu-small"))
    rare = a_flavor(replace(FLAVOR, limits=FlavorLimits(max_per_user=1)), "rare")
    server = a_server(spec, status)
    seen = Observed(server, rare, a_claim(), pods=(a_pod(),), ahead=1)
    found = diagnose(replace(server, status=decide(seen, SETTINGS, NOW).status))
    assert not found.well
    assert found.sentence.startswith("mydev runs. rare allows 1 servers for each user")
    assert found.hint.endswith("devctl update mydev --flavor cpu-small")


def test_of_a_server_that_cannot_stop_it_is_told_what_holds_it():
    pod = a_pod()
    gone = replace(pod, meta=replace(pod.meta, deleted=CREATED.isoformat()))
    found = diagnose(observed(replace(SPEC, running=False), pod=gone))
    assert found.sentence == (
        "mydev is stopping. The pod on node1 has not ended yet: that node does not answer."
    )
    assert "devctl delete mydev" in found.hint
    assert diagnose(observed(SPEC, pod=gone)).hint == found.hint
