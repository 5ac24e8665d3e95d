"""Progress of a server in steps, from its volume and its pod and never from its spec alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from neorion.devservers.decide.sshd_injection import TOOLS
from neorion.devservers.model import Condition, ConditionType, Phase
from neorion.devservers.model.field_types import TEXT_MAX
from neorion.keel.kube import condition
from neorion.keel.kube.core import ContainerStatus, PersistentVolumeClaim, Pod
from neorion.keel.kube.core.pods import ContainerStateTerminated

# What the kubelet says while an image will not come by itself.
_IMAGE_FAULTS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
# What the scheduler says of a pod whose volume is still being made.
_UNBOUND = "unbound immediate PersistentVolumeClaims"
# What it says of one whose claims are not all there: no node would help.
_MISSING = re.compile(r'persistentvolumeclaim "([^"]+)" (not found|is being deleted)')
# Of a server that ended and comes back by itself: nothing has failed yet.
_ENDED = "Ended"
_START_FAULTS = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
)
# What the runtime says of an image that does not have what every server's command begins with.
_SHELL_MISSING = 'exec: "/bin/sh"'
_NO_SHELL = "its image has no /bin/sh, without which no server can run; choose another image"
# What nodes put before the reason: who said it to whom, and which image it was about.
_DETOURS = re.compile(
    r'rpc error: code = \w+ desc = |failed to [a-z ]+ "[^"]*": |Back-off pulling image "[^"]*"(: )?|\b\w*ImagePull\w*: '
)
_REFERENCE = re.compile(r"^\S+/\S+: ")


# A node that answers takes a pod away within seconds after its grace.
_SILENT = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class ConditionStep:
    """One step: done, not done, or not known yet. `message` is for people."""

    type: ConditionType
    done: bool | None
    reason: str
    message: str = ""

    @property
    def blocked(self) -> bool:
        return self.done is False and bool(self.message)


def steps(home: PersistentVolumeClaim | None, pod: Pod | None) -> tuple[ConditionStep, ...]:
    """From the volume to a server one can use. A later step is not known before the earlier ones are done."""
    placed = pod is not None and bool(pod.spec.node_name)
    return (_volume(home, placed=placed), *((_scheduled(pod), _image(pod), _ready(pod)) if pod else _NO_POD))


def phase(taken: tuple[ConditionStep, ...], pod: Pod | None) -> Phase:
    """Where a server that should run is."""
    if pod is None:
        return Phase.PENDING
    if pod.spec.scheduling_gates:
        return Phase.QUEUED
    by_type = {step.type: step for step in taken}
    if by_type[ConditionType.READY].done:
        return Phase.RUNNING
    ready = by_type[ConditionType.READY]
    if by_type[ConditionType.IMAGE].blocked or (ready.blocked and ready.reason != _ENDED):
        return Phase.FAILED
    return Phase.STARTING if by_type[ConditionType.SCHEDULED].done else Phase.PENDING


def silent_after(pods: Iterable[Pod]) -> datetime | None:
    """When the first of the pods that are on their way out should have been gone."""
    due = (datetime.fromisoformat(pod.meta.deleted) for pod in pods if pod.meta.deleted is not None)
    return min((time + _SILENT for time in due), default=None)


def silent_steps(pods: Iterable[Pod], now: datetime) -> tuple[ConditionStep, ...]:
    """Reports pods that do not end because their node does not answer. They block the server's next pod."""
    stuck = [pod for pod in pods if (time := silent_after((pod,))) is not None and time <= now]
    nodes = ", ".join(sorted({pod.spec.node_name for pod in stuck if pod.spec.node_name}))
    if not nodes:
        return ()
    sentence = f"The pod on {nodes} has not ended yet: that node does not answer."
    return (ConditionStep(ConditionType.READY, False, "NodeSilent", sentence),)


def obstacle(taken: tuple[ConditionStep, ...]) -> str | None:
    """The first thing in the way, in one sentence."""
    return next((_fitted(step.message) for step in taken if step.blocked), None)


def conditions(
    taken: tuple[ConditionStep, ...], before: tuple[Condition, ...], now: datetime
) -> tuple[Condition, ...]:
    """Conditions for the status. The time of a condition changes only with its status, as in Kubernetes."""
    known = {one.type: one for one in before}
    told: list[Condition] = []
    for step in taken:
        status = "Unknown" if step.done is None else str(step.done)
        old = known.get(step.type)
        since = old.last_transition_time if old and old.status == status else now
        told.append(
            Condition(
                type=step.type,
                status=status,
                reason=step.reason,
                message=_fitted(step.message),
                last_transition_time=since,
            )
        )
    return tuple(told)


def _fitted(message: str) -> str:
    """Schedulers and registries may say a great deal; a status that is too long is refused whole."""
    return message if len(message) <= TEXT_MAX else f"{message[: TEXT_MAX - 3]}..."


def out_of_memory(pod: Pod) -> str | None:
    """When the server last ran out of memory, as the kubelet wrote it."""
    status = _main(pod)
    for state in (status.state, status.last_state) if status else ():
        if state.terminated and state.terminated.reason == "OOMKilled":
            return state.terminated.finished
    return None


def runs(pod: Pod) -> bool:
    """Reports whether the container runs, so that a restart would interrupt its user."""
    status = _main(pod)
    return status is not None and status.state.running is not None


