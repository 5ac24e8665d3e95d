"""Pods that are not as they should be: another server's, one that cannot start, one that does not go."""

from dataclasses import replace as changed
from datetime import timedelta

from msgspec.structs import replace

from neorion.devservers.decide import Decision, Observed, decide
from neorion.devservers.model import DevServerSpec, Lifecycle, Phase
from neorion.devservers.model.kube_types import ServerDeployment
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube.core import PodStatus
from neorion.keel.kube.core.pods import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)

HOUR = timedelta(hours=1)
QUIET = DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(auto_shutdown=False))


def replicas(decision: Decision) -> int:
    [deployment] = [one for one in decision.objects if one["kind"] == "Deployment"]
    return deployment["spec"]["replicas"]


def test_the_pod_of_a_deleted_server_of_the_same_name_is_not_taken_for_its_own():
    old = a_pod()
    old = replace(old, meta=replace(old.meta, created=(CREATED - HOUR).isoformat()))
    seen = Observed(a_server(), a_flavor(), a_claim(), ServerDeployment(), (old,))
    decision = decide(seen, SETTINGS, CREATED)
    assert not decision.status.ready
    assert replicas(decision) == 0
    going = replace(old, meta=replace(old.meta, deleted=CREATED.isoformat()))
    assert replicas(decide(changed(seen, pods=(going,)), SETTINGS, CREATED)) == 1


def test_an_image_without_a_shell_is_told_as_such():
    said = 'failed to create shim task: unable to start container process: exec: "/bin/sh": stat /bin/sh: no such file'
    ended = ContainerState(terminated=ContainerStateTerminated(128, reason="StartError", message=said))
    state = ContainerState(waiting=ContainerStateWaiting("CrashLoopBackOff", "back-off 40s"))
    status = PodStatus(
        phase="Running", containers=(ContainerStatus(name="dev", state=state, last_state=ended),)
    )
    told = decide(Observed(a_server(), a_flavor(), pods=(a_pod(status=status),)), SETTINGS, CREATED).status
    assert told.message == (
        "The server does not start: its image has no /bin/sh, without which no server can run; choose another image."
    )


def test_a_node_that_does_not_answer_is_told_as_what_holds_up_the_next_pod():
    old = a_pod()
    old = replace(old, meta=replace(old.meta, deleted=CREATED.isoformat()))
    seen = Observed(a_server(QUIET), a_flavor(), a_claim(), ServerDeployment(), (old,))
    early = decide(seen, SETTINGS, CREATED)
    assert early.status.message is None
    assert early.wake is not None
    late = decide(seen, SETTINGS, early.wake).status
    assert late.phase is Phase.PENDING
    assert late.message == "The pod on node1 has not ended yet: that node does not answer."
    stopped = changed(seen, server=a_server(replace(QUIET, running=False)))
    resting = decide(stopped, SETTINGS, early.wake).status
    assert (resting.phase, resting.message) == (Phase.STOPPING, late.message)
    older = replace(old, meta=replace(old.meta, created=(CREATED - HOUR).isoformat()))
    assert decide(changed(stopped, pods=(older,)), SETTINGS, early.wake).status.phase is Phase.STOPPED
    there = changed(seen, pods=(old, a_pod()))
    assert decide(there, SETTINGS, early.wake).status.message is None
