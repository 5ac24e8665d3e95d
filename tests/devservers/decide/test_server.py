from datetime import timedelta

import pytest
from msgspec.structs import replace

from neorion.devservers.decide import (
    HOME_DELETE_AFTER,
    STOPPED_BECAUSE,
    Decision,
    DeleteServer,
    Observed,
    RevertFlavor,
    StartServer,
    StopServer,
    decide,
)
from neorion.devservers.decide.running import UNDO_AFTER
from neorion.devservers.model import (
    DevServerSpec,
    DevServerStatus,
    Lifecycle,
    OnExpire,
    Phase,
    Resources,
    Schedule,
    StopReason,
)
from neorion.devservers.model.kube_types import (
    PodTemplate,
    PodTemplatePodSpec,
    ServerDeployment,
    ServerDeploymentSpec,
)
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import Container, PodStatus
from neorion.keel.kube.core.pods import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)
from neorion.keel.kube.core.pods import ResourceRequirements as PodResources

HOUR = timedelta(hours=1)
LARGE = replace(
    FLAVOR, resources=Resources(requests={"cpu": "2", "memory": "4Gi"}, limits={"cpu": "4", "memory": "8Gi"})
)
GPU = replace(
    FLAVOR,
    resources=Resources(requests={"cpu": "1", "nvidia.com/gpu": 1}, limits={"cpu": "2", "nvidia.com/gpu": 1}),
)
STUCK = PodStatus(
    phase="Pending",
    conditions=(
        Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/3 nodes are free."),
    ),
)


def quiet(**fields: object) -> DevServerSpec:
    return DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(auto_shutdown=False, **fields))  # pyright: ignore[reportArgumentType] -- each test's own fields


def waiting(reason: str, message: str = "it said so", *, oom: bool = False) -> PodStatus:
    last = (
        ContainerState(
            terminated=ContainerStateTerminated(137, reason="OOMKilled", finished="2026-11-16T09:00:00Z")
        )
        if oom
        else ContainerState()
    )
    state = ContainerState(waiting=ContainerStateWaiting(reason, message))
    return PodStatus(phase="Pending", containers=(ContainerStatus(name="dev", state=state, last_state=last),))


def of_kind(decision: Decision, kind: str):
    return next((one for one in decision.objects if one["kind"] == kind), None)


def test_the_home_outlives_its_server_and_the_pod_does_not():
    decision = decide(Observed(a_server(), a_flavor()), SETTINGS, CREATED)
    owned = {one["kind"]: bool(one["metadata"].get("ownerReferences")) for one in decision.objects}
    assert owned == {"PersistentVolumeClaim": False, "ConfigMap": False, "Service": True, "Deployment": True}
    assert decision.status.phase is Phase.PENDING
    assert not decision.status.ready


def test_running_is_said_only_of_a_pod_that_is_ready():
    seen = Observed(a_server(), a_flavor(), a_claim(), pods=(a_pod(),))
    decision = decide(seen, SETTINGS, CREATED)
    assert (decision.status.phase, decision.status.ready) == (Phase.RUNNING, True)
    assert [note.reason for note in decision.notes] == ["Ready"]


@pytest.mark.parametrize(
    ("status", "phase", "words"),
    [
        (STUCK, Phase.PENDING, "No node has room: 0/3 nodes are free."),
        (
            waiting("ImagePullBackOff", "no such image"),
            Phase.FAILED,
            "image cannot be pulled: no such image.",
        ),
        (
            waiting(
                "ErrImagePull",
                'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/box:1": failed to'
                ' resolve reference "docker.io/library/box:1": docker.io/library/box:1: not found',
            ),
            Phase.FAILED,
            "image cannot be pulled: not found.",
        ),
        (
            waiting("ImagePullBackOff", 'Back-off pulling image "box:1"'),
            Phase.FAILED,
            "image cannot be pulled: it is tried again from time to time.",
        ),
        (
            waiting(
                "ImagePullBackOff",
                'Back-off pulling image "x.io/box:1": ErrImagePull: failed to pull and unpack image "x.io/box:1": failed'
                " to authorize: 401 Unauthorized",
            ),
            Phase.FAILED,
            "image cannot be pulled: failed to authorize: 401 Unauthorized.",
        ),
        (waiting("ContainerCreating"), Phase.PENDING, None),
        (
            waiting("CrashLoopBackOff", oom=True),
            Phase.FAILED,
            "The server does not start: it ran out of memory; choose a larger flavor.",
        ),
    ],
)
def test_what_is_in_the_way_is_told_in_one_sentence(status: PodStatus, phase: Phase, words: str | None):
    decision = decide(
        Observed(a_server(), a_flavor(), a_claim(), pods=(a_pod(status=status),)), SETTINGS, CREATED
    )
    assert (decision.status.phase, decision.status.message) == (phase, words)