def ready(pod: Pod) -> bool:
    """Return whether the pod can be used."""
    status = _main(pod)
    return pod.meta.deleted is None and status is not None and status.ready


def progress_of(pod: Pod) -> tuple[bool, bool, bool]:
    """Progress of a pod, to be compared with that of others."""
    return ready(pod), runs(pod), bool(pod.spec.node_name)


def began(pod: Pod) -> datetime | None:
    """Since when the server can be used."""
    status = _main(pod)
    running = status.state.running if status else None
    return datetime.fromisoformat(running.started) if running and running.started else None


def _volume(home: PersistentVolumeClaim | None, *, placed: bool) -> ConditionStep:
    kind = ConditionType.VOLUME
    if home is not None and home.status.phase == "Lost":
        return ConditionStep(
            kind,
            False,
            "Lost",
            "The volume behind the home is gone; ask the administrator of the cluster's storage.",
        )
    # No pod gets a node before its volumes are there, though word of the pod may come first.
    if placed:
        return ConditionStep(kind, True, "Bound")
    if home is None:
        return ConditionStep(kind, None, "Waiting")
    if home.status.phase == "Bound":
        return ConditionStep(kind, True, "Bound")
    if not home.spec.storage_class_name:
        # The API server writes the default class into every claim that names none.
        return ConditionStep(
            kind,
            False,
            "NoStorageClass",
            "Nothing makes a volume for the home: the cluster has no default storage class.",
        )
    # Many classes bind only when a pod asks: that is no fault.
    return ConditionStep(kind, None, "Waiting")


def _scheduled(pod: Pod) -> ConditionStep:
    kind = ConditionType.SCHEDULED
    if pod.spec.node_name:
        return ConditionStep(kind, True, "Scheduled", "")
    if pod.spec.scheduling_gates:
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates)
        return ConditionStep(kind, None, "Gated", f"Waits for {gates}.")
    told = condition(pod.status.conditions, "PodScheduled")
    # A home that is on its way is no lack of room: the scheduler looks again when it is there.
    home_first = told is not None and _UNBOUND in told.message
    if told is not None and not told.holds and told.reason == "Unschedulable" and not home_first:
        if missing := _MISSING.search(told.message):
            claim, why = missing.groups()
            gone = "is not there" if why == "not found" else why
            return ConditionStep(kind, False, "ClaimMissing", f'The volume claim "{claim}" {gone}.')
        return ConditionStep(kind, False, "Unschedulable", f"No node has room: {told.message.rstrip('.')}.")
    return ConditionStep(kind, None, "Waiting")


def _image(pod: Pod) -> ConditionStep:
    kind = ConditionType.IMAGE
    for status in (*pod.status.init_containers, *pod.status.containers):
        waiting = status.state.waiting
        if waiting and waiting.reason in _IMAGE_FAULTS:
            containers = (*pod.spec.init_containers, *pod.spec.containers)
            image = next((one.image for one in containers if one.name == status.name), "the image")
            whose = "The cluster's tools for SSH, " if status.name == TOOLS else ""
            return ConditionStep(
                kind,
                False,
                waiting.reason,
                f"{whose}{image} cannot be pulled: {_in_short(waiting.message)}.",
            )
    status = _main(pod)
    if status and (status.state.running or status.state.terminated):
        return ConditionStep(kind, True, "Pulled")
    return ConditionStep(kind, None, "Waiting")


def _in_short(message: str) -> str:
    """A node's message about a failed pull, shortened to its cause."""
    told = _REFERENCE.sub("", _DETOURS.sub("", message)).rstrip(".")
    return told or "it is tried again from time to time"


def _ready(pod: Pod) -> ConditionStep:
    kind = ConditionType.READY
    status = _main(pod)
    if ready(pod):
        return ConditionStep(kind, True, "Ready")
    if pod.status.reason in {"Evicted", "NodeLost"}:
        return ConditionStep(
            kind, False, pod.status.reason, f"The node gave the server up: {pod.status.message.rstrip('.')}."
        )
    waiting = status.state.waiting if status else None
    ended = (status.state.terminated or status.last_state.terminated) if status else None
    if waiting and waiting.reason in _START_FAULTS:
        words = _exit_reason(ended) if ended else waiting.message.rstrip(".")
        return ConditionStep(kind, False, waiting.reason, f"The server does not start: {words}.")
    if ended:
        return ConditionStep(kind, False, _ENDED, f"The server is started again: {_exit_reason(ended)}.")
    return ConditionStep(kind, False, "Starting")


def _exit_reason(ended: ContainerStateTerminated) -> str:
    if ended.reason == "OOMKilled":
        return "it ran out of memory; choose a larger flavor"
    if ended.reason == "StartError":
        # Its command was never run, and its exit code is the runtime's own.
        return _NO_SHELL if _SHELL_MISSING in ended.message else ended.message.rstrip(".")
    return f"it ended with exit code {ended.exit_code}"


def _main(pod: Pod) -> ContainerStatus | None:
    return next((status for status in pod.status.containers if status.name == "dev"), None)


_NO_POD = (
    ConditionStep(ConditionType.SCHEDULED, None, "NoPod"),
    ConditionStep(ConditionType.IMAGE, None, "NoPod"),
    ConditionStep(ConditionType.READY, False, "NoPod"),
)
