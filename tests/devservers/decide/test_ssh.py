"""Which servers get sshd, and what is told of it."""

from dataclasses import replace
from datetime import timedelta

from msgspec.structs import replace as changed

from neorion.devservers.decide import Observed, OperatorSettings, decide, host_key_may_be_gone, wants_host_key
from neorion.devservers.decide.ssh import MOUNT_PATIENCE
from neorion.devservers.decide.sshd_injection import TOOLS
from neorion.devservers.model import ConditionType, DevServerSpec, DevServerStatus, Phase, Port, Ssh
from neorion.devservers.model.kube_types import (
    PodTemplate,
    PodTemplatePodSpec,
    ServerDeployment,
    ServerDeploymentSpec,
)
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import Container, Pod, PodStatus
from neorion.keel.kube.core.pods import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
)

SSH = replace(SETTINGS, tools_image="tools:1")
SPEC = DevServerSpec(
    flavor="cpu-small", ssh=Ssh(public_keys=("ssh-ed25519 AAAA ann", "ssh-ed25519 BBBB bob"))
)
KEYED = DevServerStatus(ssh_host_key="ssh-ed25519 HOST")


def equipped(*, ready: bool = True, image: str = "tools:1") -> Pod:
    """A pod that has sshd, since a moment after it was asked for."""
    state = ContainerState(running=ContainerStateRunning(CREATED.isoformat()))
    status = PodStatus(phase="Running", containers=(ContainerStatus(name="dev", ready=ready, state=state),))
    pod = a_pod()
    return changed(pod, spec=changed(pod.spec, init_containers=(Container(TOOLS, image),)), status=status)


def body(image: str) -> ServerDeployment:
    made = (Container(TOOLS, image),) if image else ()
    template = PodTemplate(
        spec=PodTemplatePodSpec(containers=(Container("dev", "image"),), init_containers=made)
    )
    return ServerDeployment(meta=a_pod().meta, spec=ServerDeploymentSpec(replicas=1, template=template))


def made(seen: Observed, settings: OperatorSettings = SSH):
    found = {one["kind"]: one for one in decide(seen, settings, CREATED).objects}
    return found, found["Deployment"]["spec"]["template"]["spec"]


def test_a_server_gets_sshd_its_keys_and_a_port_of_its_service():
    found, pod = made(Observed(a_server(SPEC, KEYED), a_flavor()))
    assert pod["initContainers"][0]["image"] == "tools:1"
    assert pod["containers"][0]["command"][-1].startswith("/opt/devserver/tools/sshd.sh & trap")
    lines = "ssh-ed25519 AAAA ann\nssh-ed25519 BBBB bob\n"
    keys = found["ConfigMap"]
    assert (keys["metadata"]["name"], keys["data"]) == ("mydev-ssh-keys", {"authorized_keys": lines})
    assert found["Service"]["spec"]["ports"] == [{"name": "ssh", "port": 22, "targetPort": 2222}]


def test_a_port_that_is_also_that_of_sshd_is_named_once():
    """An apply that names a port of a container twice fails, and not as a refusal that could be told."""
    ports = (Port(name="mine", port=2222), Port(name="web", port=8080))
    found, pod = made(Observed(a_server(changed(SPEC, ports=ports), KEYED), a_flavor()))
    assert [one["containerPort"] for one in pod["containers"][0]["ports"]] == [8080, 2222]
    assert [(one["port"], one["targetPort"]) for one in found["Service"]["spec"]["ports"]] == [
        (22, 2222),
        (2222, 2222),
        (8080, 8080),
    ]


def test_nothing_is_brought_where_nobody_wants_it_or_there_is_nothing_to_bring():
    closed = changed(SPEC, enable_ssh=False)
    for server, settings in (
        (a_server(SPEC, KEYED), SETTINGS),
        (a_server(closed, KEYED), SSH),
        (a_server(SPEC), SSH),
    ):
        _, pod = made(Observed(server, a_flavor()), settings)
        assert "initContainers" not in pod


def test_a_host_key_is_wanted_once_and_only_for_what_runs():
    assert wants_host_key(Observed(a_server(SPEC)), SSH)
    assert not wants_host_key(Observed(a_server(SPEC, KEYED)), SSH)
    assert not wants_host_key(Observed(a_server(SPEC)), SETTINGS)
    assert not wants_host_key(Observed(a_server(changed(SPEC, enable_ssh=False))), SSH)
    assert not wants_host_key(Observed(a_server(changed(SPEC, running=False))), SSH)
    assert not wants_host_key(Observed(a_server(SPEC, deleted="2026-11-16T08:00:00Z")), SSH)