def test_running_out_of_memory_is_told_once():
    seen = Observed(
        a_server(), a_flavor(), a_claim(), pods=(a_pod(status=waiting("CrashLoopBackOff", oom=True)),)
    )
    first = decide(seen, SETTINGS, CREATED)
    again = decide(Observed(a_server(status=first.status), *_rest(seen)), SETTINGS, CREATED + HOUR)
    assert "OutOfMemory" in [note.reason for note in first.notes]
    assert again.notes == ()


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        (DevServerSpec(flavor="cpu-smal"), 'There is no flavor "cpu-smal"'),
        (
            DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(schedule=Schedule(start="61 * * * *"))),
            "schedule.start",
        ),
    ],
)
def test_what_cannot_be_served_fails_with_a_sentence(spec: DevServerSpec, word: str):
    flavor = a_flavor() if spec.flavor == "cpu-small" else None
    decision = decide(Observed(a_server(spec), flavor), SETTINGS, CREATED)
    assert decision.status.phase is Phase.FAILED
    assert word in (decision.status.message or "")


def test_a_flavor_that_was_deleted_leaves_a_running_server_alone():
    decision = decide(Observed(a_server(), None, a_claim(), pods=(a_pod(),)), SETTINGS, CREATED)
    assert decision.objects == ()
    assert decision.status.phase is Phase.RUNNING


def test_at_its_deadline_a_server_is_stopped_not_deleted():
    seen = Observed(a_server(quiet(time_to_live="2h")), a_flavor(), a_claim(), pods=(a_pod(),))
    before = decide(seen, SETTINGS, CREATED + 1.9 * HOUR)
    assert before.edit is None
    assert before.wake is not None
    assert decide(seen, SETTINGS, CREATED + 2 * HOUR).edit == StopServer(StopReason.EXPIRED)


def test_a_server_that_asks_for_it_is_deleted_at_its_deadline():
    seen = Observed(a_server(quiet(time_to_live="2h", on_expire=OnExpire.DELETE)), a_flavor(), a_claim())
    assert decide(seen, SETTINGS, CREATED + 2 * HOUR).edit == DeleteServer()


def test_an_expired_server_rests_for_its_retention_and_goes():
    spec = replace(quiet(retention="1d"), running=False)
    server = a_server(spec, annotations={STOPPED_BECAUSE: "Expired"})
    first = decide(Observed(server, a_flavor(), a_claim()), SETTINGS, CREATED)
    assert first.status.phase is Phase.EXPIRED
    assert first.wake == CREATED + 24 * HOUR
    assert first.edit is None
    rested = a_server(spec, first.status, {STOPPED_BECAUSE: "Expired"})
    assert (
        decide(Observed(rested, a_flavor(), a_claim()), SETTINGS, CREATED + 24 * HOUR).edit == DeleteServer()
    )


def test_a_server_its_user_stopped_rests_for_ever():
    server = a_server(replace(quiet(retention="1d"), running=False))
    decision = decide(Observed(server, a_flavor(), a_claim()), SETTINGS, CREATED)
    assert decision.status.phase is Phase.STOPPED
    assert (decision.edit, decision.wake) == (None, None)
    deployment = of_kind(decision, "Deployment")
    assert deployment
    assert deployment["spec"]["replicas"] == 0


def test_a_stopped_server_without_a_flavor_still_loses_its_pods():
    server = a_server(replace(quiet(), running=False))
    decision = decide(
        Observed(server, None, a_claim(), body=ServerDeployment(), pods=(a_pod(),)), SETTINGS, CREATED
    )
    assert decision.halt
    assert decision.status.phase is Phase.STOPPING


def test_hours_start_a_server_again():
    spec = replace(quiet(schedule=Schedule(start="0 9 * * *")), running=False)
    rested = DevServerStatus(stopped_at=CREATED)
    server = a_server(spec, rested, {STOPPED_BECAUSE: "Schedule"})
    assert decide(Observed(server, a_flavor()), SETTINGS, CREATED + 2 * HOUR).edit == StartServer()


