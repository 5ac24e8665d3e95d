import pytest
from msgspec.structs import replace

from neorion.devservers.decide import Observed, decide
from neorion.devservers.model import ConditionType, Phase
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import ContainerStatus, Pod, PodStatus
from neorion.keel.kube.core.core_v1 import PersistentVolumeClaimStatus
from neorion.keel.kube.core.pods import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
)


def test_a_home_that_is_being_made_is_no_lack_of_room():
    told = "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    waits = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=told)
    pod = a_pod(status=PodStatus(phase="Pending", conditions=(waits,)))
    seen = Observed(server=a_server(), flavor=a_flavor(), home=a_claim(), pods=(pod,))
    decision = decide(seen, SETTINGS, CREATED)
    assert decision.status.message is None
    assert decision.notes == ()


@pytest.mark.parametrize(
    ("phase", "holds"), [("Pending", "True"), ("Lost", "False"), ("not heard of", "True")]
)
def test_a_pod_that_has_a_node_has_its_volume_though_word_of_that_comes_later(phase: str, holds: str):
    home = (
        replace(a_claim(), status=PersistentVolumeClaimStatus(phase=phase))
        if phase != "not heard of"
        else None
    )
    seen = Observed(server=a_server(), flavor=a_flavor(), home=home, pods=(a_pod(),))
    told = decide(seen, SETTINGS, CREATED).status.conditions
    assert [one.status for one in told if one.type is ConditionType.VOLUME] == [holds]


NEVER = ContainerState()


def on_its_node(now: ContainerState, before: ContainerState = NEVER) -> Pod:
    dev = ContainerStatus(name="dev", state=now, last_state=before)
    pod = a_pod(status=PodStatus(phase="Running", containers=(dev,)))
    return replace(pod, spec=replace(pod.spec, node_name="node1"))


ENDED = ContainerState(terminated=ContainerStateTerminated(3, finished=CREATED.isoformat()))
RUNS = ContainerState(running=ContainerStateRunning(CREATED.isoformat()))


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (on_its_node(ENDED), "it ended with exit code 3"),
        (on_its_node(RUNS, ENDED), "it ended with exit code 3"),
        (
            on_its_node(ContainerState(terminated=ContainerStateTerminated(137, reason="OOMKilled"))),
            "it ran out of memory; choose a larger flavor",
        ),
    ],
)
def test_a_server_that_ended_and_comes_back_says_how_it_ended(pod: Pod, words: str):
    seen = Observed(server=a_server(), flavor=a_flavor(), home=a_claim(), pods=(pod,))
    decision = decide(seen, SETTINGS, CREATED)
    assert decision.status.phase is Phase.STARTING
    assert decision.status.message == f"The server is started again: {words}."
    assert "Ended" in [note.reason for note in decision.notes]


def test_a_silent_ssh_server_is_told_rather_than_how_the_machine_before_it_ended():
    pod = on_its_node(RUNS, ENDED)
    pod = replace(pod, spec=replace(pod.spec, init_containers=(Container(name="tools", image="tools"),)))
    seen = Observed(server=a_server(), flavor=a_flavor(), home=a_claim(), pods=(pod,))
    early = decide(seen, SETTINGS, CREATED)
    assert early.wake is not None
    assert "is started again" in (early.status.message or "")
    assert "does not answer" in (decide(seen, SETTINGS, early.wake).status.message or "")