def waiting(*, begun: bool = False) -> Pod:
    """A pod with sshd that has had its node since it was asked for, and perhaps its first container."""
    placed = Condition("PodScheduled", "True", changed=CREATED.isoformat())
    state = (
        ContainerState(terminated=ContainerStateTerminated(0))
        if begun
        else ContainerState(waiting=ContainerStateWaiting("PodInitializing"))
    )
    status = PodStatus(conditions=(placed,), init_containers=(ContainerStatus(name=TOOLS, state=state),))
    return changed(equipped(), status=status)


def test_a_host_key_is_doubted_before_a_start_and_when_a_pod_does_not_begin():
    stopped = changed(body("tools:1"), spec=changed(body("tools:1").spec, replicas=0))
    server = a_server(SPEC, KEYED)
    late = CREATED + MOUNT_PATIENCE
    assert host_key_may_be_gone(Observed(server, body=stopped), SSH, CREATED)
    assert not host_key_may_be_gone(Observed(server, body=body("tools:1")), SSH, late)
    assert not host_key_may_be_gone(Observed(server), SSH, late)
    assert not host_key_may_be_gone(Observed(a_server(SPEC), body=stopped), SSH, late)
    assert not host_key_may_be_gone(Observed(server, body=stopped), SETTINGS, late)
    resting = a_server(changed(SPEC, running=False), KEYED)
    assert not host_key_may_be_gone(Observed(resting, body=stopped), SSH, late)
    seen = Observed(server, a_flavor(), a_claim(), body("tools:1"), (waiting(),))
    assert not host_key_may_be_gone(seen, SSH, late - timedelta(seconds=1))
    assert decide(seen, SSH, CREATED).wake == late
    assert host_key_may_be_gone(seen, SSH, late)
    assert not host_key_may_be_gone(replace(seen, pods=(waiting(begun=True),)), SSH, late)


def test_the_host_key_is_remembered_at_work_and_at_rest():
    resting = changed(SPEC, running=False)
    for spec in (SPEC, resting):
        decision = decide(Observed(a_server(spec, KEYED), a_flavor()), SSH, CREATED)
        assert decision.status.ssh_host_key == "ssh-ed25519 HOST"


def test_other_tools_do_not_restart_a_server_that_stands():
    seen = Observed(
        a_server(SPEC, KEYED), a_flavor(), a_claim(), body("tools:0"), (equipped(image="tools:0"),)
    )
    _, pod = made(seen)
    assert pod["initContainers"][0]["image"] == "tools:0"
    _, bare = made(replace(seen, body=body(""), pods=(a_pod(),)))
    assert "initContainers" not in bare
    _, stopped = made(replace(seen, pods=()))
    assert stopped["initContainers"][0]["image"] == "tools:1"


def told(pod: Pod, after: timedelta):
    seen = Observed(a_server(SPEC, KEYED), a_flavor(), a_claim(), body("tools:1"), (pod,))
    decision = decide(seen, SSH, CREATED + after)
    ssh = next((one for one in decision.status.conditions if one.type is ConditionType.SSH), None)
    return decision, ssh and (ssh.status, ssh.reason)


def test_ssh_is_ready_with_the_server_and_its_silence_is_told_after_a_minute():
    decision, ssh = told(equipped(), timedelta(0))
    assert ssh == ("True", "Listening")
    assert (decision.status.phase, decision.status.ssh_endpoint) == (
        Phase.RUNNING,
        "mydev-ssh.dev-ann.svc:22",
    )
    starting, ssh = told(equipped(ready=False), timedelta(seconds=59))
    assert ssh == ("Unknown", "Starting")
    assert (starting.status.message, starting.wake) == (None, CREATED + timedelta(minutes=1))
    silent, ssh = told(equipped(ready=False), timedelta(minutes=1))
    assert ssh == ("False", "NoAnswer")
    assert silent.status.message is not None
    assert "does not answer on port 2222" in silent.status.message
    assert silent.wake is None


def test_nothing_is_told_of_ssh_that_a_pod_does_not_have():
    decision, ssh = told(a_pod(), timedelta(0))
    assert (ssh, decision.status.ssh_endpoint) == (None, None)
