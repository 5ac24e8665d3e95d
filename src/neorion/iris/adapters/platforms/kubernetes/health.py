"""Explains the state of Pods and nodes in sentences."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from neorion.keel.kube import condition
from neorion.keel.kube.core import Node, Pod

_OVER: Final = frozenset({"Failed", "Succeeded"})
# What the kubelet tries again for ever and a person has to correct.
_BROKEN: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ImagePullBackOff",
        "InvalidImageName",
    }
)
_IMAGE_REASONS: Final = frozenset({"ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"})
_IMAGE_HINT: Final = "Check docker_image, and the Secrets that image_pull_secrets names"
# A worker that ends at once, again and again, will not join.
_CRASHES_MAX: Final = 3
_WORDS_MAX: Final = 300
_NO_NOTICES: Final[Mapping[str, str]] = MappingProxyType({})


def is_placed(pod: Pod) -> bool:
    """True when the Pod has a machine."""
    return bool(pod.spec.node_name) and pod.meta.deleted is None and pod.status.phase not in _OVER


def is_ready(node: Node) -> bool:
    ready = condition(node.status.conditions, "Ready")
    return ready is not None and ready.holds


def is_silent(node: Node) -> bool:
    """True when its kubelet has stopped reporting. One that reports trouble may still get over it."""
    ready = condition(node.status.conditions, "Ready")
    return ready is not None and ready.status == "Unknown"


def loss(pod: Pod, notices: Mapping[str, str] = _NO_NOTICES) -> str:
    """Why this worker is lost, or "" while it is not. `notices` say which nodes are lost or taken back."""
    where = f"{pod.meta.name} on {pod.spec.node_name}" if pod.spec.node_name else pod.meta.name
    if why := notices.get(pod.spec.node_name) or _end(pod) or _broken(pod):
        return f"{where} {why}."
    return ""


def waiting(pod: Pod) -> str:
    """Why the Pod has no machine yet, as the scheduler says."""
    scheduled = condition(pod.status.conditions, "PodScheduled")
    if scheduled is None or scheduled.holds:
        return ""
    return _cut(scheduled.message or scheduled.reason)


def _end(pod: Pod) -> str:
    disruption = condition(pod.status.conditions, "DisruptionTarget")
    said = _cut(disruption.message or disruption.reason) if disruption is not None else ""
    if pod.meta.deleted is not None:
        return f"was taken away: {said}" if said else "was deleted"
    if pod.status.phase in _OVER:
        words = said or _cut(pod.status.message or pod.status.reason)
        return f"ended: {words}" if words else "ended"
    return ""


def _broken(pod: Pod) -> str:
    for container in pod.status.containers:
        now = container.state.waiting
        if now is None:
            continue
        if now.reason in _BROKEN:
            hint = f". {_IMAGE_HINT}" if now.reason in _IMAGE_REASONS else ""
            return f"cannot start: {now.reason}: {_cut(now.message)}{hint}"
        if now.reason == "CrashLoopBackOff" and container.restart_count >= _CRASHES_MAX:
            last = container.last_state.terminated
            words = _cut(last.message.strip().rpartition("\n")[2]) if last is not None else ""
            code = f"exit code {last.exit_code}" if last is not None else "unknown exit code"
            return f"crashes at its start with {code}: {words or now.message}"
    return ""


def _cut(text: str) -> str:
    return text.strip().removesuffix(".")[:_WORDS_MAX]
