"""The status of an attempt, read from its Pod. Pure.

Reasons are looked at in the order of what they explain: what took the Pod away, then what the kubelet refused, then what
became of its container.
"""

from typing import Final

from neorion.iris.adapters.runtimes.container.engine import ContainerState, ContainerStatus
from neorion.iris.adapters.runtimes.kubernetes.manifest import RUNNER
from neorion.iris.adapters.runtimes.kubernetes.settings import ATTEMPT_LABEL
from neorion.iris.model import AttemptId, ExitKind
from neorion.keel.kube import Condition
from neorion.keel.kube.core import ContainerStatus as PodContainer
from neorion.keel.kube.core import Pod

# Set by schedulers, drains, the node controller and kubelets before they take a Pod away; the second by Kueue.
_DISRUPTIONS: Final = ("DisruptionTarget", "TerminationTarget")
# Reasons of a Pod that its kubelet did not run, or took away.
_REFUSALS: Final = frozenset(
    {
        "Evicted",
        "Preempting",
        "NodeLost",
        "NodeShutdown",
        "NodeAffinity",
        "Terminated",
        "UnexpectedAdmissionError",
        "Shutdown",
    }
)
# Some waits heal: a registry comes back, a Secret is made. These do not.
_FINAL: Final = frozenset(
    {
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "StartError",
        "ContainerCannotRun",
    }
)
_PULLS: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "CreateContainerError", "RunContainerError", "RegistryUnavailable"}
)
_IMAGE_REASONS: Final = frozenset(
    {"ErrImagePull", "ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"}
)
_IMAGE_HINT: Final = "Check task_image, and the Secrets that image_pull_secrets names."
_OOM: Final = "OOMKilled"
_CANNOT_START: Final = 128


def attempt_of(pod: Pod) -> AttemptId:
    return AttemptId(pod.meta.labels.get(ATTEMPT_LABEL, ""))


def container_status(pod: Pod) -> ContainerStatus:
    attempt = attempt_of(pod)
    runner = next((one for one in pod.status.containers if one.name == RUNNER), None)
    ended = runner.state.terminated if runner is not None else None
    state = _state(pod, runner)
    code = ended.exit_code if ended is not None else 0
    record = ended.message.encode() if ended is not None else b""
    disruption = next(
        (one for one in pod.status.conditions if one.type in _DISRUPTIONS and one.status == "True"), None
    )
    if disruption is not None:
        return ContainerStatus(attempt, state, ExitKind.LOST, code, _sentence(disruption))
    if state is ContainerState.EXITED and _is_refused(pod.status.reason):
        why = f"Its Pod was taken away ({pod.status.reason}): {pod.status.message}"
        return ContainerStatus(attempt, state, ExitKind.LOST, code, why)
    if ended is not None and ended.reason == _OOM:
        return ContainerStatus(
            attempt, state, ExitKind.OUT_OF_MEMORY, code, "It used more memory than it asked for."
        )
    if ended is not None and (code == _CANNOT_START or ended.reason in _FINAL):
        why = f"Its image does not start: {ended.message.strip() or ended.reason}"
        return ContainerStatus(attempt, state, ExitKind.NOT_STARTED, code, why)
    if state is ContainerState.WAITING:
        return _waiting(attempt, pod, runner)
    return ContainerStatus(attempt, state, None, code, _last_line(record) if code else "", record=record)


def _state(pod: Pod, runner: PodContainer | None) -> ContainerState:
    if pod.status.phase in ("Succeeded", "Failed") or (runner is not None and runner.state.terminated):
        return ContainerState.EXITED
    running = runner is not None and runner.state.running is not None
    return ContainerState.RUNNING if running else ContainerState.WAITING


def _is_refused(reason: str) -> bool:
    return reason in _REFUSALS or reason.startswith("OutOf")


def _waiting(attempt: AttemptId, pod: Pod, runner: PodContainer | None) -> ContainerStatus:
    waiting = runner.state.waiting if runner is not None else None
    reason = waiting.reason if waiting is not None else ""
    if waiting is not None and (reason in _FINAL or reason in _PULLS):
        hint = f" {_IMAGE_HINT}" if reason in _IMAGE_REASONS else ""
        why = f"Its container cannot start ({reason}): {waiting.message}{hint}"
        final = reason in _FINAL
        return ContainerStatus(attempt, ContainerState.WAITING, ExitKind.NOT_STARTED, 0, why, final)
    unscheduled = next(
        (one for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False"), None
    )
    message = f"{unscheduled.reason}: {unscheduled.message}" if unscheduled is not None else ""
    return ContainerStatus(attempt, ContainerState.WAITING, None, 0, message)


def _sentence(disruption: Condition) -> str:
    words = disruption.message.rstrip(".")
    return (
        f"Its Pod was disrupted ({disruption.reason}): {words}."
        if words
        else f"Its Pod was disrupted ({disruption.reason})."
    )


def _last_line(text: bytes) -> str:
    lines = [line.strip(" |+-") for line in text.decode(errors="replace").splitlines()]
    return next((line[:300] for line in reversed(lines) if line), "")
