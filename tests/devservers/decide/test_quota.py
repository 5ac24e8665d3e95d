"""Quota of Kueue: no Pods before all machines are admitted, and a stop when the quota is lost."""

from dataclasses import replace as replace_entry
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from neorion.devservers.decide import Decision, Observed, StopServer, decide
from neorion.devservers.decide.quota import (
    AssignedNodes,
    QueueEntry,
    preemptor_uid,
    queue_order,
    recheck_after,
)
from neorion.devservers.model import (
    AppliedFlavor,
    DevServerSpec,
    DevServerStatus,
    Distributed,
    Lifecycle,
    Mode,
    Phase,
    QueueRef,
    Resources,
    StopReason,
)
from neorion.devservers.model.kube_types import (
    PodTemplate,
    PodTemplatePodSpec,
    ServerDeployment,
    ServerDeploymentSpec,
    ServerDeploymentStatus,
)
from neorion.devservers.model.kueue import QUEUE_LABEL, Workload, WorkloadSpec, WorkloadStatus
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition, ObjectMeta
from neorion.keel.kube.core import Container, Pod

QUEUED = DevServerSpec(
    flavor="cpu-small", queue=QueueRef(name="team"), lifecycle=Lifecycle(auto_shutdown=False)
)
RESERVED = Condition("QuotaReserved", "True")
ADMITTED = (RESERVED, Condition("Admitted", "True"))
WAITS = (Condition("QuotaReserved", "False", "Pending", "couldn't assign flavors"),)
UID = "11111111-2222-3333-4444-555555555555"
LOST = Condition(
    "Evicted", "True", "Preempted", f"Preempted to accommodate a workload (UID: {UID}, JobUID: x)"
)


def workload(*conditions: Condition, name: str = "current") -> Workload:
    meta = ObjectMeta(name=name, namespace="dev-ann", created="2026-11-16T08:00:00Z")
    return Workload(meta=meta, status=WorkloadStatus(conditions=conditions))


def decided(entry: QueueEntry, spec: DevServerSpec = QUEUED, **more: Any) -> Decision:
    return decide(Observed(a_server(spec), a_flavor(), a_claim(), quota=entry, **more), SETTINGS, CREATED)


def made(decision: Decision, kind: str) -> list[dict[str, Any]]:
    return [one for one in decision.objects if one["kind"] == kind]