def test_a_server_that_its_hours_wake_starts_at_that_very_second():
    spec = replace(quiet(schedule=Schedule(start="0 9 * * *")), running=False)
    server = a_server(spec, DevServerStatus(stopped_at=CREATED), {STOPPED_BECAUSE: "Schedule"})
    waits = decide(Observed(server, a_flavor()), SETTINGS, CREATED)
    assert (waits.edit, waits.wake) == (None, CREATED + HOUR)
    assert decide(Observed(server, a_flavor()), SETTINGS, CREATED + HOUR).edit == StartServer()


@pytest.mark.parametrize(
    "hours", [Schedule(start="0 25 * * *"), Schedule(start="0 9 * * *", time_zone="Europe/Atlantis")]
)
def test_a_stopped_server_with_hours_that_cannot_be_read_rests_and_says_so(hours: Schedule):
    spec = replace(quiet(schedule=hours), running=False)
    server = a_server(spec, DevServerStatus(stopped_at=CREATED), {STOPPED_BECAUSE: "Schedule"})
    decision = decide(Observed(server, a_flavor()), SETTINGS, CREATED + 24 * HOUR)
    assert (decision.status.phase, decision.edit) == (Phase.STOPPED, None)
    assert decision.status.message is not None
    assert "write one such as" in decision.status.message


def test_a_deleted_server_marks_its_home_once_and_lets_go():
    server = a_server(deleted="2026-11-16T08:00:00Z")
    first = decide(Observed(server, a_flavor(), a_claim()), SETTINGS, CREATED)
    home = of_kind(first, "PersistentVolumeClaim")
    assert home
    until = home["metadata"]["annotations"][HOME_DELETE_AFTER]
    assert until == (CREATED + timedelta(days=7)).isoformat()
    assert first.release
    later = decide(
        Observed(server, a_flavor(), a_claim({HOME_DELETE_AFTER: until})), SETTINGS, CREATED + HOUR
    )
    again = of_kind(later, "PersistentVolumeClaim")
    assert again == home
    assert later.notes == ()


def test_a_home_that_was_marked_before_is_kept_for_its_whole_retention_again():
    server = a_server(deleted=CREATED.isoformat())
    old = (CREATED - timedelta(days=1)).isoformat()
    decision = decide(Observed(server, None, a_claim({HOME_DELETE_AFTER: old})), SETTINGS, CREATED + HOUR)
    home = of_kind(decision, "PersistentVolumeClaim")
    assert home
    assert home["metadata"]["annotations"][HOME_DELETE_AFTER] == (CREATED + timedelta(days=7)).isoformat()
    assert [note.reason for note in decision.notes] == ["HomeKept"]


def test_cpu_and_memory_grow_under_the_running_server_without_another_pod():
    small = a_pod()
    seen = Observed(
        a_server(), a_flavor(LARGE), a_claim(), _body(small.spec.containers[0].resources), (small,)
    )
    decision = decide(seen, SETTINGS, CREATED)
    assert decision.resize == {
        "requests": {"cpu": "2", "memory": "4Gi"},
        "limits": {"cpu": "4", "memory": "8Gi"},
    }
    deployment = of_kind(decision, "Deployment")
    assert deployment
    assert _resources(deployment)["requests"] == {"cpu": "1", "memory": "2Gi"}
    grown = Observed(seen.server, seen.flavor, seen.home, seen.body, (a_pod(LARGE),))
    settled = decide(grown, SETTINGS, CREATED)
    assert settled.resize is None
    assert _resources(of_kind(settled, "Deployment") or {}) == _resources(deployment)


def test_a_gpu_needs_another_pod():
    small = a_pod()
    seen = Observed(a_server(), a_flavor(GPU), a_claim(), _body(small.spec.containers[0].resources), (small,))
    decision = decide(seen, SETTINGS, CREATED)
    assert decision.resize is None
    assert _resources(of_kind(decision, "Deployment") or {})["limits"]["nvidia.com/gpu"] == "1"


def test_a_flavor_that_finds_no_node_is_undone():
    moved = DevServerSpec(flavor="huge", lifecycle=Lifecycle(auto_shutdown=False))
    ran = decide(Observed(a_server(), a_flavor(), a_claim(), pods=(a_pod(),)), SETTINGS, CREATED).status
    change = decide(
        Observed(a_server(moved, ran), a_flavor(name="huge"), a_claim(), pods=(a_pod(),)), SETTINGS, CREATED
    )
    stuck = Observed(
        a_server(moved, change.status), a_flavor(name="huge"), a_claim(), pods=(a_pod(status=STUCK),)
    )
    waited = decide(stuck, SETTINGS, CREATED)
    assert (waited.edit, waited.wake) == (None, CREATED + UNDO_AFTER)
    assert decide(stuck, SETTINGS, CREATED + UNDO_AFTER).edit == RevertFlavor("cpu-small")