def test_a_server_in_a_queue_asks_for_its_machines_before_it_gets_a_pod():
    decision = decided(QueueEntry("team"))
    [request], [body] = made(decision, "Workload"), made(decision, "Deployment")
    assert request["spec"]["queueName"] == "team"
    [pods] = request["spec"]["podSets"]
    assert pods["count"] == 1
    assert pods["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert body["spec"]["replicas"] == 0
    assert QUEUE_LABEL not in body["metadata"]["labels"]
    assert decision.status.phase is Phase.QUEUED
    assert decision.status.deadline is None


def test_all_ranks_are_one_request():
    spec = replace(QUEUED, mode=Mode.DISTRIBUTED, distributed=Distributed(world_size=4))
    decision = decided(QueueEntry("team"), spec)
    [request], [body] = made(decision, "Workload"), made(decision, "StatefulSet")
    assert request["spec"]["podSets"][0]["count"] == 4
    assert body["spec"]["replicas"] == 0
    admitted = decided(QueueEntry("team", workload(*ADMITTED)), spec)
    assert made(admitted, "StatefulSet")[0]["spec"]["replicas"] == 4


def test_place_and_reason_are_shown_while_it_waits():
    status = decided(QueueEntry("team", workload(*WAITS), place=2, waiting=5)).status
    assert status.message == "Place 2 of 5 in team: couldn't assign flavors."
    assert status.queue is not None
    assert (status.queue.place, status.queue.waiting) == (2, 5)


def test_an_admitted_server_runs_on_the_nodes_that_were_chosen():
    nodes = AssignedNodes(labels=(("pool", "spot"),))
    decision = decided(QueueEntry("team", workload(*ADMITTED), nodes=nodes))
    [body] = made(decision, "Deployment")
    assert body["spec"]["replicas"] == 1
    assert body["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "spot"}
    pod = a_pod()
    placed = replace(pod, spec=replace(pod.spec, node_selector={"pool": "spot"}))
    again = decided(
        QueueEntry("team", workload(*ADMITTED), nodes=nodes), pods=(placed,), body=ServerDeployment()
    )
    assert made(again, "Deployment")[0]["spec"]["replicas"] == 1
    assert again.status.phase is Phase.RUNNING


def test_a_server_that_loses_its_quota_stops_and_says_for_whom():
    entry = QueueEntry("team", workload(*ADMITTED, LOST), preemptor="dev-bob/train")
    decision = decided(entry, pods=(a_pod(),), body=ServerDeployment())
    assert decision.edit == StopServer(StopReason.PREEMPTED)
    [told] = [note.text for note in decision.notes if note.reason == "Evicted"]
    assert told.startswith("Its quota was taken away for dev-bob/train: Preempted to accommodate")
    assert preemptor_uid(entry.workload) == UID
    stopped = a_server(
        replace(QUEUED, running=False), decision.status, {"devservers.io/stopped-because": "Preempted"}
    )
    seen = Observed(stopped, a_flavor(), a_claim(), quota=entry)
    rest = decide(seen, SETTINGS, CREATED)
    assert rest.status.phase is Phase.STOPPED
    assert rest.status.message == told
    assert made(rest, "PersistentVolumeClaim")


def test_quota_is_given_back_when_the_last_pod_is_gone_and_not_before():
    stopped = replace(QUEUED, running=False)
    entry = QueueEntry("team", workload(*ADMITTED))
    pod = a_pod()
    going = replace(pod, meta=replace(pod.meta, deleted=CREATED.isoformat()))
    assert decided(entry, stopped, pods=(going,)).finished == ()
    assert decided(entry, stopped).finished == ("current",)


def running_pod() -> tuple[Pod, ServerDeployment]:
    """A Pod on the flavor of the tests, and its Deployment."""
    pod = a_pod()
    container = Container(
        name="dev", image=SETTINGS.default_image, resources=pod.spec.containers[0].resources
    )
    spec = ServerDeploymentSpec(
        replicas=1, template=PodTemplate(spec=PodTemplatePodSpec(containers=(container,)))
    )
    return pod, ServerDeployment(spec=spec)


def test_a_server_that_runs_keeps_its_machine_until_the_next_is_admitted():
    pod, body = running_pod()
    old = workload(*ADMITTED, name="old")
    larger = a_flavor(replace(FLAVOR, resources=Resources(requests={"cpu": "2"}, limits={"cpu": "2"})))
    waits = QueueEntry("team", workload(*WAITS), others=(old,), place=1, waiting=3)

    def moving(entry: QueueEntry) -> Decision:
        seen = Observed(a_server(QUEUED), larger, a_claim(), quota=entry, pods=(pod,), body=body)
        return decide(seen, SETTINGS, CREATED)

    asks = moving(QueueEntry("team", None, others=(old,)))
    assert len(made(asks, "Workload")) == 1
    held = moving(waits)
    assert (made(held, "Deployment"), held.finished, held.edit) == ([], (), None)
    assert held.status.phase is Phase.RUNNING
    assert held.status.message is not None
    assert held.status.message.startswith("The flavor waits for quota. Place 1 of 3 in team: ")
    moves = moving(replace_entry(waits, workload=workload(*ADMITTED), place=0))
    [deployment] = made(moves, "Deployment")
    assert deployment["spec"]["replicas"] == 1
    assert moves.finished == ()
    # It stands on the new machine: the old request is over.
    there = Observed(
        a_server(QUEUED), a_flavor(), a_claim(), quota=QueueEntry("team", workload(*ADMITTED), (old,)), pods=(pod,), body=body
    )  # fmt: skip
    assert decide(there, SETTINGS, CREATED).finished == ("old",)


def test_a_server_that_loses_its_quota_while_it_waits_for_more_stops():
    pod, body = running_pod()
    lost = workload(*ADMITTED, LOST, name="old")
    entry = QueueEntry("team", workload(*WAITS), others=(lost,))
    decision = decided(entry, pods=(pod,), body=body)
    assert decision.edit == StopServer(StopReason.PREEMPTED)


def test_a_server_without_a_pod_gives_back_its_earlier_request_first():
    decision = decided(QueueEntry("team", None, others=(workload(*ADMITTED, name="old"),)))
    assert made(decision, "Workload") == []
    assert decision.finished == ("old",)


def test_a_request_that_can_never_be_admitted_is_reported_as_such():
    never = "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor any, (9) > maximum capacity (6)"
    for message, reason in (
        (never, "ExceedsQuota"),
        (f"{never}, insufficient unused quota for cpu in flavor spot, 1 more needed", "Pending"),
    ):
        entry = QueueEntry("team", workload(Condition("QuotaReserved", "False", "Pending", message)))
        [told] = [one for one in decided(entry).status.conditions if one.type == "QuotaReserved"]
        assert told.reason == reason


def test_kueue_is_told_once_that_all_pods_are_ready():
    pod, body = running_pod()
    entry = QueueEntry("team", workload(*ADMITTED))
    assert decided(entry, pods=(pod,), body=body).ready_workload == "current"
    known = QueueEntry("team", workload(*ADMITTED, Condition("PodsReady", "True")))
    assert decided(known, pods=(pod,), body=body).ready_workload == ""
    assert decided(entry).ready_workload == ""


def test_those_far_behind_look_less_often():
    waits = [recheck_after(QueueEntry("team", place=place)).total_seconds() for place in (1, 50, 1000)]
    assert waits == [10, 50, 120]


def test_a_server_that_was_started_again_is_not_stopped_by_its_old_request():
    entry = QueueEntry("team", workload(*ADMITTED, LOST))
    decision = decided(entry)
    assert decision.edit is None
    assert decision.finished == ("current",)


def test_the_highest_priority_and_then_the_oldest_come_first():
    old, young = workload(name="old"), workload(name="young")
    young = replace(young, meta=replace(young.meta, created="2026-11-16T09:00:00Z"))
    urgent = replace(young, spec=WorkloadSpec(priority=10))
    assert sorted([young, old, urgent], key=queue_order) == [urgent, old, young]


def test_without_kueue_the_label_is_left_to_it():
    alone = Observed(a_server(QUEUED), a_flavor(), a_claim())
    decision = decide(replace_entry(alone, quota=None), SETTINGS, CREATED)
    [body] = made(decision, "Deployment")
    assert body["metadata"]["labels"][QUEUE_LABEL] == "team"
    assert body["spec"]["replicas"] == 1


def test_quota_is_given_back_when_no_pod_can_come_any_more():
    """A Deployment that was scaled down a moment ago may still make a Pod."""
    stopped = replace(QUEUED, running=False)
    entry = QueueEntry("team", workload(*ADMITTED))

    def body(observed: int, pods: int) -> ServerDeployment:
        meta = ObjectMeta(name="mydev", namespace="dev-ann", generation=2)
        status = ServerDeploymentStatus(observed_generation=observed, replicas=pods)
        return ServerDeployment(meta=meta, spec=ServerDeploymentSpec(replicas=0), status=status)

    assert decided(entry, stopped, body=body(1, 0)).finished == ()
    assert decided(entry, stopped, body=body(2, 1)).finished == ()
    assert decided(entry, stopped, body=body(2, 0), pods=(a_pod(),)).finished == ()
    assert decided(entry, stopped, body=body(2, 0)).finished == ("current",)


def test_quota_for_another_flavor_that_is_taken_away_is_given_back_and_the_server_goes_on():
    lost = workload(*ADMITTED, LOST)
    before = workload(*ADMITTED, name="before")
    decision = decided(QueueEntry("team", lost, others=(before,)), pods=(a_pod(),))
    assert decision.finished == ("current",)
    assert decision.edit is None


def test_a_server_that_waits_for_another_flavor_is_not_written_to_while_nothing_changes():
    """How long it looks for a place counts from its admission, and no earlier flavor comes back meanwhile."""
    moved = AppliedFlavor(applied="cpu-small", previous="cpu-large", changed=CREATED - timedelta(hours=1))
    status = DevServerStatus(phase=Phase.QUEUED, flavor=moved)

    def at(conditions: tuple[Condition, ...]) -> Decision:
        entry = QueueEntry("team", workload(*conditions), place=1, waiting=1)
        seen = Observed(a_server(QUEUED, status), a_flavor(), a_claim(), quota=entry)
        return decide(seen, SETTINGS, CREATED)

    waiting = at(WAITS)
    assert (waiting.status.flavor, waiting.edit) == (moved, None)
    admitted = at(ADMITTED)
    assert admitted.status.flavor is not None
    assert admitted.status.flavor.changed == CREATED