def test_a_flavor_the_server_stands_on_is_not_undone_later():
    moved = DevServerSpec(flavor="huge", lifecycle=Lifecycle(auto_shutdown=False))
    flavor = a_flavor(name="huge")
    ran = decide(Observed(a_server(), a_flavor(), a_claim(), pods=(a_pod(),)), SETTINGS, CREATED).status
    change = decide(Observed(a_server(moved, ran), flavor, a_claim(), pods=(a_pod(),)), SETTINGS, CREATED)
    stands = decide(
        Observed(a_server(moved, change.status), flavor, a_claim(), pods=(a_pod(),)), SETTINGS, CREATED
    )
    evicted = Observed(a_server(moved, stands.status), flavor, a_claim(), pods=(a_pod(status=STUCK),))
    assert decide(evicted, SETTINGS, CREATED + UNDO_AFTER).edit is None


def test_nothing_changes_when_nothing_happens():
    seen = Observed(a_server(quiet(time_to_live="2h")), a_flavor(), a_claim(), pods=(a_pod(),))
    first = decide(seen, SETTINGS, CREATED)
    again = decide(
        Observed(a_server(quiet(time_to_live="2h"), first.status), *_rest(seen)), SETTINGS, CREATED + HOUR
    )
    assert again.status == first.status
    assert again.objects == first.objects
    assert again.notes == ()


def _rest(seen: Observed):
    return seen.flavor, seen.home, seen.body, seen.pods


def _body(resources: PodResources) -> ServerDeployment:
    return ServerDeployment(
        spec=ServerDeploymentSpec(
            replicas=1, template=PodTemplate(PodTemplatePodSpec((Container("dev", resources=resources),)))
        )
    )


def _resources(deployment: dict[str, object]):
    return deployment["spec"]["template"]["spec"]["containers"][0]["resources"]  # pyright: ignore[reportIndexIssue] -- a manifest is plain data


def test_a_start_takes_the_mark_of_the_last_stop_away():
    marked = a_server(quiet(), annotations={STOPPED_BECAUSE: StopReason.EXPIRED.value})
    seen = Observed(marked, a_flavor(), a_claim(), pods=(a_pod(),))
    assert decide(seen, SETTINGS, CREATED + HOUR).edit == StartServer()


def test_another_flavor_of_the_same_kind_of_machine_leaves_the_pods_template_as_it_was():
    small, large = (replace(quiet(), flavor=name) for name in ("cpu-small", "cpu-large"))
    one, other = (
        decide(Observed(a_server(spec), a_flavor(name=spec.flavor)), SETTINGS, CREATED).objects[-1]
        for spec in (small, large)
    )
    assert one["spec"]["template"] == other["spec"]["template"]


def test_a_service_keeps_its_address_when_the_last_port_goes():
    closed = replace(quiet(), enable_ssh=False)
    service = decide(Observed(a_server(closed), a_flavor()), SETTINGS, CREATED).objects[2]
    assert service["kind"] == "Service"
    assert "clusterIP" not in service["spec"]
    assert len(service["spec"]["ports"]) == 1


def test_a_node_that_cannot_resize_takes_another_pod():
    old = a_pod()
    [status] = old.status.containers
    silent = replace(old.status, containers=(replace(status, resources=None),))
    seen = Observed(
        server=a_server(quiet()), flavor=a_flavor(LARGE), home=a_claim(), pods=(replace(old, status=silent),)
    )
    assert decide(seen, SETTINGS, CREATED).resize is None
    [body] = [made for made in decide(seen, SETTINGS, CREATED).objects if made["kind"] == "Deployment"]
    resources = body["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["requests"]["cpu"] == "2"


def test_a_warning_is_told_once_for_each_time_and_not_when_it_is_too_late():
    spec = quiet(time_to_live="2h", warnings=("1h", "30m"))
    seen = Observed(a_server(spec), a_flavor(), a_claim(), pods=(a_pod(),))
    first = decide(seen, SETTINGS, CREATED + HOUR)
    assert first.alert is not None
    assert first.alert.text == (
        "The server mydev stops at 2026-11-16 10:00 UTC: its time is over; devctl extend mydev --time 1h keeps it."
    )
    seen = Observed(a_server(spec, first.status), *_rest(seen))
    assert decide(seen, SETTINGS, CREATED + 1.2 * HOUR).alert is None
    assert decide(seen, SETTINGS, CREATED + 1.5 * HOUR).alert is not None
    assert decide(seen, SETTINGS, CREATED + 2 * HOUR).alert is None
